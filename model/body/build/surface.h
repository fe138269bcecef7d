// SPDX-License-Identifier: Apache-2.0
// The body's skin as a mesh: polygonises the left half of the figure, remeshes it, reflects it and
// sews the two at x = 0. The outcome is a closed manifold, and point i's mirror image is
// points[mirror[i]] exactly.
#ifndef DSNET_BODY_BUILD_SURFACE_H
#define DSNET_BODY_BUILD_SURFACE_H

#include "base/error.h"
#include "field.h"
#include "triangles.h"

struct surface {
  struct triangles mesh;
  int *mirror; // [point_count]; its own index on the seam
};

// About `target` points (within one per cent or so). On failure nothing is held.
int surface_make(struct surface *surface, const struct field *field, int target,
                 struct dsnet_error *error);
void surface_deinit(struct surface *surface);

#endif
