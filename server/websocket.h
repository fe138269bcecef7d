// SPDX-License-Identifier: Apache-2.0
// One WebSocket connection as a server sees it (RFC 6455): bytes in become messages, messages and
// control frames out become bytes. Never touches a socket: it reads through a callback, and what it
// wants written is asked for and acknowledged.
//
// Framing and unmasking are wslay's frame layer; its event layer would allocate the length that a
// frame declares, once per fragment, and keep every pong. Here a message that arrived in one piece
// is handed over in place; only one that came in pieces is copied, into a buffer that never grows
// beyond max_message, however many fragments there are. Pongs wait in a small fixed room; when it
// is full only the newest ping is answered (section 5.5.3 allows that), so nothing a peer sends can
// grow a queue. A frame that may not be is refused at its header, however long its payload takes.
//
// wslay's context of a connection is its largest part, 4 kB, and says nothing between two frames.
// So a connection has one only while it has read a part of a frame or is paused, and the
// connections of a thread share a spare.
#ifndef DSNET_SERVER_WEBSOCKET_H
#define DSNET_SERVER_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "outgoing.h"
#include "utf8.h"

#define WEBSOCKET_CONTROL_MAX 125 // payload bytes of a control frame
#define WEBSOCKET_HEADER_MAX  10  // bytes of an unmasked frame header
#define WEBSOCKET_PONGS       256 // bytes of pongs that wait; at least two of the longest

enum websocket_code {
  WEBSOCKET_NORMAL = 1000,
  WEBSOCKET_GOING_AWAY = 1001,
  WEBSOCKET_PROTOCOL_ERROR = 1002,
  WEBSOCKET_NO_STATUS = 1005, // never sent: a close frame without a code was received
  WEBSOCKET_BAD_DATA = 1007,
  WEBSOCKET_POLICY = 1008,
  WEBSOCKET_TOO_BIG = 1009,
  WEBSOCKET_INTERNAL = 1011,
  WEBSOCKET_RESTART = 1012,
};

struct websocket_callbacks {
  // Reads at most `size` bytes: how many, 0 when there are none now, -1 at the end of the stream.
  ssize_t (*read)(void *user, uint8_t *bytes, size_t size);
  // A whole message; a text is valid UTF-8. The bytes are the callback's only while it runs. It may
  // pause, close or fail the connection.
  void (*message)(void *user, bool text, const uint8_t *bytes, size_t size);
};

struct websocket_frames;

// What the connections of one thread share. Starts from {0}; must outlive them.
struct websocket_spare {
  struct websocket_frames *frames; // wslay's context that none of them uses, or NULL
};

// Visible so that it can be part of its owner; use the functions.
struct websocket {
  struct websocket_spare *spare;
  struct websocket_frames *frames; // NULL between frames
  const struct websocket_callbacks *callbacks;
  void *user;

  // Receiving.
  size_t max_message;
  uint8_t *message; // pieces of the current message
  size_t message_size, message_capacity;
  uint64_t frame_received; // payload bytes of the current frame so far
  struct utf8_state utf8;
  uint8_t opcode; // of the current message; 0 between messages
  bool in_frame, got_bytes;
  uint8_t peeked[WEBSOCKET_HEADER_MAX]; // header of the frame last read from the peer, as it comes
  uint8_t peeked_size;
  uint64_t peeked_left; // bytes of that frame still to be read, mask included; 0: of its header too
  bool paused;          // by the owner, between two messages
  bool ended;           // the peer's end of stream was read
  bool stopped;    // nothing is read any more: a close frame was received, or a rule was broken
  bool discarding; // messages are no longer handed over
  uint8_t control_received_size;
  uint8_t control_received[WEBSOCKET_CONTROL_MAX];

  // Sending.
  struct outgoing *first, **end;
  size_t queued;                              // messages waiting or partly written
  size_t first_written;                       // bytes of the first that are written
  uint8_t control_size, control_written;      // the control frame being written, 0: none
  uint8_t control[2 + WEBSOCKET_CONTROL_MAX]; //
  uint16_t pongs_size;                        // bytes of
  uint8_t pongs[WEBSOCKET_PONGS];             // whole pong frames that wait, oldest first
  uint8_t close_size, close_frame[WEBSOCKET_CONTROL_MAX]; // payload of the close that waits
  bool ping_waits, close_waits, close_loaded;

  // What has happened.
  bool close_sent;         // written to the last byte
  bool failed;             // websocket_fail was called
  uint16_t violation;      // the close code that RFC 6455 has for the rule the peer broke; 0: none
  const char *violated;    // that rule, for the close frame; a constant
  uint16_t close_received; // the peer's code, WEBSOCKET_NO_STATUS without one; 0: none received
  uint16_t close_code;     // the one queued here; 0: none
};

// `callbacks` must outlive the connection.
void websocket_init(struct websocket *ws, size_t max_message, struct websocket_spare *spare,
                    const struct websocket_callbacks *callbacks, void *user);
// Releases what is queued and frees what was allocated.
void websocket_deinit(struct websocket *ws);
// When the last of them is gone.
void websocket_spare_free(struct websocket_spare *spare);

// Reads and hands over messages until the read callback has nothing, the connection is paused, or
// it is over. Look at `ended`, `close_received`, `violation` and `failed` afterwards. After a
// violation nothing more is read; the owner answers what came before it and then closes with its
// code. When memory is out it fails with 1011.
void websocket_receive(struct websocket *ws);

// Appends a message; ownership moves, also when the connection is closing (it is released then).
void websocket_queue(struct websocket *ws, struct outgoing *outgoing);
// Takes back the messages with this release function of which no byte has been written, and
// releases them. Returns how many.
size_t websocket_withdraw(struct websocket *ws,
                          void (*release)(struct outgoing *outgoing, void *user));
// The same as websocket_queue with a copy of a text. -1 when memory is out.
int websocket_queue_text(struct websocket *ws, const char *text, size_t size);
// Writes the header of a whole binary message of `size` bytes so that it ends at `end`; returns its
// length, at most WEBSOCKET_HEADER_MAX.
size_t websocket_binary_header(uint8_t *end, size_t size);
// The same of a text message.
size_t websocket_text_header(uint8_t *end, size_t size);

// Sends an empty ping between two messages.
void websocket_ping(struct websocket *ws);

// Sends a close frame when all that is queued has been written; no message can be queued or is
// handed over any more. The first close wins. WEBSOCKET_NO_STATUS sends one without a code.
void websocket_close(struct websocket *ws, uint16_t code, const char *reason);
// The same at once: drops what is queued, save the rest of a frame begun, and stops reading.
void websocket_fail(struct websocket *ws, uint16_t code, const char *reason);

// What to write next, control frames between messages; 0 when there is nothing.
int websocket_output(struct websocket *ws, struct iovec *vectors, int max);
// `size` bytes of what websocket_output gave have been written.
void websocket_written(struct websocket *ws, size_t size);

#endif
