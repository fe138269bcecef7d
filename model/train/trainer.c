// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "nn/gemm.h"
#include "train/adam.h"
#include "train/bptt.h"
#include "train/loss.h"
#include "train/sampler.h"

// What one shard works with; nothing of it is shared.
struct trainer_shard {
  const struct trainer *trainer;
  const float *weights; // those in use
  struct sampler *sampler;
  struct sampler *quiet; // for evaluation: no noise, no turning
  struct bptt *bptt;
  float *x, *target, *latents, *d_latents, *state, *gradients;
  struct loss_range *ranges;
  bool *fresh;
  struct loss_sums sums;
  double residual;
};

static double now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Another stream of random numbers for every purpose and epoch.
static uint64_t seed_for(const struct trainer *trainer, uint64_t purpose, uint64_t epoch) {
  return trainer->options.seed * 0x9e3779b97f4a7c15u + epoch * 0x100000001b3u + purpose;
}

static int shard_init(struct trainer_shard *shard, const struct trainer *trainer,
                      struct dsnet_error *error) {
  const struct trainer_options *o = &trainer->options;
  const struct weights_layout *layout = &trainer->layout;
  struct sampler_options sampling = {.features = o->features,
                                     .mean = trainer->mean,
                                     .scale = trainer->scale,
                                     .streams = o->streams,
                                     .window = o->window,
                                     .burn_in = o->burn_in,
                                     .noise = o->noise,
                                     .jitter = o->jitter,
                                     .turn = true};
  size_t rows = o->window * o->streams;
  shard->trainer = trainer;
  int result = sampler_new(&shard->sampler, trainer->dataset, &sampling, error);
  sampling.noise = sampling.jitter = 0;
  sampling.turn = false;
  if (result == 0)
    result = sampler_new(&shard->quiet, trainer->dataset, &sampling, error);
  if (result == 0)
    result = bptt_new(&shard->bptt, layout, o->streams, o->window, error);
  if (result < 0)
    return result;
  shard->x = memory_alloc(rows * layout->inputs, sizeof(float));
  shard->target = memory_alloc(rows * layout->latent, sizeof(float));
  shard->latents = memory_alloc(rows * layout->latent, sizeof(float));
  shard->d_latents = memory_alloc(rows * layout->latent, sizeof(float));
  shard->state = memory_alloc(bptt_state_size(layout, o->streams), sizeof(float));
  shard->gradients = memory_alloc(layout->total, sizeof(float));
  shard->ranges = calloc(o->streams, sizeof *shard->ranges);
  shard->fresh = calloc(o->streams, sizeof *shard->fresh);
  if (!shard->x || !shard->target || !shard->latents || !shard->d_latents || !shard->state ||
      !shard->gradients || !shard->ranges || !shard->fresh)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a batch");
  return 0;
}

static void shard_deinit(struct trainer_shard *shard) {
  sampler_free(shard->sampler);
  sampler_free(shard->quiet);
  bptt_free(shard->bptt);
  free(shard->x);
  free(shard->target);
  free(shard->latents);
  free(shard->d_latents);
  free(shard->state);
  free(shard->gradients);
  free(shard->ranges);
  free(shard->fresh);
}

// Mean energy of a training frame and of its change, for the loss's floors.
static void measure_energy(struct trainer *trainer) {
  const struct dataset *dataset = trainer->dataset;
  size_t latent = dataset->subspace.latent;
  double frames = 0;
  for (size_t s = 0; s < dataset->count; s++) {
    const struct sequence *sequence = &dataset->sequences[s];
    if (sequence->split != SPLIT_TRAIN)
      continue;
    frames += (double)sequence->frames;
    for (size_t i = 0; i < sequence->frames * latent; i++) {
      double z = (double)sequence->latents[i];
      double d = i < latent ? 0 : z - (double)sequence->latents[i - latent];
      trainer->energy += (double)trainer->metric[i % latent] * z * z;
      trainer->velocity_energy += (double)trainer->metric[i % latent] * d * d;
    }
  }
  trainer->energy /= frames;
  trainer->velocity_energy /= frames;
}

static int allocate(struct trainer *trainer, struct dsnet_error *error) {
  size_t total = trainer->layout.total, inputs = trainer->layout.inputs;
  trainer->mean = memory_alloc(inputs, sizeof(float));
  trainer->scale = memory_alloc(inputs, sizeof(float));
  trainer->weights = memory_alloc(total, sizeof(float));
  trainer->best = memory_alloc(total, sizeof(float));
  trainer->m = memory_alloc(total, sizeof(float));
  trainer->v = memory_alloc(total, sizeof(float));
  trainer->metric = memory_alloc(trainer->layout.latent, sizeof(float));
  trainer->records = calloc(trainer->options.epochs + 1, sizeof *trainer->records);
  trainer->shards_storage = calloc(trainer->options.shards, sizeof *trainer->shards_storage);
  if (!trainer->mean || !trainer->scale || !trainer->weights || !trainer->best || !trainer->m ||
      !trainer->v || !trainer->metric || !trainer->records || !trainer->shards_storage)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for %zu weights", total);
  return 0;
}

int trainer_new(struct trainer **out, const struct dataset *dataset,
                const struct trainer_options *options, struct dsnet_error *error) {
  *out = NULL;
  struct trainer *trainer = calloc(1, sizeof *trainer);
  if (!trainer)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  trainer->dataset = dataset;
  trainer->options = *options;
  weights_layout_init(&trainer->layout, options->features->width, options->hidden, options->layers,
                      dataset->subspace.latent, options->skip);
  int result = allocate(trainer, error);
  if (result < 0)
    goto fail;
  for (size_t k = 0; k < dataset->subspace.latent; k++) {
    double scale = (double)dataset->subspace.scale[k];
    trainer->metric[k] = (float)(scale * scale / (double)dataset->vertices);
  }
  measure_energy(trainer);
  weights_randomise(&trainer->layout, trainer->weights, seed_for(trainer, 1, 0));
  result = features_statistics(dataset, options->features, seed_for(trainer, 2, 0), trainer->mean,
                               trainer->scale, error);
  for (size_t i = 0; result == 0 && i < options->shards; i++)
    result = shard_init(&trainer->shards_storage[i], trainer, error);
  if (result < 0)
    goto fail;
  *out = trainer;
  return 0;
fail:
  trainer_free(trainer);
  return result;
}

void trainer_free(struct trainer *trainer) {
  if (!trainer)
    return;
  for (size_t i = 0; trainer->shards_storage && i < trainer->options.shards; i++)
    shard_deinit(&trainer->shards_storage[i]);
  free(trainer->shards_storage);
  free(trainer->mean);
  free(trainer->scale);
  free(trainer->weights);
  free(trainer->best);
  free(trainer->m);
  free(trainer->v);
  free(trainer->metric);
  free(trainer->records);
  free(trainer);
}

static struct loss_config loss_of(const struct trainer *trainer) {
  return (struct loss_config){
      .latent = trainer->layout.latent,
      .weights = trainer->metric,
      .floor = trainer->options.floor * trainer->energy,
      .velocity = trainer->options.velocity,
      .velocity_floor = trainer->options.floor * trainer->velocity_energy,
  };
}

static void reset_fresh(struct trainer_shard *shard) {
  const struct trainer *trainer = shard->trainer;
  for (size_t b = 0; b < trainer->options.streams; b++)
    if (shard->fresh[b])
      bptt_state_reset(&trainer->layout, trainer->options.streams, b, shard->state);
}

// One window of a shard: gradients of the sum of its streams' losses.
static void shard_train(struct trainer_shard *shard) {
  const struct trainer *trainer = shard->trainer;
  size_t window = trainer->options.window;
  struct loss_config loss = loss_of(trainer);
  memset(&shard->sums, 0, sizeof shard->sums);
  memset(shard->gradients, 0, trainer->layout.total * sizeof(float));
  sampler_next(shard->sampler, shard->x, shard->target, shard->ranges, shard->fresh, NULL);
  reset_fresh(shard);
  bptt_forward(shard->bptt, shard->weights, shard->x, window, shard->state, shard->latents);
  loss_window(&loss, trainer->options.streams, window, shard->ranges, shard->latents, shard->target,
              shard->d_latents, &shard->sums);
  bptt_backward(shard->bptt, shard->weights, shard->x, window, shard->d_latents, shard->gradients);
}

// All windows that a shard's streams still have, forward only.
static void shard_evaluate(struct trainer_shard *shard) {
  const struct trainer *trainer = shard->trainer;
  struct loss_config loss = loss_of(trainer);
  memset(&shard->sums, 0, sizeof shard->sums);
  shard->residual = 0;
  while (sampler_next(shard->quiet, shard->x, shard->target, shard->ranges, shard->fresh,
                      &shard->residual)) {
    reset_fresh(shard);
    bptt_forward(shard->bptt, shard->weights, shard->x, trainer->options.window, shard->state,
                 shard->latents);
    loss_window(&loss, trainer->options.streams, trainer->options.window, shard->ranges,
                shard->latents, shard->target, NULL, &shard->sums);
  }
}

// Shards thread, thread + threads, ... of a trainer.
struct work {
  struct trainer *trainer;
  void (*run)(struct trainer_shard *shard);
  size_t first, step;
};

static void *run_work(void *context) {
  const struct work *work = context;
  for (size_t i = work->first; i < work->trainer->options.shards; i += work->step)
    work->run(&work->trainer->shards_storage[i]);
  return NULL;
}

// Runs all shards; a thread that cannot be had is run here.
static void run_shards(struct trainer *trainer, void (*run)(struct trainer_shard *shard)) {
  enum { THREADS_MAX = 64 };
  size_t threads = trainer->options.threads;
  if (threads > trainer->options.shards)
    threads = trainer->options.shards;
  if (threads > THREADS_MAX)
    threads = THREADS_MAX;
  struct work work[THREADS_MAX];
  pthread_t handles[THREADS_MAX];
  bool started[THREADS_MAX] = {false};
  gemm_blas_threads(1);
  for (size_t i = 0; i < threads; i++) {
    work[i] = (struct work){trainer, run, i, threads};
    started[i] = i && pthread_create(&handles[i], NULL, run_work, &work[i]) == 0;
  }
  for (size_t i = 0; i < threads; i++)
    if (!started[i])
      run_work(&work[i]);
  for (size_t i = 0; i < threads; i++)
    if (started[i])
      pthread_join(handles[i], NULL);
}

static void add_sums(struct loss_sums *sums, const struct loss_sums *other) {
  sums->loss += other->loss;
  sums->streams += other->streams;
  sums->error += other->error;
  sums->energy += other->energy;
  sums->frames += other->frames;
}

// Adds the shards' gradients up in order and makes one update; returns its learning rate.
static double update(struct trainer *trainer, uint64_t all_updates, struct loss_sums *epoch) {
  const struct trainer_options *o = &trainer->options;
  struct loss_sums sums = {0};
  float *gradients = trainer->shards_storage[0].gradients;
  for (size_t s = 0; s < o->shards; s++) {
    const struct trainer_shard *shard = &trainer->shards_storage[s];
    add_sums(&sums, &shard->sums);
    for (size_t i = 0; s && i < trainer->layout.total; i++)
      gradients[i] += shard->gradients[i];
  }
  float scale = sums.streams > 0 ? (float)(1 / sums.streams) : 0;
  for (size_t i = 0; i < trainer->layout.total; i++)
    gradients[i] *= scale;
  gradient_clip(gradients, trainer->layout.total, o->clip);
  struct adam adam;
  adam_init(&adam, trainer->layout.total, trainer->m, trainer->v);
  adam.decay = o->decay;
  adam.step = trainer->updates;
  uint64_t warmup = (uint64_t)(o->warmup * (double)all_updates);
  double rate = schedule_rate(o->rate, o->rate_floor, warmup, trainer->updates, all_updates);
  adam_update(&adam, rate, gradients, trainer->weights);
  trainer->updates = adam.step;
  add_sums(epoch, &sums);
  return rate;
}

static bool tell(struct trainer *trainer, size_t step, size_t steps, const struct loss_sums *sums) {
  if (!trainer->progress)
    return true;
  double all = (double)(steps * trainer->options.epochs), done = (double)trainer->updates;
  double made = done - (double)trainer->updates_at_start;
  struct trainer_progress progress = {
      .epoch = trainer->epoch + 1,
      .step = step,
      .steps = steps,
      .loss = sums->loss / (sums->streams > 0 ? sums->streams : 1),
      .seconds_left = made > 0 ? (now_seconds() - trainer->started) * (all - done) / made : -1};
  return trainer->progress(trainer->context, &progress);
}

bool trainer_finished(const struct trainer *trainer) {
  const struct trainer_options *o = &trainer->options;
  return trainer->epoch >= o->epochs ||
         (o->patience && trainer->epoch >= trainer->best_epoch + o->patience);
}

static int train_epoch(struct trainer *trainer, struct epoch_record *record,
                       struct dsnet_error *error) {
  const struct trainer_options *o = &trainer->options;
  size_t batch = o->shards * o->streams * o->window, count;
  size_t frames = dataset_frames(trainer->dataset, SPLIT_TRAIN);
  size_t steps = (frames + batch - 1) / batch;
  struct segment *segments;
  int result = segments_make(trainer->dataset, SPLIT_TRAIN, o->segment, true,
                             seed_for(trainer, 3, trainer->epoch), &segments, &count, error);
  if (result < 0)
    return result;
  for (size_t s = 0; s < o->shards; s++) {
    struct trainer_shard *shard = &trainer->shards_storage[s];
    shard->weights = trainer->weights;
    sampler_begin(shard->sampler, segments, count, s, o->shards, true,
                  seed_for(trainer, 100 + s, trainer->epoch));
  }
  struct loss_sums sums = {0};
  for (size_t step = 0; step < steps && result == 0; step++) {
    run_shards(trainer, shard_train);
    record->rate = update(trainer, (uint64_t)steps * o->epochs, &sums);
    if (!isfinite(sums.loss))
      result =
          dsnet_error_set(error, DSNET_EVALUE, "the loss is not finite: a lower --rate may do");
    else if (!tell(trainer, step + 1, steps, &sums))
      result = dsnet_error_set(error, DSNET_ECANCELLED, "stopped on request");
  }
  free(segments);
  record->loss = sums.loss / (sums.streams > 0 ? sums.streams : 1);
  record->explained = 1 - sums.error / (sums.energy > 0 ? sums.energy : 1);
  return result;
}

int trainer_evaluate(struct trainer *trainer, const float *weights, enum split split,
                     double *explained, double *millimetres, struct dsnet_error *error) {
  struct segment *segments;
  size_t count;
  int result = segments_make(trainer->dataset, split, SIZE_MAX, false, 0, &segments, &count, error);
  if (result < 0)
    return result;
  for (size_t s = 0; s < trainer->options.shards; s++) {
    struct trainer_shard *shard = &trainer->shards_storage[s];
    shard->weights = weights;
    sampler_begin(shard->quiet, segments, count, s, trainer->options.shards, false, 0);
  }
  run_shards(trainer, shard_evaluate);
  struct loss_sums sums = {0};
  double residual = 0;
  for (size_t s = 0; s < trainer->options.shards; s++) {
    add_sums(&sums, &trainer->shards_storage[s].sums);
    residual += trainer->shards_storage[s].residual / (double)trainer->dataset->vertices;
  }
  free(segments);
  double frames = sums.frames > 0 ? sums.frames : 1, energy = sums.energy + residual;
  *explained = 1 - (sums.error + residual) / (energy > 0 ? energy : 1);
  *millimetres = 1000 * sqrt((sums.error + residual) / frames);
  return 0;
}

int trainer_epoch(struct trainer *trainer, struct dsnet_error *error) {
  struct epoch_record *record = &trainer->records[trainer->epoch];
  if (trainer->started == 0) {
    trainer->started = now_seconds();
    trainer->updates_at_start = trainer->updates;
  }
  int result = train_epoch(trainer, record, error);
  if (result == 0)
    result = trainer_evaluate(trainer, trainer->weights, SPLIT_VALIDATION, &record->validation,
                              &record->validation_mm, error);
  if (result < 0)
    return result;
  trainer->epoch++;
  if (trainer->best_epoch == 0 ||
      record->validation > trainer->records[trainer->best_epoch - 1].validation) {
    trainer->best_epoch = trainer->epoch;
    memcpy(trainer->best, trainer->weights, trainer->layout.total * sizeof(float));
  }
  return 0;
}
