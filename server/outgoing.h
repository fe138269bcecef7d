// SPDX-License-Identifier: Apache-2.0
// Bytes on their way to a socket: a link of a send queue. Whoever queues one gives it away; it
// comes back through `release` when its last byte is written or the connection is gone.
#ifndef DSNET_SERVER_OUTGOING_H
#define DSNET_SERVER_OUTGOING_H

#include <stddef.h>
#include <stdint.h>

struct outgoing {
  struct outgoing *next;
  const uint8_t *bytes; // a whole WebSocket frame, header included
  size_t size;
  void (*release)(struct outgoing *outgoing, void *user);
};

#endif
