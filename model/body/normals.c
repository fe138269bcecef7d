// SPDX-License-Identifier: Apache-2.0
#include "body/normals.h"

#include <math.h>
#include <string.h>

// (b - a) x (c - a): the face's normal, twice its area long.
static void face_normal(const float *a, const float *b, const float *c, float normal[3]) {
  const float u[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
  const float w[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
  normal[0] = u[1] * w[2] - u[2] * w[1];
  normal[1] = u[2] * w[0] - u[0] * w[2];
  normal[2] = u[0] * w[1] - u[1] * w[0];
}

// In double: the square of a small face's area underflows a float.
static void make_unit(float normal[3]) {
  const double x = normal[0], y = normal[1], z = normal[2];
  const double length = sqrt(x * x + y * y + z * z);
  if (length == 0)
    return;
  normal[0] = (float)(x / length);
  normal[1] = (float)(y / length);
  normal[2] = (float)(z / length);
}

void body_normals(const struct body *body, const float *vertices, float *normals) {
  const size_t V = body_vertices(body), F = body_faces(body);
  const uint32_t *triangles = body_triangles(body);
  memset(normals, 0, V * 3 * sizeof *normals);
  for (size_t i = 0; i < F; i++) {
    const uint32_t *face = triangles + 3 * i;
    float normal[3];
    face_normal(vertices + 3 * (size_t)face[0], vertices + 3 * (size_t)face[1],
                vertices + 3 * (size_t)face[2], normal);
    for (int k = 0; k < 3; k++)
      for (int c = 0; c < 3; c++)
        normals[3 * (size_t)face[k] + c] += normal[c];
  }
  for (size_t v = 0; v < V; v++)
    make_unit(normals + 3 * v);
}
