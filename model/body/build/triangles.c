// SPDX-License-Identifier: Apache-2.0
#include "triangles.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int grow(void **items, int count, int *room, size_t size) {
  if (count < *room)
    return 0;
  if (*room > INT_MAX / 2)
    return -1;
  int more = *room ? *room * 2 : 1024;
  void *moved = realloc(*items, (size_t)more * size);
  if (!moved)
    return -1;
  *items = moved;
  *room = more;
  return 0;
}

int triangles_add_point(struct triangles *mesh, const double point[3]) {
  void *points = mesh->points;
  if (grow(&points, mesh->point_count, &mesh->point_room, sizeof *mesh->points))
    return -1;
  mesh->points = points;
  memcpy(mesh->points[mesh->point_count], point, sizeof *mesh->points);
  return mesh->point_count++;
}

int triangles_add_face(struct triangles *mesh, int a, int b, int c) {
  void *faces = mesh->faces;
  if (grow(&faces, mesh->face_count, &mesh->face_room, sizeof *mesh->faces))
    return -1;
  mesh->faces = faces;
  int *face = mesh->faces[mesh->face_count];
  face[0] = a, face[1] = b, face[2] = c;
  return mesh->face_count++;
}

void triangles_deinit(struct triangles *mesh) {
  free(mesh->points);
  free(mesh->faces);
  memset(mesh, 0, sizeof *mesh);
}
