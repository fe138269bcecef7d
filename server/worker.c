// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uv.h>

#include "load.h"
#include "log.h"

#define TRIM_MS  5000
#define SWEEP_MS 100

struct worker {
  struct worker_settings settings;
  pthread_t thread;
  atomic_bool overloaded;

  // The worker's thread only, once it runs.
  uv_loop_t loop;
  uv_async_t finished; // compute threads have results, or have warmed up
  uv_async_t mail;     // there is something in the box
  uv_timer_t sweep, trim;
  uv_prepare_t before_wait; // compute threads are woken for what a turn of the loop brought
  struct batcher *batcher;
  struct streams streams;
  struct metrics metrics;
  struct load load;
  struct log_limit log_limit;
  bool ready_told;

  // The box, in which the server's loop leaves what it wants. Under the lock.
  pthread_mutex_t lock;
  pthread_cond_t answered;
  struct stream_socket *first, **end; // streams to start, oldest first
  uint16_t finish_code;               // 0: not to finish
  const char *finish_reason;
  void (*question)(struct worker *worker, void *argument); // asked by a caller who waits
  void *question_argument;
  bool stop;
};

// The worker's thread ----------------------------------------------------------------------------

static void wake(void *user) {
  struct worker *worker = user;
  uv_async_send(&worker->finished);
}

static void on_finished(uv_async_t *async) {
  struct worker *worker = async->data;
  if (!worker->ready_told && batcher_ready(worker->batcher)) {
    worker->ready_told = true;
    worker->settings.ready(worker->settings.user);
  }
  streams_deliver(&worker->streams);
}

static void on_sweep(uv_timer_t *timer) {
  struct worker *worker = timer->data;
  load_turn(&worker->load, uv_now(&worker->loop));
  atomic_store_explicit(&worker->overloaded, worker->load.overloaded, memory_order_relaxed);
  streams_sweep(&worker->streams);
}

static void on_trim(uv_timer_t *timer) {
  struct worker *worker = timer->data;
  batcher_trim(worker->batcher);
}

static void on_before_wait(uv_prepare_t *prepare) {
  struct worker *worker = prepare->data;
  batcher_kick(worker->batcher);
}

// Closes every handle, so that uv_run returns when their callbacks have run.
static void stop(struct worker *worker) {
  streams_abort(&worker->streams);
  // Its threads must be gone before the handle they wake is closed.
  batcher_free(worker->batcher);
  uv_handle_t *handles[] = {(uv_handle_t *)&worker->finished, (uv_handle_t *)&worker->mail,
                            (uv_handle_t *)&worker->sweep, (uv_handle_t *)&worker->trim,
                            (uv_handle_t *)&worker->before_wait};
  for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++)
    uv_close(handles[i], NULL);
}

static void on_mail(uv_async_t *async) {
  struct worker *worker = async->data;
  pthread_mutex_lock(&worker->lock);
  struct stream_socket *socket = worker->first;
  worker->first = NULL;
  worker->end = &worker->first;
  uint16_t finish_code = worker->finish_code;
  bool stopping = worker->stop;
  if (worker->question) {
    worker->question(worker, worker->question_argument);
    worker->question = NULL;
    pthread_cond_signal(&worker->answered);
  }
  pthread_mutex_unlock(&worker->lock);
  for (struct stream_socket *next; socket; socket = next) {
    next = socket->next_given;
    stream_start(&worker->streams, socket);
  }
  if (finish_code)
    streams_finish(&worker->streams, finish_code, worker->finish_reason);
  if (stopping)
    stop(worker);
}

static void *run(void *user) {
  struct worker *worker = user;
  uv_run(&worker->loop, UV_RUN_DEFAULT);
  return NULL;
}

// Starting ---------------------------------------------------------------------------------------

static int start_batcher(struct worker *worker, struct dsnet_error *error) {
  const struct config *config = worker->settings.config;
  const struct models *models = worker->settings.models;
  const struct net *nets[OPTION_LIST_MAX];
  for (size_t i = 0; i < models->count; i++)
    nets[i] = models->items[i].net;
  const struct batcher_settings settings = {
      .threads = worker->settings.compute_threads,
      .max_batch = (size_t)config->max_batch,
      .frames_in_flight = (size_t)config->frames_in_flight,
      .nets = nets,
      .net_count = models->count,
      .body = models->body,
      .wake = wake,
      .user = worker,
  };
  return batcher_new(&worker->batcher, &settings, error);
}

static void init_streams(struct worker *worker) {
  const struct config *config = worker->settings.config;
  worker->streams = (struct streams){
      .loop = &worker->loop,
      .config = config,
      .services = {.batcher = worker->batcher,
                   .models = worker->settings.models,
                   .keys = worker->settings.keys,
                   .metrics = &worker->metrics,
                   .load = &worker->load,
                   .token_max_age_ms = (uint64_t)(config->token_max_age * 1000),
                   .frames_in_flight = (size_t)config->frames_in_flight,
                   .max_message = (size_t)config->max_message},
      .log_limit = &worker->log_limit,
      .give_back = worker->settings.give_back,
      .user = worker->settings.user,
  };
}

static void init_handles(struct worker *worker) {
  uv_async_init(&worker->loop, &worker->mail, on_mail);
  uv_timer_init(&worker->loop, &worker->sweep);
  uv_timer_init(&worker->loop, &worker->trim);
  uv_prepare_init(&worker->loop, &worker->before_wait);
  worker->mail.data = worker->sweep.data = worker->trim.data = worker->before_wait.data = worker;
  uv_timer_start(&worker->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
  uv_timer_start(&worker->trim, on_trim, TRIM_MS, TRIM_MS);
  uv_prepare_start(&worker->before_wait, on_before_wait);
}

static void deinit(struct worker *worker) {
  uv_loop_close(&worker->loop);
  pthread_cond_destroy(&worker->answered);
  pthread_mutex_destroy(&worker->lock);
  free(worker);
}

int worker_new(struct worker **out, const struct worker_settings *settings,
               struct dsnet_error *error) {
  *out = NULL;
  struct worker *worker = calloc(1, sizeof *worker);
  if (!worker)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a worker");
  if (uv_loop_init(&worker->loop)) {
    free(worker);
    return dsnet_error_set(error, DSNET_EIO, "cannot start an event loop");
  }
  worker->settings = *settings;
  worker->end = &worker->first;
  pthread_mutex_init(&worker->lock, NULL);
  pthread_cond_init(&worker->answered, NULL);
  load_init(&worker->load, settings->config->max_late, uv_now(&worker->loop));
  log_limit_init(&worker->log_limit, uv_now(&worker->loop));
  uv_async_init(&worker->loop, &worker->finished, on_finished);
  worker->finished.data = worker;
  int result = start_batcher(worker, error);
  if (result < 0) {
    uv_close((uv_handle_t *)&worker->finished, NULL);
    uv_run(&worker->loop, UV_RUN_DEFAULT);
    deinit(worker);
    return result;
  }
  init_streams(worker);
  init_handles(worker);
  if (pthread_create(&worker->thread, NULL, run, worker)) {
    stop(worker);
    uv_run(&worker->loop, UV_RUN_DEFAULT);
    deinit(worker);
    return dsnet_error_set(error, DSNET_EIO, "cannot start a worker's thread");
  }
  *out = worker;
  return 0;
}

// The server's side ------------------------------------------------------------------------------

void worker_give(struct worker *worker, struct stream_socket *socket) {
  pthread_mutex_lock(&worker->lock);
  socket->next_given = NULL;
  *worker->end = socket;
  worker->end = &socket->next_given;
  pthread_mutex_unlock(&worker->lock);
  uv_async_send(&worker->mail);
}

bool worker_ready(const struct worker *worker) {
  return batcher_ready(worker->batcher);
}

bool worker_overloaded(const struct worker *worker) {
  return atomic_load_explicit(&worker->overloaded, memory_order_relaxed);
}

// Has the worker's thread answer a question between two of its callbacks, and waits for that.
static void ask(struct worker *worker, void (*question)(struct worker *worker, void *argument),
                void *argument) {
  pthread_mutex_lock(&worker->lock);
  worker->question = question;
  worker->question_argument = argument;
  uv_async_send(&worker->mail);
  while (worker->question)
    pthread_cond_wait(&worker->answered, &worker->lock);
  pthread_mutex_unlock(&worker->lock);
}

struct sums {
  struct metrics *metrics;
  struct metrics_gauges *gauges;
  struct batcher_counts *counts;
};

static void add_up(struct worker *worker, void *argument) {
  const struct sums *sums = argument;
  size_t in_flight;
  metrics_add(sums->metrics, &worker->metrics);
  sums->gauges->sessions += streams_sessions(&worker->streams, &in_flight);
  sums->gauges->in_flight += in_flight;
  batcher_add_counts(worker->batcher, sums->counts);
}

void worker_count(struct worker *worker, struct metrics *metrics, struct metrics_gauges *gauges,
                  struct batcher_counts *counts) {
  ask(worker, add_up, &(struct sums){metrics, gauges, counts});
}

struct description {
  json_t *list;
  bool complete;
};

static void describe(struct worker *worker, void *argument) {
  struct description *description = argument;
  description->complete = streams_describe(&worker->streams, description->list);
}

bool worker_describe(struct worker *worker, json_t *list) {
  struct description description = {.list = list};
  ask(worker, describe, &description);
  return description.complete;
}

void worker_finish(struct worker *worker, uint16_t code, const char *reason) {
  pthread_mutex_lock(&worker->lock);
  worker->finish_code = code;
  worker->finish_reason = reason;
  pthread_mutex_unlock(&worker->lock);
  uv_async_send(&worker->mail);
}

void worker_free(struct worker *worker) {
  if (!worker)
    return;
  pthread_mutex_lock(&worker->lock);
  worker->stop = true;
  pthread_mutex_unlock(&worker->lock);
  uv_async_send(&worker->mail);
  pthread_join(worker->thread, NULL);
  deinit(worker);
}
