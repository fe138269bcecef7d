// SPDX-License-Identifier: Apache-2.0
#include "sim/thickness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/pose.h"
#include "sim/anatomy.h"

#define DEPTH_OF_RADIUS 0.8  // the deepest that tissue goes on the way to the bone's axis
#define DEPTH_MAX       0.14 // metres
#define FAT_LEFT        0.7  // share of its fat that the leanest shape keeps
#define GROWS_FROM      0.4  // softness from which all of a shape's growth is fat
#define DEPTH_PASSES                                                                               \
  9 // on the body's own surface, so that the depth does not depend on the coarse one
#define INWARD_PASSES 4

// A closed surface of some number of points.
struct surface {
  const uint32_t *triangles;
  size_t faces, points;
};

// values[i] <- half itself, half the average around it, `passes` times.
static int smooth(const struct surface *surface, double *values, int passes) {
  double *sum = memory_alloc(surface->points, 2 * sizeof *sum), *count = sum + surface->points;
  if (!sum)
    return DSNET_ENOMEM;
  for (int pass = 0; pass < passes; pass++) {
    memset(sum, 0, surface->points * 2 * sizeof *sum);
    for (size_t i = 0; i < 3 * surface->faces; i++) {
      uint32_t a = surface->triangles[i], b = surface->triangles[i % 3 == 2 ? i - 2 : i + 1];
      sum[a] += values[b];
      count[a]++;
    }
    for (size_t i = 0; i < surface->points; i++)
      if (count[i] > 0)
        values[i] = 0.5 * values[i] + 0.5 * sum[i] / count[i];
  }
  free(sum);
  return DSNET_OK;
}

static double segment_distance(const float *p, const float *a, const float *b) {
  double along = 0, length = 0, d[3], e[3], square = 0;
  for (int c = 0; c < 3; c++) {
    d[c] = (double)p[c] - a[c];
    e[c] = (double)b[c] - a[c];
    along += d[c] * e[c];
    length += e[c] * e[c];
  }
  double t = length > 0 ? fmin(fmax(along / length, 0), 1) : 0;
  for (int c = 0; c < 3; c++)
    square += (d[c] - t * e[c]) * (d[c] - t * e[c]);
  return sqrt(square);
}

// Distance from a vertex to the bones that carry it: each joint's bones go to its children, a
// joint without any is a point.
static double bone_distance(const struct body *body, const float *joints, const float *shaped,
                            uint32_t vertex) {
  const int *parents = body_parents(body);
  double sum = 0;
  for (int k = 0; k < BODY_WEIGHTS_MAX; k++) {
    float weight = body_weight_values(body)[(size_t)vertex * BODY_WEIGHTS_MAX + (size_t)k];
    int joint = body_weight_joints(body)[(size_t)vertex * BODY_WEIGHTS_MAX + (size_t)k];
    if (weight <= 0)
      continue;
    const float *p = shaped + 3 * (size_t)vertex, *from = joints + 3 * joint;
    double nearest = INFINITY;
    for (int child = joint + 1; child < BODY_JOINTS; child++)
      if (parents[child] == joint)
        nearest = fmin(nearest, segment_distance(p, from, joints + 3 * child));
    if (nearest == INFINITY)
      nearest = segment_distance(p, from, from);
    sum += weight * nearest;
  }
  return sum;
}

// Metres of fat and of all tissue and the muscle's modulus at every vertex of the body, one [V]
// after the other in `fields`.
static int fields_make(double *fields, const struct tissue *tissue, const float *shaped,
                       const float *joints, const float *mean, const float *mean_joints) {
  const struct body *body = tissue->body;
  const size_t vertices = body_vertices(body);
  double *fat = fields, *depth = fields + vertices, *young = fields + 2 * vertices;
  for (size_t v = 0; v < vertices; v++) {
    const struct anatomy *anatomy = anatomy_of(tissue->region[v]);
    double softness = tissue->softness[v];
    double growth = bone_distance(body, joints, shaped, (uint32_t)v) -
                    bone_distance(body, mean_joints, mean, (uint32_t)v);
    double lean = softness * anatomy->fat;
    fat[v] = fmax(FAT_LEFT * lean, lean + growth * fmin(1, softness / GROWS_FROM));
    depth[v] = fat[v] + softness * anatomy->muscle;
    young[v] = anatomy->muscle_young;
  }
  const struct surface surface = {body_triangles(body), body_faces(body), vertices};
  for (size_t i = 0; i < 3; i++)
    if (smooth(&surface, fields + i * vertices, DEPTH_PASSES))
      return DSNET_ENOMEM;
  return DSNET_OK;
}

static int depths_make(struct thickness *thickness, const struct tissue *tissue,
                       const float *shaped, const float *joints, const float *mean,
                       const float *mean_joints) {
  const size_t vertices = body_vertices(tissue->body);
  double *fields = memory_alloc(vertices, 3 * sizeof *fields);
  if (!fields)
    return DSNET_ENOMEM;
  int code = fields_make(fields, tissue, shaped, joints, mean, mean_joints);
  for (size_t c = 0; c < tissue->columns; c++) {
    uint32_t vertex = tissue->vertex[c];
    double fat = fields[vertex], depth = fields[vertices + vertex];
    double radius = bone_distance(tissue->body, joints, shaped, vertex);
    thickness->fat_share[c] = depth > 0 ? fmin(fmax(fat / depth, 0), 1) : 0;
    thickness->depth[c] = fmin(fmin(depth, DEPTH_MAX), DEPTH_OF_RADIUS * radius);
    thickness->muscle_young[c] = fields[2 * vertices + vertex];
  }
  free(fields);
  return code;
}

// The coarse surface's inward normals, smoothed so that columns do not cross in creases.
static int inward_make(struct thickness *thickness, const struct tissue *tissue,
                       const float *shaped) {
  double *axis = memory_alloc(tissue->columns, 3 * sizeof *axis); // one component after the other
  if (!axis)
    return DSNET_ENOMEM;
  for (size_t f = 0; f < tissue->faces; f++) {
    const uint32_t *t = tissue->triangles + 3 * f;
    const float *x[3];
    for (int k = 0; k < 3; k++)
      x[k] = shaped + 3 * (size_t)tissue->vertex[t[k]];
    for (int c = 0; c < 3; c++) {
      int u = (c + 1) % 3, v = (c + 2) % 3;
      double normal = ((double)x[1][u] - x[0][u]) * ((double)x[2][v] - x[0][v]) -
                      ((double)x[1][v] - x[0][v]) * ((double)x[2][u] - x[0][u]);
      for (int k = 0; k < 3; k++)
        axis[(size_t)c * tissue->columns + t[k]] -= normal;
    }
  }
  const struct surface surface = {tissue->triangles, tissue->faces, tissue->columns};
  int code = DSNET_OK;
  for (int round = 0; round < 2 && code == DSNET_OK; round++) {
    for (size_t i = 0; i < tissue->columns; i++) {
      double square = 0;
      for (int c = 0; c < 3; c++)
        square += pow(axis[(size_t)c * tissue->columns + i], 2);
      double scale = square > 0 ? 1 / sqrt(square) : 0;
      for (int c = 0; c < 3; c++)
        axis[(size_t)c * tissue->columns + i] *= scale;
    }
    for (int c = 0; c < 3 && code == DSNET_OK && round == 0; c++)
      code = smooth(&surface, axis + (size_t)c * tissue->columns, INWARD_PASSES);
  }
  for (size_t i = 0; i < tissue->columns; i++)
    for (int c = 0; c < 3; c++)
      thickness->inward[i][c] = axis[(size_t)c * tissue->columns + i];
  free(axis);
  return code;
}

int thickness_init(struct thickness *thickness, const struct tissue *tissue, const float *shaped,
                   const float *joints, struct dsnet_error *error) {
  size_t n = tissue->columns;
  float mean_joints[BODY_JOINTS * 3];
  float *mean = memory_alloc(body_vertices(tissue->body), 3 * sizeof *mean);
  *thickness = (struct thickness){
      .depth = memory_alloc(n, sizeof *thickness->depth),
      .fat_share = memory_alloc(n, sizeof *thickness->fat_share),
      .muscle_young = memory_alloc(n, sizeof *thickness->muscle_young),
      .inward = memory_alloc(n, sizeof *thickness->inward),
  };
  int code = DSNET_ENOMEM;
  if (mean && thickness->depth && thickness->fat_share && thickness->muscle_young &&
      thickness->inward) {
    body_shape(tissue->body, NULL, 0, mean, mean_joints);
    code = depths_make(thickness, tissue, shaped, joints, mean, mean_joints);
    if (code == DSNET_OK)
      code = inward_make(thickness, tissue, shaped);
  }
  free(mean);
  if (code != DSNET_OK) {
    thickness_deinit(thickness);
    dsnet_error_set(error, code, "no memory for the tissue");
  }
  return code;
}

void thickness_deinit(struct thickness *thickness) {
  free(thickness->depth);
  free(thickness->fat_share);
  free(thickness->muscle_young);
  free(thickness->inward);
  *thickness = (struct thickness){0};
}
