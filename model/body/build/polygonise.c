// SPDX-License-Identifier: Apache-2.0
#include "polygonise.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define BLOCK        8
#define CORNERS_MAX  200000000.0
#define CROSSING_MIN 0.05 // keeps points off the grid's corners, where slivers would form

struct march {
  double (*value)(const void *field, const double point[3]);
  const void *field;
  const struct polygonise_box *box;
  struct triangles *mesh;
  size_t size[3]; // corners along each axis
  float *corners; // values, NAN where not sampled
  uint64_t *keys; // open addressing: grid edge + 1, 0 when free
  int *points;    // the point on that edge
  size_t room, used;
};

static size_t corner_index(const struct march *march, int x, int y, int z) {
  return ((size_t)z * march->size[1] + (size_t)y) * march->size[0] + (size_t)x;
}

static void corner_point(const struct march *march, const int at[3], double point[3]) {
  for (int i = 0; i < 3; i++)
    point[i] = march->box->low[i] + at[i] * march->box->step;
}

static void sample_block(struct march *march, const int first[3]) {
  double point[3];
  for (int i = 0; i < 3; i++)
    point[i] = march->box->low[i] + (first[i] + BLOCK / 2) * march->box->step;
  double half_diagonal = march->box->step * BLOCK / 2 * sqrt(3.0);
  if (fabs(march->value(march->field, point)) > 2 * half_diagonal)
    return;
  for (int z = first[2]; z <= first[2] + BLOCK; z++)
    for (int y = first[1]; y <= first[1] + BLOCK; y++)
      for (int x = first[0]; x <= first[0] + BLOCK; x++) {
        float *corner = &march->corners[corner_index(march, x, y, z)];
        if (!isnan(*corner))
          continue;
        corner_point(march, (const int[3]){x, y, z}, point);
        *corner = (float)march->value(march->field, point);
        if (*corner == 0) // never exactly on the surface, so that every edge has a clear side
          *corner = 1e-9f;
      }
}

static int rehash(struct march *march) {
  size_t room = march->room ? march->room * 2 : 1 << 16;
  uint64_t *keys = memory_alloc(room, sizeof *keys);
  int *points = memory_alloc(room, sizeof *points);
  if (!keys || !points) {
    free(keys);
    free(points);
    return -1;
  }
  for (size_t i = 0; i < march->room; i++) {
    if (!march->keys[i])
      continue;
    size_t at = (march->keys[i] * 0x9E3779B97F4A7C15u) & (room - 1);
    while (keys[at])
      at = (at + 1) & (room - 1);
    keys[at] = march->keys[i];
    points[at] = march->points[i];
  }
  free(march->keys);
  free(march->points);
  march->keys = keys;
  march->points = points;
  march->room = room;
  return 0;
}

// The point where the surface crosses the edge between two corners, made on first use; -1 when
// memory is out. An edge is named by its lower corner and which of x, y, z it advances.
static int edge_point(struct march *march, const int a[3], const int b[3]) {
  const int *low = a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2] ? a : b, *high = low == a ? b : a;
  int direction = (high[0] - low[0]) + 2 * (high[1] - low[1]) + 4 * (high[2] - low[2]);
  uint64_t key = (uint64_t)corner_index(march, low[0], low[1], low[2]) * 8 + (unsigned)direction;
  if (march->used * 2 >= march->room && rehash(march))
    return -1;
  size_t at = (key * 0x9E3779B97F4A7C15u) & (march->room - 1);
  for (; march->keys[at]; at = (at + 1) & (march->room - 1))
    if (march->keys[at] == key)
      return march->points[at];
  double f0 = march->corners[corner_index(march, low[0], low[1], low[2])];
  double f1 = march->corners[corner_index(march, high[0], high[1], high[2])];
  double t = fmin(fmax(f0 / (f0 - f1), CROSSING_MIN), 1 - CROSSING_MIN);
  double p[3], q[3];
  corner_point(march, low, p);
  corner_point(march, high, q);
  for (int i = 0; i < 3; i++)
    p[i] += t * (q[i] - p[i]);
  march->keys[at] = key;
  march->used++;
  return march->points[at] = triangles_add_point(march->mesh, p);
}

// For corners of positive orientation, (c1-c0, c2-c0, c3-c0) right-handed, the triangles are
// counter-clockwise seen from the positive side.
static int march_tetrahedron(struct march *march, int corners[4][3], const float values[4]) {
  // Which corners are inside -> triangles as edges between corners; -1 ends.
  static const signed char cases[16][13] = {
      {-1},
      {0, 1, 0, 2, 0, 3, -1},
      {1, 0, 1, 3, 1, 2, -1},
      {0, 2, 0, 3, 1, 3, 0, 2, 1, 3, 1, 2, -1},
      {2, 0, 2, 1, 2, 3, -1},
      {0, 1, 2, 1, 2, 3, 0, 1, 2, 3, 0, 3, -1},
      {0, 1, 1, 3, 2, 3, 0, 1, 2, 3, 0, 2, -1},
      {0, 3, 1, 3, 2, 3, -1},
      {3, 0, 3, 2, 3, 1, -1},
      {0, 1, 0, 2, 2, 3, 0, 1, 2, 3, 1, 3, -1},
      {0, 1, 0, 3, 2, 3, 0, 1, 2, 3, 1, 2, -1},
      {0, 2, 2, 3, 1, 2, -1},
      {0, 2, 1, 2, 1, 3, 0, 2, 1, 3, 0, 3, -1},
      {0, 1, 1, 2, 1, 3, -1},
      {0, 1, 0, 3, 0, 2, -1},
      {-1},
  };
  int inside = 0;
  for (int i = 0; i < 4; i++)
    inside |= (values[i] < 0) << i;
  for (const signed char *edge = cases[inside]; *edge >= 0; edge += 6) {
    int point[3];
    for (int i = 0; i < 3; i++) {
      point[i] = edge_point(march, corners[(int)edge[2 * i]], corners[(int)edge[2 * i + 1]]);
      if (point[i] < 0)
        return -1;
    }
    if (triangles_add_face(march->mesh, point[0], point[1], point[2]) < 0)
      return -1;
  }
  return 0;
}

// Six tetrahedra around the cell's diagonal, one for each order in which the axes are advanced.
static int march_cell(struct march *march, const int cell[3]) {
  static const int orders[6][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1},
                                   {0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
  for (int k = 0; k < 6; k++) {
    int corners[4][3];
    float values[4];
    memcpy(corners[0], cell, sizeof corners[0]);
    for (int i = 0; i < 3; i++) {
      memcpy(corners[i + 1], corners[i], sizeof corners[0]);
      corners[i + 1][orders[k][i]]++;
    }
    if (k >= 3) { // odd permutations are mirror images: restore the orientation
      int swap[3];
      memcpy(swap, corners[1], sizeof swap);
      memcpy(corners[1], corners[2], sizeof swap);
      memcpy(corners[2], swap, sizeof swap);
    }
    for (int i = 0; i < 4; i++)
      values[i] = march->corners[corner_index(march, corners[i][0], corners[i][1], corners[i][2])];
    if (march_tetrahedron(march, corners, values))
      return -1;
  }
  return 0;
}

static bool cell_is_sampled(const struct march *march, const int cell[3]) {
  for (int i = 0; i < 8; i++)
    if (isnan(march->corners[corner_index(march, cell[0] + (i & 1), cell[1] + (i >> 1 & 1),
                                          cell[2] + (i >> 2))]))
      return false;
  return true;
}

static int march_all(struct march *march) {
  const int *cells = march->box->cells;
  for (int z = 0; z < cells[2]; z += BLOCK)
    for (int y = 0; y < cells[1]; y += BLOCK)
      for (int x = 0; x < cells[0]; x += BLOCK)
        sample_block(march, (const int[3]){x, y, z});
  for (int z = 0; z < cells[2]; z++)
    for (int y = 0; y < cells[1]; y++)
      for (int x = 0; x < cells[0]; x++) {
        const int cell[3] = {x, y, z};
        if (cell_is_sampled(march, cell) && march_cell(march, cell))
          return -1;
      }
  return 0;
}

int polygonise(double (*value)(const void *field, const double point[3]), const void *field,
               const struct polygonise_box *box, struct triangles *mesh,
               struct dsnet_error *error) {
  struct march march = {.value = value, .field = field, .box = box, .mesh = mesh};
  double count = 1;
  for (int i = 0; i < 3; i++) {
    march.size[i] = (size_t)box->cells[i] + 1;
    count *= (double)march.size[i];
  }
  if (count > CORNERS_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "grid of %.0f corners is over %.0f", count,
                           CORNERS_MAX);
  int code = DSNET_OK;
  march.corners = memory_alloc((size_t)count, sizeof *march.corners);
  if (march.corners)
    for (size_t i = 0; i < (size_t)count; i++)
      march.corners[i] = NAN;
  if (!march.corners || march_all(&march))
    code = dsnet_error_set(error, DSNET_ENOMEM, "out of memory while polygonising");
  free(march.corners);
  free(march.keys);
  free(march.points);
  return code;
}
