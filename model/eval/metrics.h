// SPDX-License-Identifier: Apache-2.0
// Errors of predicted displacements, added up frame by frame.
#ifndef DSNET_EVAL_METRICS_H
#define DSNET_EVAL_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "body/region.h"

// Vertex errors are counted in bins of this width, so that the worst 5% need no list of them all.
#define METRICS_BIN_MM 0.05
#define METRICS_BINS   4000

struct metrics {
  double frames, vertices;
  double distance;        // sum of |e|, m
  double square, energy;  // sums of |e|^2 and of the true |D|^2, m^2
  double velocity_square; // sum of |d e|^2 between consecutive frames, m^2
  double velocity_frames;
  double region_square[BODY_REGION_COUNT], region_energy[BODY_REGION_COUNT];
  double bins[METRICS_BINS]; // the last one takes all that is larger
};

// Adds one frame: predicted and truth [V][3] metres, regions [V]. `last` [V][3] holds the error of
// the frame before (ignored at the start of a sequence) and receives this one's.
void metrics_add(struct metrics *metrics, const float *predicted, const float *truth,
                 size_t vertices, const uint8_t *regions, int start, float *last);

double metrics_mean_mm(const struct metrics *metrics);
double metrics_rmse_mm(const struct metrics *metrics);
// Mean of the largest 5% of all vertex errors.
double metrics_worst_mm(const struct metrics *metrics);
// Root mean square error of a vertex's velocity.
double metrics_velocity_mms(const struct metrics *metrics, double fps);
// 1 - squared error / squared displacement.
double metrics_explained(const struct metrics *metrics);
double metrics_region_explained(const struct metrics *metrics, enum body_region region);

#endif
