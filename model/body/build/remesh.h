// SPDX-License-Identifier: Apache-2.0
// Isotropic remeshing onto an implicit surface (Botsch and Kobbelt 2004, "A Remeshing Approach to
// Multiresolution Modeling": split, collapse, flip for valence, relax in the tangent plane,
// project) with a length that varies over the surface.
#ifndef DSNET_BODY_BUILD_REMESH_H
#define DSNET_BODY_BUILD_REMESH_H

#include "half_mesh.h"

struct remesh_surface {
  const void *field;
  // Desired edge length at a point, metres.
  double (*length)(const void *field, const double point[3]);
  // Moves a point to the surface; with `seam` within the plane x = 0.
  void (*project)(const void *field, bool seam, double point[3]);
  // Unit normal.
  void (*normal)(const void *field, const double point[3], double normal[3]);
};

// Runs `rounds` rounds with all lengths multiplied by `scale`. Topology, the seam and its plane are
// kept. DSNET_ENOMEM.
int remesh(struct half_mesh *mesh, const struct remesh_surface *surface, double scale, int rounds,
           struct dsnet_error *error);

// Flips that raise the smallest angle, repeated until none does; points stay where they are.
void remesh_sharpen(struct half_mesh *mesh);

#endif
