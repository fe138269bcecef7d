// SPDX-License-Identifier: Apache-2.0
// All workers, and the sockets lent to their streams. A new stream goes to the worker that has the
// fewest. Functions are for the thread of the server's own loop.
#ifndef DSNET_SERVER_WORKERS_H
#define DSNET_SERVER_WORKERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "config.h"
#include "metrics.h"
#include "models.h"
#include "stream.h"
#include "token.h"

struct workers;

struct workers_settings {
  uv_loop_t *loop; // the server's own
  const struct config *config;
  const struct models *models;
  const struct token_keys *keys;
  // On the server's loop: something has changed. Streams are over, or a worker has warmed up.
  void (*changed)(void *user);
  void *user;
};

int workers_new(struct workers **workers, const struct workers_settings *settings,
                struct dsnet_error *error);

// Starts a stream on a socket, which is closed when the stream is over, or now when memory is out.
// `extra` are bytes that came with the handshake; they are copied.
void workers_give(struct workers *workers, int fd, const struct stream_peer *peer,
                  const char *extra, size_t extra_size);

// Sockets lent, all and of one peer.
size_t workers_streams(const struct workers *workers);
size_t workers_streams_from(const struct workers *workers, const struct stream_peer *peer);

bool workers_ready(const struct workers *workers);      // all have warmed up
bool workers_overloaded(const struct workers *workers); // any has, for they share the machine

// Adds to the sums what all have counted.
void workers_count(struct workers *workers, struct metrics *metrics, struct metrics_gauges *gauges,
                   struct batcher_counts *counts);
// An array with an object for each session; see streams_describe. NULL when memory is out.
json_t *workers_describe(struct workers *workers);

// Lets every stream end in order with a close of `code`, also those that are given later.
void workers_finish(struct workers *workers, uint16_t code, const char *reason);

// Drops every stream, waits for the threads, and closes all sockets and the loop's handles; the
// loop has to run once more before workers_free.
void workers_stop(struct workers *workers);
void workers_free(struct workers *workers);

#endif
