// SPDX-License-Identifier: Apache-2.0
#include "train/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "motion/rotation.h"

// Frames run through the features before a segment starts in the middle of a sequence, so that what
// they remember has settled.
#define WARM_UP 120
// A segment shorter than this teaches nothing.
#define SHORTEST 30

// A stream's place in its segment.
struct stream {
  bool idle;
  struct segment segment;
  size_t next; // frame
  double heading, jitter;
};

struct sampler {
  const struct dataset *dataset;
  struct sampler_options options;
  struct stream *streams;
  float *memory; // [streams][features memory]
  float *frame;  // [F]
  const struct segment *segments;
  size_t count, at, offset, stride;
  bool endless;
  struct random_state random;
};

int segments_make(const struct dataset *dataset, enum split split, size_t longest, bool shuffle,
                  uint64_t seed, struct segment **out, size_t *out_count,
                  struct dsnet_error *error) {
  size_t most = 0, count = 0;
  struct random_state random;
  random_init(&random, seed);
  for (size_t s = 0; s < dataset->count; s++)
    most += dataset->sequences[s].frames / longest + 2;
  struct segment *segments = calloc(most, sizeof *segments);
  if (!segments)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  for (size_t s = 0; s < dataset->count; s++) {
    const struct sequence *sequence = &dataset->sequences[s];
    if (sequence->split != split)
      continue;
    size_t first = 0, length = shuffle ? longest / 2 + random_bits(&random) % (longest / 2 + 1)
                                       : sequence->frames;
    for (; first < sequence->frames; first += length, length = longest) {
      size_t end = length < sequence->frames - first ? first + length : sequence->frames;
      if (end - first >= SHORTEST || first == 0)
        segments[count++] = (struct segment){s, first, end};
      if (!shuffle)
        break;
    }
  }
  for (size_t i = count; shuffle && i > 1; i--) { // Fisher and Yates
    size_t j = random_bits(&random) % i;
    struct segment swap = segments[i - 1];
    segments[i - 1] = segments[j];
    segments[j] = swap;
  }
  *out = segments;
  *out_count = count;
  return 0;
}

// The frame of a clip seen from another heading.
static void turned_frame(const struct clip *clip, size_t frame, double heading, float pose[66],
                         float trans[3]) {
  memcpy(pose, clip->pose + frame * CLIP_POSE_SIZE, CLIP_POSE_SIZE * sizeof *pose);
  memcpy(trans, clip->trans + frame * 3, 3 * sizeof *trans);
  if (heading == 0)
    return;
  double root[3] = {(double)pose[0], (double)pose[1], (double)pose[2]}, about[3] = {0, 0, heading};
  double q[4], turn[4], c = cos(heading), s = sin(heading);
  quaternion_from_vector(root, q);
  quaternion_from_vector(about, turn);
  quaternion_multiply(turn, q, q);
  quaternion_to_vector(q, root);
  for (int i = 0; i < 3; i++)
    pose[i] = (float)root[i];
  double x = (double)trans[0], y = (double)trans[1];
  trans[0] = (float)(c * x - s * y);
  trans[1] = (float)(s * x + c * y);
}

static void shake(double jitter, struct random_state *random, float pose[66], float trans[3]) {
  for (int i = 0; i < CLIP_POSE_SIZE; i++)
    pose[i] += (float)(jitter * random_normal(random));
  for (int i = 0; i < 3; i++)
    trans[i] += (float)(jitter / 7 * random_normal(random));
}

// `random` is asked only for jitter above 0.
static void compute_features(const struct feature_set *set, const struct sequence *sequence,
                             size_t frame, double heading, double jitter,
                             struct random_state *random, float *memory, float *out) {
  float pose[CLIP_POSE_SIZE], trans[3];
  turned_frame(sequence->clip, frame, heading, pose, trans);
  if (jitter > 0)
    shake(jitter, random, pose, trans);
  set->step(DYNA_FPS, pose, trans, sequence->betas, memory, out);
}

// Sums of features and of their squares over one sequence.
static void add_statistics(const struct feature_set *set, const struct sequence *sequence,
                           double heading, float *memory, float *frame, double *sum,
                           double *square) {
  memset(memory, 0, set->memory * sizeof *memory);
  for (size_t t = 0; t < sequence->frames; t++) {
    compute_features(set, sequence, t, heading, 0, NULL, memory, frame);
    for (size_t i = 0; i < set->width; i++) {
      sum[i] += (double)frame[i];
      square[i] += (double)frame[i] * (double)frame[i];
    }
  }
}

int features_statistics(const struct dataset *dataset, const struct feature_set *set, uint64_t seed,
                        float *mean, float *scale, struct dsnet_error *error) {
  double *sum = memory_alloc(set->width, sizeof *sum);
  double *square = memory_alloc(set->width, sizeof *square);
  float *memory = memory_alloc(set->memory, sizeof *memory);
  float *frame = memory_alloc(set->width, sizeof *frame);
  int result = 0;
  if (!sum || !square || !memory || !frame) {
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
    goto done;
  }
  struct random_state random;
  random_init(&random, seed);
  for (size_t s = 0; s < dataset->count; s++)
    if (dataset->sequences[s].split == SPLIT_TRAIN)
      add_statistics(set, &dataset->sequences[s], 2 * M_PI * random_uniform(&random), memory, frame,
                     sum, square);
  double count = (double)dataset_frames(dataset, SPLIT_TRAIN);
  for (size_t i = 0; i < set->width; i++) {
    double m = sum[i] / count, variance = square[i] / count - m * m;
    mean[i] = (float)m;
    scale[i] = variance > 1e-10 * (1 + m * m) ? (float)(1 / sqrt(variance)) : 0;
  }
done:
  free(sum);
  free(square);
  free(memory);
  free(frame);
  return result;
}

int sampler_new(struct sampler **out, const struct dataset *dataset,
                const struct sampler_options *options, struct dsnet_error *error) {
  *out = NULL;
  struct sampler *sampler = calloc(1, sizeof *sampler);
  if (!sampler)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  sampler->dataset = dataset;
  sampler->options = *options;
  sampler->streams = calloc(options->streams, sizeof *sampler->streams);
  sampler->memory = memory_alloc(options->streams * options->features->memory, sizeof(float));
  sampler->frame = memory_alloc(options->features->width, sizeof(float));
  if (!sampler->streams || !sampler->memory || !sampler->frame) {
    sampler_free(sampler);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  *out = sampler;
  return 0;
}

void sampler_free(struct sampler *sampler) {
  if (!sampler)
    return;
  free(sampler->streams);
  free(sampler->memory);
  free(sampler->frame);
  free(sampler);
}

void sampler_begin(struct sampler *sampler, const struct segment *segments, size_t count,
                   size_t offset, size_t stride, bool endless, uint64_t seed) {
  sampler->segments = segments;
  sampler->count = count;
  sampler->at = sampler->offset = offset;
  sampler->stride = stride;
  sampler->endless = endless;
  random_init(&sampler->random, seed);
  for (size_t b = 0; b < sampler->options.streams; b++)
    sampler->streams[b] = (struct stream){0}; // an empty segment, so each starts one
}

static float *stream_memory(struct sampler *sampler, size_t b) {
  return sampler->memory + b * sampler->options.features->memory;
}

// Gives a stream its next segment; it is idle when there is none.
static void start_segment(struct sampler *sampler, size_t b) {
  struct stream *stream = &sampler->streams[b];
  if (sampler->at >= sampler->count && sampler->endless)
    sampler->at = sampler->offset % sampler->count;
  if (sampler->at >= sampler->count) {
    stream->idle = true;
    return;
  }
  stream->segment = sampler->segments[sampler->at];
  sampler->at += sampler->stride;
  stream->next = stream->segment.first;
  stream->heading = sampler->options.turn ? 2 * M_PI * random_uniform(&sampler->random) : 0;
  double share = random_uniform(&sampler->random);
  stream->jitter = share > 0.5 ? sampler->options.jitter * (2 * share - 1) : 0;
  float *memory = stream_memory(sampler, b);
  memset(memory, 0, sampler->options.features->memory * sizeof *memory);
  const struct sequence *sequence = &sampler->dataset->sequences[stream->segment.sequence];
  for (size_t t = stream->next > WARM_UP ? stream->next - WARM_UP : 0; t < stream->next; t++)
    compute_features(sampler->options.features, sequence, t, stream->heading, stream->jitter,
                     &sampler->random, memory, sampler->frame);
}

// One frame of a stream into the window.
static void fill_frame(struct sampler *sampler, size_t b, float *x, float *target) {
  const struct sampler_options *options = &sampler->options;
  struct stream *stream = &sampler->streams[b];
  const struct sequence *sequence = &sampler->dataset->sequences[stream->segment.sequence];
  size_t latent = sampler->dataset->subspace.latent;
  compute_features(options->features, sequence, stream->next, stream->heading, stream->jitter,
                   &sampler->random, stream_memory(sampler, b), x);
  for (size_t i = 0; i < options->features->width; i++)
    x[i] = (x[i] - options->mean[i]) * options->scale[i];
  if (options->noise > 0)
    for (size_t i = 0; i < options->features->width; i++)
      if (options->scale[i] != 0)
        x[i] += (float)(options->noise * random_normal(&sampler->random));
  memcpy(target, sequence->latents + stream->next * latent, latent * sizeof *target);
  stream->next++;
}

bool sampler_next(struct sampler *sampler, float *x, float *target, struct loss_range *ranges,
                  bool *fresh, double *residual) {
  const struct sampler_options *options = &sampler->options;
  size_t streams = options->streams, width = options->features->width;
  size_t latent = sampler->dataset->subspace.latent;
  bool any = false;
  memset(x, 0, options->window * streams * width * sizeof *x);
  memset(target, 0, options->window * streams * latent * sizeof *target);
  for (size_t b = 0; b < streams; b++) {
    struct stream *stream = &sampler->streams[b];
    fresh[b] = !stream->idle && stream->next >= stream->segment.end;
    if (fresh[b])
      start_segment(sampler, b);
    ranges[b] = (struct loss_range){0, 0};
    if (stream->idle)
      continue;
    any = true;
    const struct sequence *sequence = &sampler->dataset->sequences[stream->segment.sequence];
    // The body starts a sequence from rest, so there the state is known.
    size_t skip = fresh[b] && stream->segment.first ? options->burn_in : 0;
    size_t t = 0;
    for (; t < options->window && stream->next < stream->segment.end; t++) {
      if (residual && t >= skip)
        *residual += (double)sequence->residual[stream->next];
      fill_frame(sampler, b, x + (t * streams + b) * width, target + (t * streams + b) * latent);
    }
    ranges[b] = (struct loss_range){skip < t ? skip : t, t};
  }
  return any;
}
