// SPDX-License-Identifier: Apache-2.0
// A triangle mesh with a boundary as half-edges, and the three local operations of remeshing:
// split, collapse, flip. Half-edge h = 3 f + i runs from corner i to corner i + 1 of face f. The
// mesh stays a manifold with the same topology whatever is called: an operation that would break
// it is refused. Boundary points (the seam, x = 0) stay on the boundary, and no inner edge ever
// joins two of them, so that the mesh can be reflected and sewn.
#ifndef DSNET_BODY_BUILD_HALF_MESH_H
#define DSNET_BODY_BUILD_HALF_MESH_H

#include <stdbool.h>

#include "base/error.h"
#include "triangles.h"

#define HALF_MESH_RING_MAX 64

struct half_mesh {
  int point_count, point_room;
  double (*points)[3];
  int *leaving; // [point] some half-edge that starts there, -1 for a removed point
  bool *seam;   // [point] on the boundary
  int face_count, face_room;
  int *from; // [3 face] origin of each half-edge, -1 for a removed face
  int *twin; // [3 face] the opposite half-edge, -1 on the boundary
};

static inline int half_next(int h) {
  return h % 3 == 2 ? h - 2 : h + 1;
}
static inline int half_previous(int h) {
  return h % 3 == 0 ? h + 2 : h - 1;
}
static inline int half_to(const struct half_mesh *mesh, int h) {
  return mesh->from[half_next(h)];
}
static inline int half_apex(const struct half_mesh *mesh, int h) {
  return mesh->from[half_previous(h)];
}

// From triangles that form a manifold. DSNET_EVALUE when an edge has more than two faces or two of
// the same direction. On failure nothing is held.
int half_mesh_init(struct half_mesh *mesh, const struct triangles *triangles,
                   struct dsnet_error *error);
void half_mesh_deinit(struct half_mesh *mesh);

// Compacts what is left into `triangles` (which starts empty), in order; `seam` [point_count], a
// block the caller frees, says which points are on the boundary. DSNET_ENOMEM.
int half_mesh_export(const struct half_mesh *mesh, struct triangles *triangles, bool **seam,
                     struct dsnet_error *error);

// Points around a point, in order; the count, or -1 when there are more than HALF_MESH_RING_MAX.
// At a boundary point the ring starts and ends with its two boundary neighbours.
int half_mesh_ring(const struct half_mesh *mesh, int point, int ring[HALF_MESH_RING_MAX]);

// Puts a point at the edge's middle. Returns it, or -1 when memory is out.
int half_mesh_split(struct half_mesh *mesh, int h);

// Removes the origin of h by drawing it to the end of h, which moves to `place`. False when
// refused: it would change the topology, bring two seam points together across the inside, turn a
// triangle over, or make an edge longer than `longest` times its allowed length. The allowed length
// at a point is `length` [point].
bool half_mesh_collapse(struct half_mesh *mesh, int h, const double place[3], const double *length,
                        double longest);

// Turns the inner edge h to join the two opposite corners. False when refused, also where the
// smaller angle would be under a third of the present one.
bool half_mesh_flip(struct half_mesh *mesh, int h);

// Smallest angle of a triangle, radians.
double triangle_least_angle(const double a[3], const double b[3], const double c[3]);

#endif
