// SPDX-License-Identifier: Apache-2.0
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "assets.h"
#include "http.h"
#include "io/file.h"
#include "jobs.h"

#define SWEEP_MS          100
#define EXPIRE_MS         2000
#define SPARE_DESCRIPTORS 32 // of the loop, the log and the libraries

static const char drain_reason[] = "the server is shutting down";
#define DRAIN_CODE 1012 // service restart

bool server_ready(const struct server *server) {
  return !server->draining && workers_ready(server->workers);
}

enum refusal server_refusal(const struct server *server, const struct stream_peer *peer) {
  const struct config *config = server->config;
  if (server->finishing)
    return REFUSAL_DRAINING;
  if (!workers_ready(server->workers))
    return REFUSAL_WARMING;
  if (workers_streams(server->workers) + server->upgrading >= (size_t)config->max_sessions)
    return REFUSAL_SESSIONS;
  if (config->max_per_address &&
      workers_streams_from(server->workers, peer) >= (size_t)config->max_per_address)
    return REFUSAL_ADDRESS;
  return workers_overloaded(server->workers) ? REFUSAL_LOAD : REFUSAL_NONE;
}

// Ending -----------------------------------------------------------------------------------------

// Closes every handle, so that uv_run returns when their callbacks have run.
static void stop(struct server *server) {
  if (server->stopping)
    return;
  server->stopping = true;
  workers_stop(server->workers);
  infer_stop(server->infer);
  http_stop(server->http);
  uv_close((uv_handle_t *)&server->sweep, NULL);
  uv_close((uv_handle_t *)&server->grace, NULL);
  uv_close((uv_handle_t *)&server->drain, NULL);
  for (int i = 0; i < 2; i++)
    uv_close((uv_handle_t *)&server->signals[i], NULL);
}

static void stop_when_drained(struct server *server) {
  if (server->finishing && !workers_streams(server->workers) && !server->upgrading &&
      !http_busy(server->http))
    stop(server);
}

static void on_drain_timeout(uv_timer_t *timer) {
  struct server *server = timer->data;
  log_event(LOG_LEVEL_WARN, "drain_timeout", NULL, "%zu streams are cut",
            workers_streams(server->workers));
  stop(server);
}

static uint64_t milliseconds(double seconds) {
  return (uint64_t)(seconds * 1000);
}

static void finish(struct server *server) {
  log_event(LOG_LEVEL_INFO, "finishing", NULL, "%zu streams", workers_streams(server->workers));
  uv_timer_stop(&server->grace);
  server->finishing = true;
  workers_finish(server->workers, DRAIN_CODE, drain_reason);
  job_watchers_sweep(server, true);
  jobs_stop(server->jobs);
  stop_when_drained(server);
}

static void on_grace(uv_timer_t *timer) {
  finish(timer->data);
}

// SIGTERM comes from something that also takes the server out of its balancer, which takes a
// moment; SIGINT comes from a terminal.
static void on_signal(uv_signal_t *signal, int number) {
  struct server *server = signal->data;
  const struct config *config = server->config;
  if (server->finishing) {
    log_event(LOG_LEVEL_WARN, "forced_stop", NULL, "another signal (%s): %zu streams are cut",
              strsignal(number), workers_streams(server->workers));
    server->status = 1;
    stop(server);
    return;
  }
  bool first = !server->draining;
  if (first) {
    log_event(LOG_LEVEL_INFO, "drain", NULL, "%s: not ready any more", strsignal(number));
    server->draining = true;
    uv_timer_start(&server->drain, on_drain_timeout, milliseconds(config->drain_timeout), 0);
  }
  if (first && number == SIGTERM)
    uv_timer_start(&server->grace, on_grace, milliseconds(config->drain_grace), 0);
  else
    finish(server);
}

// Running ----------------------------------------------------------------------------------------

static void on_changed(void *user) {
  struct server *server = user;
  if (!server->ready_logged && workers_ready(server->workers)) {
    server->ready_logged = true;
    log_event(LOG_LEVEL_INFO, "ready", NULL, "every compute thread has warmed up");
  }
}

static void expire_jobs(uv_work_t *work) {
  struct server *server = work->data;
  jobs_expire(server->jobs);
}

static void on_expired(uv_work_t *work, int status) {
  (void)status;
  struct server *server = work->data;
  server->expiring = false;
}

static void sweep_jobs(struct server *server) {
  uint64_t now = uv_now(&server->loop);
  if (jobs_unavailable(server->jobs))
    return;
  job_watchers_sweep(server, false);
  if (server->expiring || server->finishing || now - server->expired < EXPIRE_MS)
    return;
  server->expired = now;
  server->expiring = true;
  server->expiry.data = server;
  uv_queue_work(&server->loop, &server->expiry, expire_jobs, on_expired);
}

static void on_sweep(uv_timer_t *timer) {
  struct server *server = timer->data;
  bool overloaded = workers_overloaded(server->workers);
  if (overloaded != server->overload_logged)
    log_event(LOG_LEVEL_WARN, overloaded ? "load_high" : "load_normal", NULL,
              overloaded ? "frames are late: new streams are refused until they are not"
                         : "frames are on time again: new streams are taken");
  server->overload_logged = overloaded;
  http_sweep(server->http);
  sweep_jobs(server);
  stop_when_drained(server);
}

// Connections and streams hold descriptors; the soft limit of a plain shell is lower than what the
// default caps need.
static int raise_descriptor_limit(const struct config *config, struct dsnet_error *error) {
  struct rlimit limit;
  unsigned long long sockets =
      config_connections(config) + (unsigned long long)config->max_sessions;
  rlim_t needed = sockets + SPARE_DESCRIPTORS;
  if (getrlimit(RLIMIT_NOFILE, &limit))
    return dsnet_error_set(error, DSNET_EIO, "cannot read the descriptor limit: %s",
                           strerror(errno));
  if (limit.rlim_cur >= needed)
    return 0;
  limit.rlim_cur = needed;
  if (needed > limit.rlim_max || setrlimit(RLIMIT_NOFILE, &limit))
    return dsnet_error_set(error, DSNET_ELIMIT,
                           "%llu sockets need %llu descriptors, the process may have %llu "
                           "(ulimit -n); raise it or lower --max-sessions and --max-connections",
                           sockets, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
  return 0;
}

static int start_workers(struct server *server, struct dsnet_error *error) {
  const struct workers_settings settings = {
      .loop = &server->loop,
      .config = server->config,
      .models = server->models,
      .keys = server->keys,
      .changed = on_changed,
      .user = server,
  };
  return workers_new(&server->workers, &settings, error);
}

static void start_handles(struct server *server) {
  static const int numbers[] = {SIGTERM, SIGINT};
  for (int i = 0; i < 2; i++) {
    uv_signal_init(&server->loop, &server->signals[i]);
    server->signals[i].data = server;
    uv_signal_start(&server->signals[i], on_signal, numbers[i]);
  }
  uv_timer_init(&server->loop, &server->sweep);
  uv_timer_init(&server->loop, &server->grace);
  uv_timer_init(&server->loop, &server->drain);
  server->sweep.data = server->grace.data = server->drain.data = server;
  uv_timer_start(&server->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

// The first line of the file.
static int load_operator_token(struct server *server, struct dsnet_error *error) {
  enum { TOKEN_MAX = 4096, TOKEN_MIN = 16 };
  const char *path = server->config->operator_token_file;
  uint8_t *data;
  size_t size;
  if (!path)
    return 0;
  int result = file_read(path, TOKEN_MAX, &data, &size, error);
  if (result < 0)
    return result;
  server->operator_token = strndup((const char *)data, size);
  free(data);
  if (!server->operator_token)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  server->operator_token[strcspn(server->operator_token, "\r\n")] = 0;
  if (strlen(server->operator_token) >= TOKEN_MIN)
    return 0;
  return dsnet_error_set(error, DSNET_EVALUE, "%s: an operator's token has %d characters or more",
                         path, TOKEN_MIN);
}

int server_new(struct server **out, const struct config *config, const struct models *models,
               const struct token_keys *keys, struct dsnet_error *error) {
  *out = NULL;
  int result = raise_descriptor_limit(config, error);
  if (result < 0)
    return result;
  struct server *server = calloc(1, sizeof *server);
  if (!server)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  server->config = config;
  server->models = models;
  server->keys = keys;
  if (uv_loop_init(&server->loop)) {
    free(server);
    return dsnet_error_set(error, DSNET_EIO, "cannot start the event loop");
  }
  log_limit_init(&server->log_limit, uv_now(&server->loop));
  server->started = (double)time(NULL);
  result = load_operator_token(server, error);
  if (result < 0)
    goto fail_token;
  result = assets_new(&server->assets, models, !config->body, error);
  if (result < 0)
    goto fail_token;
  result = jobs_new(&server->jobs, config, models, error);
  if (result < 0)
    goto fail_jobs;
  result = http_new(&server->http, server, error);
  if (result < 0)
    goto fail_http;
  result = infer_new(&server->infer, &server->loop, config, models, error);
  if (result < 0)
    goto fail_infer;
  result = start_workers(server, error);
  if (result < 0)
    goto fail_workers;
  start_handles(server);
  *out = server;
  return 0;

fail_workers:
  infer_stop(server->infer);
fail_infer:
  http_stop(server->http);
  uv_run(&server->loop, UV_RUN_DEFAULT);
  http_free(server->http);
  infer_free(server->infer);
fail_http:
  jobs_free(server->jobs);
fail_jobs:
  assets_free(server->assets);
fail_token:
  uv_loop_close(&server->loop);
  free(server->operator_token);
  free(server);
  return result;
}

const char *server_url(const struct server *server) {
  return http_url(server->http);
}

int server_run(struct server *server) {
  uv_run(&server->loop, UV_RUN_DEFAULT);
  return server->status;
}

void server_free(struct server *server) {
  if (!server)
    return;
  stop(server);
  uv_run(&server->loop, UV_RUN_DEFAULT);
  http_free(server->http);
  jobs_free(server->jobs);
  infer_free(server->infer);
  workers_free(server->workers);
  assets_free(server->assets);
  uv_loop_close(&server->loop);
  free(server->operator_token);
  free(server);
}
