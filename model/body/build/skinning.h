// SPDX-License-Identifier: Apache-2.0
// Skinning weights by heat equilibrium (Baran and Popovic 2007, "Automatic Rigging and Animation of
// 3D Characters"): every vertex is heated by the bone it lies nearest to, and the heat spreads over
// the skin, so that an arm does not pull at the flank it hangs beside.
#ifndef DSNET_BODY_BUILD_SKINNING_H
#define DSNET_BODY_BUILD_SKINNING_H

#include "base/error.h"
#include "surface.h"

// weights [point_count][24]: at most BODY_WEIGHTS_MAX of a row are not 0, rows sum to 1, and a
// point's mirror image has the mirrored joints' weights exactly.
int skinning_solve(const struct surface *surface, double *weights, struct dsnet_error *error);

// The same joint on the other side.
int skinning_mirror_joint(int joint);

#endif
