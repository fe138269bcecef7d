// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba 2015, arXiv 1412.6980, algorithm 1, with bias correction), optional decoupled
// weight decay (Loshchilov and Hutter 2019, arXiv 1711.05101), clipping of the gradient by its
// global norm (Pascanu et al. 2013) and the learning-rate schedule.
#ifndef DSNET_TRAIN_ADAM_H
#define DSNET_TRAIN_ADAM_H

#include <stddef.h>
#include <stdint.h>

struct adam {
  double beta1, beta2, epsilon, decay;
  uint64_t step; // updates made so far
  size_t count;
  float *m, *v; // [count] first and second moments, owned by the caller, zero at the start
};

// The paper's 0.9, 0.999, 1e-8 and no decay, over the caller's zeroed moments.
void adam_init(struct adam *adam, size_t count, float *m, float *v);

// One update of weights [count] by gradients [count].
void adam_update(struct adam *adam, double rate, const float *gradients, float *weights);

// Scales the gradients so that their norm is at most `most`; returns the norm they had.
double gradient_clip(float *gradients, size_t count, double most);

// The learning rate of update `step` of `steps`: linear from 0 over the first `warmup` updates,
// then half a cosine from `rate` down to `rate * floor` (Loshchilov and Hutter 2017, arXiv
// 1608.03983).
double schedule_rate(double rate, double floor, uint64_t warmup, uint64_t step, uint64_t steps);

#endif
