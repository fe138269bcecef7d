// SPDX-License-Identifier: Apache-2.0
// dsnetd as a whole: the server's own event loop, which has HTTP and signals, and the workers,
// which have the streams. All of this is for the thread that calls server_run.
#ifndef DSNET_SERVER_SERVER_H
#define DSNET_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "config.h"
#include "infer.h"
#include "job_events.h"
#include "log.h"
#include "metrics.h"
#include "models.h"
#include "workers.h"

struct assets;
struct http;
struct jobs;

// Visible to the files of this folder.
struct server {
  const struct config *config;
  const struct models *models;
  const struct token_keys *keys;
  uv_loop_t loop;
  uv_signal_t signals[2];
  uv_timer_t sweep, grace, drain;
  struct workers *workers;
  struct infer *infer;
  struct http *http;
  struct assets *assets; // what it answers with that does not change
  struct jobs *jobs;
  struct job_watchers watchers;
  size_t downloads; // of results, at once
  uv_work_t expiry; // of jobs
  bool expiring;
  uint64_t expired; // loop time of the last look, ms
  struct log_limit log_limit;
  struct metrics metrics; // of what the workers do not count
  double started;         // seconds since the epoch
  char *operator_token;   // NULL without one
  size_t upgrading;       // handshakes accepted whose socket has not been handed over yet
  bool ready_logged, overload_logged;
  bool draining;  // told to end: not ready any more
  bool finishing; // and past the grace: no new streams, and those there are end
  bool stopping;
  int status; // what server_run returns
};

// Binds the port and starts the compute threads. Settings, models and keys must outlive the server.
int server_new(struct server **server, const struct config *config, const struct models *models,
               const struct token_keys *keys, struct dsnet_error *error);
// "http://127.0.0.1:8080", with the port that was bound.
const char *server_url(const struct server *server);
// Serves until SIGTERM or SIGINT has been answered. 0 after an orderly end, 1 after a forced one.
int server_run(struct server *server);
void server_free(struct server *server);

// Whether streams can be served now: every compute thread has warmed up and the server has not been
// told to end.
bool server_ready(const struct server *server);
// Why no further stream of this peer can be accepted, if it cannot.
enum refusal server_refusal(const struct server *server, const struct stream_peer *peer);

#endif
