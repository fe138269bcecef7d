// SPDX-License-Identifier: Apache-2.0
// A growing list of points and triangles, the form in which meshes pass between the builder's
// steps.
#ifndef DSNET_BODY_BUILD_TRIANGLES_H
#define DSNET_BODY_BUILD_TRIANGLES_H

struct triangles {
  int point_count, point_room;
  double (*points)[3];
  int face_count, face_room;
  int (*faces)[3]; // counter-clockwise from outside
};

// Start from {0}. The index of the new item, or -1 when memory is out (what was there stays).
int triangles_add_point(struct triangles *mesh, const double point[3]);
int triangles_add_face(struct triangles *mesh, int a, int b, int c);
void triangles_deinit(struct triangles *mesh);

#endif
