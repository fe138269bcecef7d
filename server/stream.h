// SPDX-License-Identifier: Apache-2.0
// One streaming connection: the socket of an upgraded request, its WebSocket and its session.
// Reads as long as the session has room, writes as long as the socket takes, and ends in one of
// three ways: finished (what was received is answered, then a close frame, also when the peer broke
// a rule), failed (a close frame at once), or gone (the peer vanished). All functions are for the
// thread of its loop.
#ifndef DSNET_SERVER_STREAM_H
#define DSNET_SERVER_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "config.h"
#include "log.h"
#include "session.h"
#include "websocket.h"

struct stream;

// Whose socket it is, as accept told.
struct stream_peer {
  int family;          // AF_INET or AF_INET6
  uint8_t address[16]; // in network order, zeros after it
};

// A socket lent to a stream. Whoever made it gets it back and closes it.
struct stream_socket {
  struct stream_socket *next, **link; // in the lender's list
  struct stream_socket *next_given;   // in the list it is handed over by
  int fd;
  size_t worker; // whose stream has it
  struct stream_peer peer;
  size_t extra_size; // bytes that came with the handshake
  uint8_t extra[];
};

// What the streams of one loop share. The owner fills the upper part and starts from {0}.
struct streams {
  uv_loop_t *loop;
  const struct config *config;
  struct session_services services;
  struct log_limit *log_limit;
  // Gives a socket back, of which the loop knows nothing any more.
  void (*give_back)(void *user, struct stream_socket *socket);
  void *user;

  struct stream *first; // those that are not gone
  size_t count;         // of them
  size_t leaving;       // gone, their handles still being closed
  struct websocket_spare spare;
};

// Starts a stream on a socket; on failure it has been given back.
void stream_start(struct streams *streams, struct stream_socket *socket);

// Sends out the results that compute threads have finished.
void streams_deliver(struct streams *streams);

// Applies the idle and close time-outs. To be called now and then; the times are as coarse as that.
void streams_sweep(struct streams *streams);

// Lets every stream answer what it has received, send a checkpoint, and close with `code`.
void streams_finish(struct streams *streams, uint16_t code, const char *reason);

// Sessions open, and the frames of all that are in flight.
size_t streams_sessions(const struct streams *streams, size_t *in_flight);
// Adds an object for each session to an array, for operators; nothing of its motion. False when
// memory is out.
bool streams_describe(const struct streams *streams, json_t *list);

// Drops every stream as it is; none may be started after it. They have left when the loop has run
// and `leaving` is 0.
void streams_abort(struct streams *streams);

#endif
