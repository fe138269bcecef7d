// SPDX-License-Identifier: Apache-2.0
// Makes the built-in body: a closed, symmetric humanoid on SMPL's skeleton, with shape directions,
// joint regressor, skinning weights and a map of soft tissue. The outcome depends on nothing but
// the program: the same bytes every time on the same machine. Takes some seconds.
#ifndef DSNET_BODY_BUILD_BUILD_H
#define DSNET_BODY_BUILD_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BODY_BUILD_SHAPES   10
#define BODY_BUILD_VERTICES 6950 // aimed at, within one per cent or so

struct body_build {
  size_t vertices, faces;
  float *rest;          // [V][3]
  float *shapedirs;     // [V][3][BODY_BUILD_SHAPES], metres per standard deviation
  float *regressor;     // [24][V]
  float *weights;       // [V][24], at most 4 of a row are not 0
  float *soft_tissue;   // [V], 0 firm .. 1 softest
  uint32_t *triangles;  // [F][3], counter-clockwise from outside
  uint32_t *mirror;     // [V], the vertex at (-x, y, z)
};

// On failure nothing is held.
int body_build(struct body_build *build, struct dsnet_error *error);
void body_build_deinit(struct body_build *build);

// Writes the arrays as body_load reads them, and beside them "mirror" and "shape_names".
int body_build_save(const struct body_build *build, const char *path, struct dsnet_error *error);

// What a shape direction is: "stature", "mass", ...
const char *body_build_shape_name(int shape);

#endif
