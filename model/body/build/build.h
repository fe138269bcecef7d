// SPDX-License-Identifier: Apache-2.0
// Makes the built-in body: a closed, symmetric humanoid on SMPL's skeleton, with shape directions,
// joint regressor, skinning weights and a map of soft tissue. The outcome depends on nothing but
// the program: the same bytes every time on the same machine. Takes some seconds.
#ifndef DSNET_BODY_BUILD_BUILD_H
#define DSNET_BODY_BUILD_BUILD_H

#include "base/error.h"
#include "body/body.h"

#define BODY_BUILD_SHAPES   10
#define BODY_BUILD_VERTICES 6950 // aimed at, within one per cent or so

// A new body; body_free releases it. Each shape direction is one standard deviation of what
// body_build_shape_name calls it. On failure (DSNET_ENOMEM) *body is left alone.
int body_build(struct body **body, struct dsnet_error *error);

// "stature", "mass", ...; `shape` is under BODY_BUILD_SHAPES.
const char *body_build_shape_name(int shape);

#endif
