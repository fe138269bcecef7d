// SPDX-License-Identifier: Apache-2.0
// One thread with an event loop that owns some streams: their sockets, sessions and counts, and the
// batcher whose compute threads step them. Streams stay with their worker for life, so nothing of a
// stream is ever shared between loops.
//
// All functions are for one thread, that of the server's own loop.
#ifndef DSNET_SERVER_WORKER_H
#define DSNET_SERVER_WORKER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "batcher.h"
#include "config.h"
#include "metrics.h"
#include "models.h"
#include "stream.h"
#include "token.h"

struct worker;

struct worker_settings {
  const struct config *config;
  const struct models *models;
  const struct token_keys *keys;
  size_t compute_threads;
  // Called by the worker's thread. A socket is given back; the worker has warmed up. Must not
  // block.
  void (*give_back)(void *user, struct stream_socket *socket);
  void (*ready)(void *user);
  void *user;
};

// Starts the thread and its compute threads. What the settings point to must outlive it.
int worker_new(struct worker **worker, const struct worker_settings *settings,
               struct dsnet_error *error);

// Starts a stream on a socket, which is given back when the stream is over.
void worker_give(struct worker *worker, struct stream_socket *socket);

// Whether every compute thread has warmed up, and whether frames are late (see load.h).
bool worker_ready(const struct worker *worker);
bool worker_overloaded(const struct worker *worker);

// Adds to the sums what this worker has counted. Waits for the end of its present turn.
void worker_count(struct worker *worker, struct metrics *metrics, struct metrics_gauges *gauges,
                  struct batcher_counts *counts);
// The same with a description of its sessions; see streams_describe.
bool worker_describe(struct worker *worker, json_t *list);

// Lets every stream, also those still to be started, answer what it has received, send a
// checkpoint, and close.
void worker_finish(struct worker *worker, uint16_t code, const char *reason);

// Drops every stream as it is, and ends. When it returns all sockets have been given back.
void worker_free(struct worker *worker);

#endif
