// SPDX-License-Identifier: Apache-2.0
// A row of the comparison: something that predicts displacements. All see the same motion and
// shape, frame by frame; only the floor of the subspace may look at the truth.
#ifndef DSNET_EVAL_PREDICTOR_H
#define DSNET_EVAL_PREDICTOR_H

#include "body/body.h"
#include "net/net.h"
#include "train/dataset.h"
#include "train/unpose.h"

// One frame of a sequence.
struct predictor_frame {
  size_t index;       // in the sequence; 0 starts a new one
  const float *pose;  // [66]
  const float *trans; // [3]
  const float *betas; // [10]
  // The sequence's shape and this frame's rest vertices and transforms, for those that need them.
  const struct unpose *unpose;
  const float *truth; // [V][3]
};

struct predictor {
  char name[64];
  double batch_us; // microseconds of a frame when TIMING_BATCH sessions share a step; 0: it cannot
  void *context;
  void (*predict)(void *context, const struct predictor_frame *frame, float *displacement);
  void (*release)(void *context);
};

void predictor_zero(struct predictor *predictor, size_t vertices);
// Least-squares reconstruction of the truth by a model's decoder. The model stays the caller's.
int predictor_floor(struct predictor *predictor, const struct net *net, struct dsnet_error *error);
// One frame at a time, as a server with one session would.
int predictor_net(struct predictor *predictor, const struct net *net, const char *name,
                  struct dsnet_error *error);
// Second-order autoregression with exogenous inputs, as Dyna's (Pons-Moll et al. 2015):
// z_t = A z_{t-1} + B z_{t-2} + C u_t + c, u the features of a set, fitted by ridge regression to
// the training split, run on its own predictions. The ridge is the one of a grid that explains most
// of the validation split in closed loop. The data set's subspace stays the caller's.
int predictor_regression(struct predictor *predictor, const struct dataset *dataset,
                         const struct feature_set *set, struct dsnet_error *error);
// Zero-restlength springs (arXiv 2201.10122): per vertex, x'' = ks (t - x) + kd (t' - x') with t
// the skinned vertex in the world; ks and kd fitted by search over a grid to training frames.
int predictor_springs(struct predictor *predictor, const struct body *body, struct dyna *dyna,
                      const struct splits *splits, struct dsnet_error *error);

#endif
