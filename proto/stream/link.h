// SPDX-License-Identifier: Apache-2.0
// One non-blocking TCP connection on the loop. Its own reads and writes rather than libuv's
// streams, so that a load generator can let the kernel drop what it does not want to see. Loop
// thread.
#ifndef DSNET_STREAM_LINK_H
#define DSNET_STREAM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <uv.h>

#include "stream/outbox.h"

// Errors are libuv's, negative. None of these is called after link_close but `closed`.
struct link_callbacks {
  void (*connected)(void *owner);
  void (*readable)(void *owner);
  void (*drained)(void *owner); // what had to wait has been sent
  void (*failed)(void *owner, int status);
  void (*closed)(void *owner); // the link may be opened again
};

// Set callbacks and owner before link_open.
struct link {
  const struct link_callbacks *callbacks;
  void *owner;
  struct outbox outbox; // put frames here, then link_flush
  // Private:
  uv_poll_t poll;
  int fd, armed;
  bool connected, closing;
};

// Starts to connect, with an empty outbox. Returns 0, and `connected` or `failed` follows; or an
// error, and then there is nothing to close.
int link_open(struct link *link, uv_loop_t *loop, const struct sockaddr *address);

// Up to `size` bytes; 0 when there are none now; UV_EOF or an error.
ssize_t link_read(struct link *link, void *bytes, size_t size);

// The same, but the bytes are dropped inside the kernel where it can (tcp(7), MSG_TRUNC): what
// `scratch` [size] holds afterwards is undefined.
ssize_t link_discard(struct link *link, void *scratch, size_t size);

// Sends what the outbox holds, the rest when the socket can take it. Returns 0 or an error.
int link_flush(struct link *link);

// Closes the socket now; `closed` is called from the loop. Does nothing when that has been done.
void link_close(struct link *link);

#endif
