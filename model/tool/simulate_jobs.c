// SPDX-License-Identifier: Apache-2.0
#include "simulate_jobs.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "interrupt.h"
#include "progress.h"
#include "sim/simulation.h"

#define PATH_SIZE 4096

// Shared by the workers; `lock` guards everything below it.
struct pool {
  const struct simulate_plan *plan;
  pthread_mutex_t lock;
  pthread_cond_t changed; // a worker has left
  size_t next;            // sequence to be taken
  size_t frames;          // simulated so far
  int running;            // workers
  bool stop;              // one has failed
  struct dsnet_error error;
  struct simulate_result result;
};

int simulate_path(char *path, size_t size, const char *folder, const char *name,
                  const char *extension, struct dsnet_error *error) {
  int length = snprintf(path, size, "%s/%s%s", folder, name, extension);
  if (length < 0 || (size_t)length >= size)
    return dsnet_error_set(error, DSNET_ELIMIT, "%s: the path is too long", name);
  return DSNET_OK;
}

static bool pool_stopped(struct pool *pool) {
  pthread_mutex_lock(&pool->lock);
  bool stop = pool->stop;
  pthread_mutex_unlock(&pool->lock);
  return stop || interrupt_seen();
}

static void pool_advance(struct pool *pool, size_t frames, double largest) {
  pthread_mutex_lock(&pool->lock);
  pool->frames += frames;
  pool->result.frames += frames;
  pool->result.largest = fmax(pool->result.largest, largest);
  pthread_mutex_unlock(&pool->lock);
}

static double displacement_largest(const float *displacement, size_t vertices) {
  float square = 0;
  for (size_t v = 0; v < vertices; v++) {
    const float *d = displacement + 3 * v;
    square = fmaxf(square, d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
  }
  return sqrt(square);
}

// Runs the simulation through its clip, handing frames to the writer a chunk at a time.
static int frames_write(struct pool *pool, struct simulation *simulation,
                        struct dyna_writer *writer, float *displacement, float *posed,
                        struct dsnet_error *error) {
  const size_t vertices = body_vertices(tissue_body(pool->plan->tissue));
  size_t held = 0;
  double largest = 0;
  bool more = true;
  while (more) {
    more = simulation_next(simulation, displacement);
    if (more) {
      simulation_pose(simulation, displacement, posed + held++ * vertices * 3);
      largest = fmax(largest, displacement_largest(displacement, vertices));
    }
    if (held == DYNA_CHUNK_FRAMES || (!more && held > 0)) {
      int code = dyna_writer_append(writer, posed, held, error);
      if (code != DSNET_OK)
        return code;
      pool_advance(pool, held, largest);
      held = 0;
      if (pool_stopped(pool))
        return dsnet_error_set(error, DSNET_ECANCELLED, "stopped");
    }
  }
  return DSNET_OK;
}

// The poses beside the vertices, with the shape they belong to.
static int clip_write(const struct simulate_plan *plan, const struct sequence *sequence,
                      struct dsnet_error *error) {
  char path[PATH_SIZE];
  int code = simulate_path(path, sizeof path, plan->folder, sequence->name, ".npz", error);
  if (code != DSNET_OK)
    return code;
  struct clip clip = *sequence->clip;
  memset(clip.betas, 0, sizeof clip.betas);
  memcpy(clip.betas, sequence->betas, sizeof sequence->betas);
  clip.betas_count = BODY_SHAPES_MAX;
  return clip_save(&clip, path, error);
}

static int sequence_run(struct pool *pool, const struct sequence *sequence, float *displacement,
                        float *posed, struct dsnet_error *error) {
  const struct simulate_plan *plan = pool->plan;
  const struct body *body = tissue_body(plan->tissue);
  char path[PATH_SIZE];
  struct simulation *simulation = NULL;
  struct dyna_writer *writer = NULL;
  int code = simulate_path(path, sizeof path, plan->folder, sequence->name, ".hdf5", error);
  if (code == DSNET_OK)
    code = clip_write(plan, sequence, error);
  if (code == DSNET_OK)
    code = simulation_new(&simulation, plan->tissue, sequence->betas, BODY_SHAPES_MAX, error);
  if (code == DSNET_OK)
    code = simulation_start(simulation, sequence->clip, error);
  if (code == DSNET_OK)
    code = dyna_writer_open(&writer, path, body_triangles(body), body_faces(body),
                            body_vertices(body), plan->deflate, error);
  if (code == DSNET_OK)
    code = dyna_writer_begin(writer, sequence->name, error);
  if (code == DSNET_OK)
    code = frames_write(pool, simulation, writer, displacement, posed, error);
  if (code == DSNET_OK)
    code = dyna_writer_end(writer, error);
  if (code == DSNET_OK)
    code = dyna_writer_close(writer, error);
  else
    dyna_writer_abort(writer);
  simulation_free(simulation);
  if (code != DSNET_OK)
    dsnet_error_prefix(error, "%s", sequence->name);
  return code;
}

// The next sequence to do, or NULL.
static const struct sequence *sequence_take(struct pool *pool) {
  const struct sequence *taken = NULL;
  pthread_mutex_lock(&pool->lock);
  while (!taken && !pool->stop && !interrupt_seen() && pool->next < pool->plan->count) {
    const struct sequence *sequence = &pool->plan->sequences[pool->next++];
    if (!sequence->done)
      taken = sequence;
  }
  pthread_mutex_unlock(&pool->lock);
  return taken;
}

static void *worker(void *argument) {
  struct pool *pool = argument;
  const size_t vertices = body_vertices(tissue_body(pool->plan->tissue));
  struct dsnet_error error = {0};
  float *displacement = memory_alloc(vertices, 3 * sizeof *displacement);
  float *posed = memory_alloc(vertices, 3 * DYNA_CHUNK_FRAMES * sizeof *posed);
  int code = DSNET_OK;
  if (!displacement || !posed)
    code = dsnet_error_set(&error, DSNET_ENOMEM, "no memory for a worker");
  const struct sequence *sequence;
  while (code == DSNET_OK && (sequence = sequence_take(pool)) != NULL) {
    code = sequence_run(pool, sequence, displacement, posed, &error);
    pthread_mutex_lock(&pool->lock);
    pool->result.sequences += code == DSNET_OK;
    pthread_mutex_unlock(&pool->lock);
  }
  free(displacement);
  free(posed);
  pthread_mutex_lock(&pool->lock);
  if (code != DSNET_OK && pool->error.code == DSNET_OK)
    pool->error = error;
  pool->stop |= code != DSNET_OK;
  pool->running--;
  pthread_cond_signal(&pool->changed);
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

// Shows progress until the last worker has left.
static void pool_watch(struct pool *pool, struct progress *progress) {
  pthread_mutex_lock(&pool->lock);
  while (pool->running > 0) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 250000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
    size_t frames = pool->frames;
    char detail[64];
    snprintf(detail, sizeof detail, "%zu sequences done%s", pool->result.sequences,
             interrupt_seen() ? ", stopping" : "");
    pthread_mutex_unlock(&pool->lock);
    progress_update(progress, frames, detail);
    pthread_mutex_lock(&pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
}

int simulate_run(const struct simulate_plan *plan, struct simulate_result *result,
                 struct dsnet_error *error) {
  enum { THREADS_MAX = 256 };
  struct pool pool = {.plan = plan};
  pthread_t threads[THREADS_MAX];
  int wanted = plan->threads < THREADS_MAX ? plan->threads : THREADS_MAX, started = 0;
  size_t total = 0;
  for (size_t i = 0; i < plan->count; i++)
    total += plan->sequences[i].done ? 0 : plan->sequences[i].clip->frames;
  pthread_mutex_init(&pool.lock, NULL);
  pthread_cond_init(&pool.changed, NULL);
  struct progress progress;
  progress_start(&progress, "frames", total);
  pool.running = wanted;
  while (started < wanted && !pthread_create(&threads[started], NULL, worker, &pool))
    started++;
  pthread_mutex_lock(&pool.lock);
  pool.running -= wanted - started;
  pthread_mutex_unlock(&pool.lock);
  pool_watch(&pool, &progress);
  for (int i = 0; i < started; i++)
    pthread_join(threads[i], NULL);
  progress_finish(&progress);
  pool.result.seconds = progress_seconds(&progress);
  pthread_cond_destroy(&pool.changed);
  pthread_mutex_destroy(&pool.lock);
  *result = pool.result;
  if (started == 0)
    return dsnet_error_set(error, DSNET_ENOMEM, "no thread could be started");
  if (interrupt_seen())
    return dsnet_error_set(error, DSNET_ECANCELLED,
                           "stopped after %zu sequences; --resume goes on from there",
                           pool.result.sequences);
  if (pool.error.code != DSNET_OK)
    return dsnet_error_set(error, pool.error.code, "%s", pool.error.text);
  return DSNET_OK;
}
