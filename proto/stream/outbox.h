// SPDX-License-Identifier: Apache-2.0
// The sending side of one connection: a fixed buffer of masked frames in front of a libuv stream.
// Bounded by construction: what does not fit is not taken, and the caller asks before. Loop thread.
#ifndef DSNET_STREAM_OUTBOX_H
#define DSNET_STREAM_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "stream/websocket.h"

#define OUTBOX_SIZE 16384
#define OUTBOX_RESERVE                                                                             \
  (2 * (WEBSOCKET_CONTROL_MAX + WEBSOCKET_HEADER_MAX)) // for a pong and a close

// Masks drawn from the system's generator some hundreds at a time. All zeros is empty. One for all
// connections of a thread.
struct mask_pool {
  uint8_t bytes[1024];
  size_t left;
};

struct outbox {
  uv_stream_t *stream;
  struct mask_pool *masks;
  // Called when a write that had to wait is done: 0, or libuv's error.
  void (*on_drained)(void *owner, int status);
  void *owner;
  // Private:
  uint8_t bytes[OUTBOX_SIZE];
  size_t used, written; // bytes [written, used) are still to be sent
  size_t submitted;     // end of what the pending uv_write covers
  bool busy;
  uv_write_t request;
};

// Whether a frame of `size` payload bytes can be taken. Data leaves the reserve to control frames.
bool outbox_has_room(const struct outbox *outbox, enum websocket_opcode opcode, size_t size);

// Takes a frame; false when there is no room.
bool outbox_put_frame(struct outbox *outbox, enum websocket_opcode opcode, const uint8_t *payload,
                      size_t size);

// Takes bytes as they are (the handshake); false when there is no room.
bool outbox_put_bytes(struct outbox *outbox, const void *bytes, size_t size);

// Sends what is there: at once as far as the socket takes it, the rest when it can. Returns 0 or
// libuv's error.
int outbox_flush(struct outbox *outbox);

#endif
