// SPDX-License-Identifier: Apache-2.0
// The joint regressor: for each joint a ring of skin whose weighted mean is the joint, at rest and,
// as closely as weights can, in every shape.
#ifndef DSNET_BODY_BUILD_REGRESSOR_H
#define DSNET_BODY_BUILD_REGRESSOR_H

#include "base/error.h"
#include "surface.h"

// rows [24][point_count], each sums to 1. `directions` is [point_count][3][SHAPES]. The rest joints
// are met to rounding; mirrored joints have mirrored rows.
int regressor_solve(const struct surface *surface, const double *directions, double *rows,
                    struct dsnet_error *error);

#endif
