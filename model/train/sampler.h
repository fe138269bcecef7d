// SPDX-License-Identifier: Apache-2.0
// Feeds one shard of streams: each stream walks along a segment of a sequence, window after window,
// so that the network's state can be carried over, and starts another segment when it ends.
// Features are computed on the way, with the body's heading turned at random (the physics does not
// know north) and optionally noise: on the features, or on the poses as capture has it, of which
// the tissue felt nothing.
#ifndef DSNET_TRAIN_SAMPLER_H
#define DSNET_TRAIN_SAMPLER_H

#include "base/random.h"
#include "motion/features.h"
#include "train/dataset.h"
#include "train/loss.h"

// Frames first .. end - 1 of a sequence.
struct segment {
  size_t sequence, first, end;
};

// Segments of at most `longest` frames covering a split, cut at places that depend on the seed, in
// a random order (or the data's, whole sequences, when `shuffle` is false). *segments is the
// caller's to free.
int segments_make(const struct dataset *dataset, enum split split, size_t longest, bool shuffle,
                  uint64_t seed, struct segment **segments, size_t *count,
                  struct dsnet_error *error);

// Normalisation: input = (feature - mean) * scale, over the training split. A feature that never
// varies gets scale 0.
int features_statistics(const struct dataset *dataset, const struct feature_set *set, uint64_t seed,
                        float *mean, float *scale, struct dsnet_error *error);

struct sampler_options {
  const struct feature_set *features;
  const float *mean, *scale; // [F]
  size_t streams, window;
  size_t burn_in; // frames after the start of a segment that do not count: the state is unknown
  double noise;   // standard deviation added to the normalised features
  // Standard deviation, in radians, of noise on the rotations, and a seventh of it in metres on the
  // translation, at the most: each segment draws its own share, half of them none.
  double jitter;
  bool turn; // random headings
};

struct sampler;

int sampler_new(struct sampler **sampler, const struct dataset *dataset,
                const struct sampler_options *options, struct dsnet_error *error);
void sampler_free(struct sampler *sampler);

// Starts over on segments offset, offset + stride, ... With `endless` they come round again when
// they are used up, otherwise streams fall idle. The segments stay the caller's.
void sampler_begin(struct sampler *sampler, const struct segment *segments, size_t count,
                   size_t offset, size_t stride, bool endless, uint64_t seed);

// The next window: x [window][streams][F], target [window][streams][Z]; ranges [streams] says which
// frames count and fresh [streams] which streams start a segment. What does not count is 0. False
// when all streams are idle. `residual`, when not NULL, adds up the energy outside the subspace of
// the frames that count (m^2 summed over vertices).
bool sampler_next(struct sampler *sampler, float *x, float *target, struct loss_range *ranges,
                  bool *fresh, double *residual);

#endif
