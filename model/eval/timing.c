// SPDX-License-Identifier: Apache-2.0
#include "eval/timing.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "sim/simulation.h"
#include "train/unpose.h"

#define PHYSICS_FRAMES 180
#define PHYSICS_WARM   20 // first frames, which do not count

static double thread_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Sessions with everything a step needs.
struct sessions {
  struct net_scratch *scratch;
  struct net_item items[TIMING_BATCH];
  float *states, *poses, *displacements;
};

static void sessions_deinit(struct sessions *sessions) {
  net_scratch_free(sessions->scratch);
  free(sessions->states);
  free(sessions->poses);
  free(sessions->displacements);
}

static int sessions_init(struct sessions *sessions, const struct net *net,
                         struct dsnet_error *error) {
  static const float betas[FEATURES_BETAS];
  size_t values = 3 * net_config(net)->vertices, state = net_state_size(net);
  *sessions = (struct sessions){0};
  sessions->states = memory_alloc(TIMING_BATCH * state, sizeof(float));
  sessions->poses = memory_alloc((size_t)TIMING_BATCH * NET_POSE_SIZE, sizeof(float));
  sessions->displacements = memory_alloc(TIMING_BATCH * values, sizeof(float));
  if (!sessions->states || !sessions->poses || !sessions->displacements)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  struct random_state random;
  random_init(&random, 1);
  for (size_t i = 0; i < (size_t)TIMING_BATCH * NET_POSE_SIZE; i++)
    sessions->poses[i] = (float)(0.2 * random_normal(&random));
  for (size_t i = 0; i < TIMING_BATCH; i++)
    sessions->items[i] = (struct net_item){.state = sessions->states + i * state,
                                           .pose = sessions->poses + i * NET_POSE_SIZE,
                                           .trans = betas, // the origin
                                           .betas = betas,
                                           .displacement = sessions->displacements + i * values};
  return net_scratch_new(&sessions->scratch, net, TIMING_BATCH, error);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int timing_net_batch(double *microseconds, const struct net *net, struct dsnet_error *error) {
  enum { STEPS_MAX = 4000 };
  struct sessions sessions;
  double *times = calloc(STEPS_MAX, sizeof *times), total = 0;
  size_t steps = 0;
  int result = sessions_init(&sessions, net, error);
  if (result == 0 && !times)
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0)
    net_step(net, sessions.scratch, sessions.items, TIMING_BATCH); // warm
  for (; result == 0 && steps < STEPS_MAX && total < 0.5; steps++) {
    double started = thread_seconds();
    net_step(net, sessions.scratch, sessions.items, TIMING_BATCH);
    times[steps] = thread_seconds() - started;
    total += times[steps];
  }
  if (result == 0) {
    qsort(times, steps, sizeof *times, by_value);
    *microseconds = 1e6 * times[steps / 2] / TIMING_BATCH;
  }
  free(times);
  sessions_deinit(&sessions);
  return result;
}

static int simulate(double *microseconds, const struct dyna_sequence *sequence,
                    const struct body *body, struct dsnet_error *error) {
  struct clip *clip;
  struct tissue *tissue = NULL;
  struct simulation *simulation = NULL;
  float *displacement = memory_alloc(3 * body_vertices(body), sizeof *displacement);
  size_t frames;
  int result = unpose_clip(sequence, &clip, &frames, error);
  if (result < 0) {
    free(displacement);
    return result;
  }
  if (!displacement)
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0)
    result = tissue_new(&tissue, body, &tissue_settings_default, error);
  if (result == 0)
    result = simulation_new(&simulation, tissue, clip->betas, clip->betas_count, error);
  if (result == 0)
    result = simulation_start(simulation, clip, error);
  double started = 0;
  size_t made = 0;
  while (result == 0 && made < PHYSICS_FRAMES && simulation_next(simulation, displacement))
    if (++made == PHYSICS_WARM)
      started = thread_seconds();
  if (made > PHYSICS_WARM)
    *microseconds = 1e6 * (thread_seconds() - started) / (double)(made - PHYSICS_WARM);
  simulation_free(simulation);
  tissue_free(tissue);
  clip_free(clip);
  free(displacement);
  return result;
}

int timing_physics(double *microseconds, struct dyna *dyna, const struct body *body,
                   const struct splits *splits, struct dsnet_error *error) {
  *microseconds = 0;
  for (size_t i = 0; i < dyna_count(dyna); i++) {
    const struct dyna_sequence *sequence = dyna_at(dyna, i);
    enum split split = splits_of(splits, sequence->subject, sequence->motion);
    bool tested = split != SPLIT_TRAIN && split != SPLIT_VALIDATION;
    if (tested && sequence->frames > 2 * PHYSICS_WARM)
      return simulate(microseconds, sequence, body, error);
  }
  return 0;
}
