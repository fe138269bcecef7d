// SPDX-License-Identifier: Apache-2.0
// From the coarse surface back to the body: each vertex takes the place on the coarse triangles
// nearest to it, among those around the column it was merged into (so never one across a gap), and
// the weights are then smoothed over the body's own surface, so that displacements show no creases.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/tissue_private.h"

#define SMOOTH_PASSES 3
#define ROW_MAX       (TISSUE_SPREAD * 24)

// For every corner, the things around it, in one block.
struct rings {
  size_t *start; // [count + 1]
  uint32_t *item;
};

static void rings_free(struct rings *rings) {
  free(rings->start);
  free(rings->item);
}

// Around each of `count` corners: with `step` 0 its triangles, with 1 the next corner of each
// triangle (on a closed surface: every neighbour once).
static int rings_build(struct rings *rings, const uint32_t *triangles, size_t faces, size_t count,
                       int step) {
  rings->start = memory_alloc(count + 2, sizeof *rings->start);
  rings->item = memory_alloc(faces, 3 * sizeof *rings->item);
  if (!rings->start || !rings->item)
    return DSNET_ENOMEM;
  for (size_t i = 0; i < 3 * faces; i++)
    rings->start[triangles[i] + 2]++;
  for (size_t v = 2; v < count + 2; v++)
    rings->start[v] += rings->start[v - 1];
  for (size_t i = 0; i < 3 * faces; i++)
    rings->item[rings->start[triangles[i] + 1]++] =
        step ? triangles[i / 3 * 3 + (i + 1) % 3] : (uint32_t)(i / 3);
  return DSNET_OK;
}

static double dot(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// Barycentric weights of the point of triangle a, b, c nearest to p, and its squared distance:
// the plane's point, or the best on the three edges.
static double triangle_nearest(const float *p, const float *const corner[3], double weight[3]) {
  double e1[3], e2[3], d[3];
  for (int c = 0; c < 3; c++) {
    e1[c] = (double)corner[1][c] - corner[0][c];
    e2[c] = (double)corner[2][c] - corner[0][c];
    d[c] = (double)p[c] - corner[0][c];
  }
  double a = dot(e1, e1), b = dot(e1, e2), c = dot(e2, e2), x = dot(d, e1), y = dot(d, e2);
  double determinant = a * c - b * b;
  double s = determinant > 0 ? (c * x - b * y) / determinant : -1,
         t = determinant > 0 ? (a * y - b * x) / determinant : -1;
  if (s >= 0 && t >= 0 && s + t <= 1) {
    weight[0] = 1 - s - t, weight[1] = s, weight[2] = t;
    return dot(d, d) - 2 * (s * x + t * y) + s * s * a + 2 * s * t * b + t * t * c;
  }
  double best = INFINITY;
  for (int k = 0; k < 3; k++) {
    const float *from = corner[k], *to = corner[(k + 1) % 3];
    double edge[3], off[3];
    for (int i = 0; i < 3; i++) {
      edge[i] = (double)to[i] - from[i];
      off[i] = (double)p[i] - from[i];
    }
    double length = dot(edge, edge), u = length > 0 ? dot(off, edge) / length : 0;
    u = fmin(fmax(u, 0), 1);
    double square = dot(off, off) - 2 * u * dot(off, edge) + u * u * length;
    if (square < best) {
      best = square;
      weight[k] = 1 - u, weight[(k + 1) % 3] = u, weight[(k + 2) % 3] = 0;
    }
  }
  return best;
}

// The row of vertex v before smoothing: the nearest place on the triangles around its column and
// around the columns next to that.
static void row_start(const struct tissue *tissue, const struct rings *triangles_of, size_t v,
                      uint32_t column, uint32_t *spread, float *weight) {
  const float *x = body_template(tissue->body);
  double best = INFINITY;
  spread[0] = column;
  weight[0] = 1;
  if (tissue->vertex[column] == v)
    return;
  for (size_t i = triangles_of->start[column]; i < triangles_of->start[column + 1]; i++)
    for (int c = 0; c < 3; c++) {
      uint32_t near = tissue->triangles[3 * (size_t)triangles_of->item[i] + (size_t)c];
      for (size_t j = triangles_of->start[near]; j < triangles_of->start[near + 1]; j++) {
        const uint32_t *t = tissue->triangles + 3 * (size_t)triangles_of->item[j];
        const float *const corners[3] = {x + 3 * (size_t)tissue->vertex[t[0]],
                                         x + 3 * (size_t)tissue->vertex[t[1]],
                                         x + 3 * (size_t)tissue->vertex[t[2]]};
        double found[3] = {0}, square = triangle_nearest(x + 3 * v, corners, found);
        if (square >= best)
          continue;
        best = square;
        for (int k = 0; k < 3; k++) {
          spread[k] = t[k];
          weight[k] = (float)found[k];
        }
      }
    }
}

// A row being summed up.
struct row {
  size_t count;
  uint32_t column[ROW_MAX];
  double weight[ROW_MAX];
};

static void row_add(struct row *row, const uint32_t *spread, const float *weight, double scale) {
  for (int k = 0; k < TISSUE_SPREAD; k++) {
    if (weight[k] == 0)
      continue;
    size_t at = 0;
    while (at < row->count && row->column[at] != spread[k])
      at++;
    if (at == row->count) {
      if (row->count == ROW_MAX)
        continue;
      row->column[row->count] = spread[k];
      row->weight[row->count++] = 0;
    }
    row->weight[at] += scale * weight[k];
  }
}

// The heaviest entries, made to sum to one.
static void row_store(struct row *row, uint32_t *spread, float *weight) {
  double sum = 0;
  size_t kept = row->count < TISSUE_SPREAD ? row->count : TISSUE_SPREAD;
  for (size_t k = 0; k < kept; k++) {
    size_t top = k;
    for (size_t i = k + 1; i < row->count; i++)
      if (row->weight[i] > row->weight[top])
        top = i;
    uint32_t column = row->column[top];
    double value = row->weight[top];
    row->column[top] = row->column[k], row->weight[top] = row->weight[k];
    row->column[k] = column, row->weight[k] = value;
    sum += value;
  }
  for (size_t k = 0; k < TISSUE_SPREAD; k++) {
    spread[k] = k < kept ? row->column[k] : row->column[0];
    weight[k] = k < kept ? (float)(row->weight[k] / sum) : 0;
  }
}

static void rows_smooth(struct tissue *tissue, const struct rings *neighbours, uint32_t *spread,
                        float *weight) {
  size_t vertices = body_vertices(tissue->body);
  for (size_t v = 0; v < vertices; v++) {
    struct row row = {.count = 0};
    size_t first = neighbours->start[v], last = neighbours->start[v + 1];
    row_add(&row, tissue->spread + v * TISSUE_SPREAD, tissue->weight + v * TISSUE_SPREAD,
            first < last ? 0.5 : 1);
    for (size_t i = first; i < last; i++) {
      size_t other = neighbours->item[i];
      row_add(&row, tissue->spread + other * TISSUE_SPREAD, tissue->weight + other * TISSUE_SPREAD,
              0.5 / (double)(last - first));
    }
    row_store(&row, spread + v * TISSUE_SPREAD, weight + v * TISSUE_SPREAD);
  }
  memcpy(tissue->spread, spread, vertices * TISSUE_SPREAD * sizeof *spread);
  memcpy(tissue->weight, weight, vertices * TISSUE_SPREAD * sizeof *weight);
}

int tissue_spread_build(struct tissue *tissue, const uint32_t *root, struct dsnet_error *error) {
  const struct body *body = tissue->body;
  size_t vertices = body_vertices(body);
  struct rings triangles_of = {0}, neighbours = {0};
  uint32_t *spread = memory_alloc(vertices, TISSUE_SPREAD * sizeof *spread);
  float *weight = memory_alloc(vertices, TISSUE_SPREAD * sizeof *weight);
  tissue->spread = memory_alloc(vertices, TISSUE_SPREAD * sizeof *spread);
  tissue->weight = memory_alloc(vertices, TISSUE_SPREAD * sizeof *weight);
  int code = DSNET_ENOMEM;
  if (!spread || !weight || !tissue->spread || !tissue->weight ||
      rings_build(&triangles_of, tissue->triangles, tissue->faces, tissue->columns, 0) ||
      rings_build(&neighbours, body_triangles(body), body_faces(body), vertices, 1))
    goto done;
  for (size_t v = 0; v < vertices; v++)
    row_start(tissue, &triangles_of, v, root[v], tissue->spread + v * TISSUE_SPREAD,
              tissue->weight + v * TISSUE_SPREAD);
  for (int pass = 0; pass < SMOOTH_PASSES; pass++)
    rows_smooth(tissue, &neighbours, spread, weight);
  code = DSNET_OK;
done:
  rings_free(&triangles_of);
  rings_free(&neighbours);
  free(spread);
  free(weight);
  if (code != DSNET_OK)
    dsnet_error_set(error, code, "no memory for the tissue");
  return code;
}
