// SPDX-License-Identifier: Apache-2.0
// What training sees: per sequence the motion and the latents of its displacements. Twenty thousand
// numbers a frame become some sixty, so that hours of data fit in memory.
#ifndef DSNET_TRAIN_DATASET_H
#define DSNET_TRAIN_DATASET_H

#include <stdbool.h>

#include "body/body.h"
#include "eval/splits.h"
#include "io/dyna.h"
#include "motion/clip.h"
#include "train/subspace.h"

struct sequence {
  char name[DYNA_NAME_SIZE];
  enum split split;
  size_t frames;
  struct clip *clip; // at 60 Hz, at least `frames` long
  float betas[10];
  float *latents;  // [frames][Z] whitened
  float *residual; // [frames] m^2 outside the subspace, summed over vertices
};

struct dataset {
  struct subspace subspace;
  size_t vertices;
  struct sequence *sequences; // those of SPLIT_TRAIN and SPLIT_VALIDATION
  size_t count;
};

struct dataset_options {
  size_t latent;    // 0: as many as `loss` needs
  double loss;      // share of the energy that may stay outside
  size_t snapshots; // frames the subspace is fitted to, spread evenly over the training split
  // Called now and then with what is done (0..1); false stops with DSNET_ECANCELLED. May be NULL.
  bool (*progress)(void *context, const char *stage, double done);
  void *context;
};

// Two passes over the data: one over snapshots of the training split for the subspace, one over all
// frames for the latents.
int dataset_build(struct dataset *dataset, struct dyna *dyna, const struct body *body,
                  const struct splits *splits, const struct dataset_options *options,
                  struct dsnet_error *error);
void dataset_deinit(struct dataset *dataset);

// Frames of a split.
size_t dataset_frames(const struct dataset *dataset, enum split split);

#endif
