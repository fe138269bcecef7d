// SPDX-License-Identifier: Apache-2.0
// Turns the zero level of a scalar field into triangles by marching tetrahedra on Kuhn's division
// of a cubic grid, which unlike marching cubes has no ambiguous case: what comes out is always a
// manifold. Where the surface leaves the box it ends in a boundary exactly on the box's face, which
// is how half a body with its seam on x = 0 is made.
#ifndef DSNET_BODY_BUILD_POLYGONISE_H
#define DSNET_BODY_BUILD_POLYGONISE_H

#include "base/error.h"
#include "triangles.h"

struct polygonise_box {
  double low[3];
  int cells[3]; // multiples of 8
  double step;
};

// `value` should be near a distance: blocks of eight cells are skipped where it says the surface is
// further than twice the block's half diagonal. Triangles are appended to `mesh`, which starts
// empty. Returns 0, DSNET_ENOMEM or DSNET_ELIMIT.
int polygonise(double (*value)(const void *field, const double point[3]), const void *field,
               const struct polygonise_box *box, struct triangles *mesh, struct dsnet_error *error);

#endif
