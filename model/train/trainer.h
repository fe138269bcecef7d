// SPDX-License-Identifier: Apache-2.0
// The training loop. An epoch is as many windows as cover the training split once. A batch is cut
// into shards of streams; each shard computes its gradients alone and they are added in the shards'
// order, so the result is the same whatever the number of threads, and the same command gives the
// same weights on the same machine. Everything random is drawn from the seed and the epoch, so that
// a run resumed from a checkpoint continues as if it had not stopped.
#ifndef DSNET_TRAIN_TRAINER_H
#define DSNET_TRAIN_TRAINER_H

#include <stdbool.h>

#include "motion/features.h"
#include "train/dataset.h"
#include "train/weights.h"

struct trainer_options {
  const struct feature_set *features;
  size_t layers, hidden;
  bool skip;
  size_t window, burn_in, segment; // frames
  size_t shards, streams;          // of each shard
  size_t threads;                  // changes the time, not the result
  size_t epochs, patience;         // epochs without improvement before stopping, 0: never
  double rate, rate_floor, warmup; // the last two relative: to the rate, to all updates
  double clip, decay, noise, jitter;
  double velocity, floor; // see loss.h; floor relative to the training split's mean energy
  uint64_t seed;
};

// One epoch, as the report shows it.
struct epoch_record {
  double loss;          // mean over windows
  double explained;     // 1 - error / energy on the training batches, inside the subspace
  double validation;    // the same on the validation split, against the whole displacement
  double validation_mm; // root mean square error of a vertex
  double rate;          // last learning rate
};

struct trainer_progress {
  size_t epoch, step, steps; // of this epoch
  double loss;               // running mean of the epoch
  double seconds_left;       // to the last epoch, by the pace so far; negative when not known
};

struct trainer {
  const struct dataset *dataset;
  struct trainer_options options;
  struct weights_layout layout;
  float *mean, *scale;            // [F] normalisation
  float *weights, *best, *m, *v;  // [layout total]
  float *metric;                  // [Z] loss weights, m^2
  double energy, velocity_energy; // mean over training frames, m^2
  uint64_t updates;
  size_t epoch; // finished ones
  size_t best_epoch;
  struct epoch_record *records; // [options.epochs]
  // Called after every update; false stops with DSNET_ECANCELLED, what was done since the last
  // whole epoch is lost. May be NULL.
  bool (*progress)(void *context, const struct trainer_progress *progress);
  void *context;
  struct trainer_shard *shards_storage;
  double started; // clock
  uint64_t updates_at_start;
};

int trainer_new(struct trainer **trainer, const struct dataset *dataset,
                const struct trainer_options *options, struct dsnet_error *error);
void trainer_free(struct trainer *trainer);

// True when no further epoch is due.
bool trainer_finished(const struct trainer *trainer);
// One epoch and a validation.
int trainer_epoch(struct trainer *trainer, struct dsnet_error *error);

// Of given weights on a split: share explained and root mean square error in mm, over whole
// sequences from their start.
int trainer_evaluate(struct trainer *trainer, const float *weights, enum split split,
                     double *explained, double *millimetres, struct dsnet_error *error);

#endif
