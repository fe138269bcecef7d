// SPDX-License-Identifier: Apache-2.0
#include "workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "worker.h"

struct workers {
  struct workers_settings settings;
  size_t count;
  struct worker **items; // [count]
  size_t *streams;       // [count]: sockets that each has
  size_t lent;
  struct stream_socket *first; // those lent
  uv_async_t news;             // sockets came back, or a worker has warmed up

  pthread_mutex_t lock;
  struct stream_socket *returned; // under the lock
};

// Called by the workers' threads.
static void give_back(void *user, struct stream_socket *socket) {
  struct workers *workers = user;
  pthread_mutex_lock(&workers->lock);
  bool first = !workers->returned;
  socket->next_given = workers->returned;
  workers->returned = socket;
  pthread_mutex_unlock(&workers->lock);
  if (first)
    uv_async_send(&workers->news);
}

static void tell_ready(void *user) {
  struct workers *workers = user;
  uv_async_send(&workers->news);
}

static void close_socket(struct workers *workers, struct stream_socket *socket) {
  close(socket->fd);
  *socket->link = socket->next;
  if (socket->next)
    socket->next->link = socket->link;
  workers->streams[socket->worker]--;
  workers->lent--;
  free(socket);
}

static void close_returned(struct workers *workers) {
  pthread_mutex_lock(&workers->lock);
  struct stream_socket *socket = workers->returned;
  workers->returned = NULL;
  pthread_mutex_unlock(&workers->lock);
  for (struct stream_socket *next; socket; socket = next) {
    next = socket->next_given;
    close_socket(workers, socket);
  }
}

static void on_news(uv_async_t *async) {
  struct workers *workers = async->data;
  close_returned(workers);
  workers->settings.changed(workers->settings.user);
}

static size_t worker_count_wanted(const struct config *config, size_t threads) {
  size_t wanted = config->workers ? (size_t)config->workers : threads;
  return wanted < threads ? wanted : threads;
}

int workers_new(struct workers **out, const struct workers_settings *settings,
                struct dsnet_error *error) {
  *out = NULL;
  const struct config *config = settings->config;
  size_t threads = config->threads ? (size_t)config->threads : uv_available_parallelism();
  size_t wanted = worker_count_wanted(config, threads);
  struct workers *workers = calloc(1, sizeof *workers);
  if (!workers)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  workers->settings = *settings;
  pthread_mutex_init(&workers->lock, NULL);
  uv_async_init(settings->loop, &workers->news, on_news);
  workers->news.data = workers;
  workers->items = calloc(wanted, sizeof(struct worker *));
  workers->streams = calloc(wanted, sizeof *workers->streams);
  int result = 0;
  if (!workers->items || !workers->streams)
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  for (size_t i = 0; i < wanted && result == 0; i++) {
    const struct worker_settings worker = {
        .config = config,
        .models = settings->models,
        .keys = settings->keys,
        .compute_threads = threads * (i + 1) / wanted - threads * i / wanted,
        .give_back = give_back,
        .ready = tell_ready,
        .user = workers,
    };
    result = worker_new(&workers->items[i], &worker, error);
    workers->count += result == 0;
  }
  *out = workers;
  if (result < 0) {
    workers_stop(workers);
    uv_run(settings->loop, UV_RUN_NOWAIT);
    workers_free(workers);
    *out = NULL;
  }
  return result;
}

static size_t least_loaded(const struct workers *workers) {
  size_t best = 0;
  for (size_t i = 1; i < workers->count; i++)
    if (workers->streams[i] < workers->streams[best])
      best = i;
  return best;
}

void workers_give(struct workers *workers, int fd, const struct stream_peer *peer,
                  const char *extra, size_t extra_size) {
  struct stream_socket *socket = calloc(1, sizeof *socket + extra_size);
  if (!socket) {
    log_event(LOG_LEVEL_WARN, "stream_refused", NULL, "out of memory for a stream");
    close(fd);
    return;
  }
  socket->fd = fd;
  socket->peer = *peer;
  socket->worker = least_loaded(workers);
  socket->extra_size = extra_size;
  if (extra_size)
    memcpy(socket->extra, extra, extra_size);
  socket->next = workers->first;
  socket->link = &workers->first;
  if (socket->next)
    socket->next->link = &socket->next;
  workers->first = socket;
  workers->lent++;
  workers->streams[socket->worker]++;
  worker_give(workers->items[socket->worker], socket);
}

size_t workers_streams(const struct workers *workers) {
  return workers->lent;
}

size_t workers_streams_from(const struct workers *workers, const struct stream_peer *peer) {
  size_t count = 0;
  for (const struct stream_socket *socket = workers->first; socket; socket = socket->next)
    count += !memcmp(&socket->peer, peer, sizeof *peer);
  return count;
}

bool workers_ready(const struct workers *workers) {
  bool ready = true;
  for (size_t i = 0; i < workers->count; i++)
    ready = ready && worker_ready(workers->items[i]);
  return ready;
}

bool workers_overloaded(const struct workers *workers) {
  bool overloaded = false;
  for (size_t i = 0; i < workers->count; i++)
    overloaded = overloaded || worker_overloaded(workers->items[i]);
  return overloaded;
}

void workers_count(struct workers *workers, struct metrics *metrics, struct metrics_gauges *gauges,
                   struct batcher_counts *counts) {
  for (size_t i = 0; i < workers->count; i++)
    worker_count(workers->items[i], metrics, gauges, counts);
}

json_t *workers_describe(struct workers *workers) {
  json_t *list = json_array();
  bool complete = list != NULL;
  for (size_t i = 0; i < workers->count && complete; i++)
    complete = worker_describe(workers->items[i], list);
  if (complete)
    return list;
  json_decref(list);
  return NULL;
}

void workers_finish(struct workers *workers, uint16_t code, const char *reason) {
  for (size_t i = 0; i < workers->count; i++)
    worker_finish(workers->items[i], code, reason);
}

void workers_stop(struct workers *workers) {
  for (size_t i = 0; i < workers->count; i++)
    worker_free(workers->items[i]);
  workers->count = 0;
  close_returned(workers);
  uv_close((uv_handle_t *)&workers->news, NULL);
}

void workers_free(struct workers *workers) {
  if (!workers)
    return;
  pthread_mutex_destroy(&workers->lock);
  free(workers->items);
  free(workers->streams);
  free(workers);
}
