// SPDX-License-Identifier: Apache-2.0
// Where the body is soft: 0 over bone and tendon, 1 where tissue hangs free.
#ifndef DSNET_BODY_BUILD_SOFTNESS_H
#define DSNET_BODY_BUILD_SOFTNESS_H

#include "base/error.h"
#include "surface.h"

// softness [point_count] in 0..1, symmetric.
int softness_measure(const struct surface *surface, const double *weights, double *softness,
                     struct dsnet_error *error);

#endif
