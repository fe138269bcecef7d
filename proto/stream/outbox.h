// SPDX-License-Identifier: Apache-2.0
// The sending side of one connection: a fixed buffer of masked frames in front of a socket. Bounded
// by construction: what does not fit is not taken, and the caller asks before. One thread.
#ifndef DSNET_STREAM_OUTBOX_H
#define DSNET_STREAM_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream/websocket.h"
#include "wire/message.h"

#define OUTBOX_RESERVE                                                                             \
  (2 * (WEBSOCKET_CONTROL_MAX + WEBSOCKET_HEADER_MAX)) // for a pong and a close
#define OUTBOX_SIZE (MESSAGE_SIZE_MAX + WEBSOCKET_HEADER_MAX + OUTBOX_RESERVE)

// Masks drawn from the system's generator some hundreds at a time. All zeros is empty. One for all
// connections of a thread.
struct mask_pool {
  uint8_t bytes[1024];
  size_t left;
};

// All zeros is empty.
struct outbox {
  uint8_t bytes[OUTBOX_SIZE];
  size_t used; // bytes that are still to be sent
};

// Whether a frame of `size` payload bytes can be taken. Data leaves the reserve to control frames.
bool outbox_has_room(const struct outbox *outbox, enum websocket_opcode opcode, size_t size);

// Takes a frame; false when there is no room.
bool outbox_put_frame(struct outbox *outbox, struct mask_pool *masks, enum websocket_opcode opcode,
                      const uint8_t *payload, size_t size);

// Takes bytes as they are (the handshake); false when there is no room.
bool outbox_put_bytes(struct outbox *outbox, const void *bytes, size_t size);

bool outbox_is_empty(const struct outbox *outbox);

// Sends as much as the socket takes now. Returns the bytes sent, or a negated errno.
ssize_t outbox_flush(struct outbox *outbox, int fd);

#endif
