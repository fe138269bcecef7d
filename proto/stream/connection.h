// SPDX-License-Identifier: Apache-2.0
// One dsnet.v1 connection: connect to any of a server's addresses, upgrade, take messages apart,
// close. What the messages mean is its owner's business. Loop thread.
#ifndef DSNET_STREAM_CONNECTION_H
#define DSNET_STREAM_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream/link.h"
#include "stream/servers.h"
#include "stream/summary.h"
#include "stream/websocket.h"
#include "wire/handshake.h"
#include "wire/message.h"

#define CONNECTION_RECEIVE_SIZE (256 * 1024) // fits a core's second-level cache

enum connection_state {
  CONNECTION_CONNECTING,
  CONNECTION_UPGRADING,
  CONNECTION_OPEN,
  CONNECTION_CLOSING, // our close frame is out; the server's half is waited for
  CONNECTION_CLOSED,  // the socket is gone or being closed
};

// Why a connection ended that should not have.
struct connection_loss {
  enum stream_outcome outcome;
  bool passing;       // another try may go better
  double retry_after; // seconds that the server asked to wait; 0: it did not
  char text[384];     // one line for people
};

struct connection_callbacks {
  void (*open)(void *owner);
  void (*text)(void *owner, const char *text, size_t size); // a whole message
  // A piece of a binary message. `bytes` is NULL for those that connection_skip has let go unseen.
  void (*binary)(void *owner, const uint8_t *bytes, size_t size, bool end);
  void (*room)(void *owner); // the outbox had been full, or nearly
  void (*lost)(void *owner, const struct connection_loss *loss);
  void (*closed)(void *owner); // comes last, whoever closed; connection_start may be called again
};

// What the connections of a run share.
struct connection_shared {
  uv_loop_t *loop;
  const char *token; // bearer token, or NULL
  struct mask_pool masks;
  uint8_t *receive; // [CONNECTION_RECEIVE_SIZE]: what is read is used up before the next read
  uint64_t bytes_received, bytes_sent;
};

// Set `shared`, `callbacks` and `owner` before connection_start.
struct connection {
  struct connection_shared *shared;
  const struct connection_callbacks *callbacks;
  void *owner;
  size_t message_max; // bytes of a message; the owner raises it when it knows what comes
  bool discards;      // the owner will skip most payloads: they are not read ahead
  enum connection_state state;
  // Private:
  const struct server *server;
  size_t address;
  struct link link;
  struct websocket websocket;
  bool skipping; // the rest of the binary message is not wanted
  char key[HANDSHAKE_KEY_LENGTH + 1];
  uint8_t gathered[MESSAGE_SIZE_MAX]; // the handshake's head, later a text message
  size_t gathered_size;
};

// Connects. False when that failed at once: `lost` has been called, `closed` will not be.
bool connection_start(struct connection *connection, const struct server *server);

// Queues a message; false when there is no room. connection_flush sends what is queued.
bool connection_send(struct connection *connection, enum websocket_opcode opcode, const void *bytes,
                     size_t size);
bool connection_has_room(const struct connection *connection, size_t size);
void connection_flush(struct connection *connection);

// Lets the rest of the binary message go by unread; its last piece is still told.
void connection_skip(struct connection *connection);

// Starts the closing handshake.
void connection_finish(struct connection *connection);

// Closes at once, with a close frame before it where one can be sent and `code` is not 0.
void connection_abort(struct connection *connection, uint16_t code);

#endif
