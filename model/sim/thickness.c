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
#define FAT_LEFT        0.3  // share of its fat that the leanest shape keeps
#define GROWS_FROM      0.4  // softness from which all of a shape's growth is fat
#define DEPTH_PASSES    2
#define INWARD_PASSES   4

int thickness_smooth(const struct tissue *tissue, double *values, int passes) {
  double *sum = memory_alloc(tissue->columns, 2 * sizeof *sum), *count = sum + tissue->columns;
  if (!sum)
    return DSNET_ENOMEM;
  for (int pass = 0; pass < passes; pass++) {
    memset(sum, 0, tissue->columns * 2 * sizeof *sum);
    for (size_t i = 0; i < 3 * tissue->faces; i++) {
      uint32_t a = tissue->triangles[i], b = tissue->triangles[i % 3 == 2 ? i - 2 : i + 1];
      sum[a] += values[b];
      count[a]++;
    }
    for (size_t c = 0; c < tissue->columns; c++)
      if (count[c] > 0)
        values[c] = 0.5 * values[c] + 0.5 * sum[c] / count[c];
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

static int depths_make(struct thickness *thickness, const struct tissue *tissue,
                       const float *shaped, const float *joints, const float *mean,
                       const float *mean_joints) {
  double *fat = thickness->fat_share; // metres, until the depth is known
  for (size_t c = 0; c < tissue->columns; c++) {
    const struct anatomy *anatomy = anatomy_of(tissue->region[c]);
    double softness = tissue->softness[c];
    double radius = bone_distance(tissue->body, joints, shaped, tissue->vertex[c]);
    double growth = radius - bone_distance(tissue->body, mean_joints, mean, tissue->vertex[c]);
    double lean = softness * anatomy->fat;
    fat[c] = fmax(FAT_LEFT * lean, lean + growth * fmin(1, softness / GROWS_FROM));
    thickness->depth[c] = fat[c] + softness * anatomy->muscle;
    thickness->muscle_young[c] = anatomy->muscle_young;
  }
  if (thickness_smooth(tissue, fat, DEPTH_PASSES) ||
      thickness_smooth(tissue, thickness->depth, DEPTH_PASSES) ||
      thickness_smooth(tissue, thickness->muscle_young, DEPTH_PASSES))
    return DSNET_ENOMEM;
  for (size_t c = 0; c < tissue->columns; c++) {
    double depth = thickness->depth[c];
    double radius = bone_distance(tissue->body, joints, shaped, tissue->vertex[c]);
    fat[c] = depth > 0 ? fmin(fmax(fat[c] / depth, 0), 1) : 0;
    thickness->depth[c] = fmin(fmin(depth, DEPTH_MAX), DEPTH_OF_RADIUS * radius);
  }
  return DSNET_OK;
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
  int code = DSNET_OK;
  for (int smooth = 0; smooth < 2 && code == DSNET_OK; smooth++) {
    for (size_t i = 0; i < tissue->columns; i++) {
      double square = 0;
      for (int c = 0; c < 3; c++)
        square += pow(axis[(size_t)c * tissue->columns + i], 2);
      double scale = square > 0 ? 1 / sqrt(square) : 0;
      for (int c = 0; c < 3; c++)
        axis[(size_t)c * tissue->columns + i] *= scale;
    }
    for (int c = 0; c < 3 && code == DSNET_OK && smooth == 0; c++)
      code = thickness_smooth(tissue, axis + (size_t)c * tissue->columns, INWARD_PASSES);
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
