// SPDX-License-Identifier: Apache-2.0
// What about the figure can vary: ten shape directions with meanings, one standard deviation each.
// A direction is a smooth movement of space (stature, legs, shoulders, head), which carries skin
// and joints alike, or tissue gained along the skin's normal, which leaves the joints where they
// are.
#ifndef DSNET_BODY_BUILD_SHAPES_H
#define DSNET_BODY_BUILD_SHAPES_H

#include "base/error.h"
#include "surface.h"

#define SHAPES 10

extern const char *const shapes_names[SHAPES];

// directions [point_count][3][SHAPES], metres per standard deviation. `weights` [point_count][24]
// say which part of the body a point is. Symmetric exactly.
int shapes_measure(const struct surface *surface, const double *weights, double *directions,
                   struct dsnet_error *error);

// How a joint at `point` moves with one standard deviation of a shape.
void shapes_move_joint(int shape, const double point[3], double move[3]);

#endif
