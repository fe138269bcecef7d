// SPDX-License-Identifier: Apache-2.0
// How deep the soft tissue of one shape reaches under each column, how much of it is fat, and which
// way is inwards.
#ifndef DSNET_SIM_THICKNESS_H
#define DSNET_SIM_THICKNESS_H

#include "sim/tissue_private.h"

struct thickness {
  double *depth;        // [columns] metres from skin to bone
  double *fat_share;    // [columns] 0 .. 1, the outer part of the depth
  double *muscle_young; // [columns] Pa, smoothed across regions
  double (*inward)[3];  // [columns] unit vectors
};

// `shaped` [V][3] and `joints` [24][3] are those of the shape. The mean shape's tissue is that of
// the anatomy table times the softness; what the shape adds to (or takes from) the distance between
// skin and bone is fat.
int thickness_init(struct thickness *thickness, const struct tissue *tissue, const float *shaped,
                   const float *joints, struct dsnet_error *error);
void thickness_deinit(struct thickness *thickness);

#endif
