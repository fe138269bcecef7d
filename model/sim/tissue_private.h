// SPDX-License-Identifier: Apache-2.0
// Inside of sim/tissue: the plan that all shapes of a body share.
#ifndef DSNET_SIM_TISSUE_PRIVATE_H
#define DSNET_SIM_TISSUE_PRIVATE_H

#include "sim/tissue.h"

struct tissue {
  const struct body *body;
  struct tissue_settings settings;
  size_t columns, faces;
  uint32_t *vertex;    // [columns] on the body
  uint32_t *triangles; // [faces][3] columns
  uint8_t *region;     // [V]
  float *softness;     // [V] 0 .. 1
  uint32_t *spread;    // [V][TISSUE_SPREAD] columns
  float *weight;       // [V][TISSUE_SPREAD]
};

// Fills spread and weight. `root` [V] is the column that each vertex was merged into.
int tissue_spread_build(struct tissue *tissue, const uint32_t *root, struct dsnet_error *error);

#endif
