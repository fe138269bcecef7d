// SPDX-License-Identifier: Apache-2.0
#include "skinning.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "figure.h"
#include "skin_operator.h"
#include "vector.h"

#define CONDUCTION_MIN 0.015 // metres: nearer than this to a bone's surface counts as this near
#define HEAT           0.5   // less of it makes the joints softer
#define TOLERANCE      1e-8
#define WEIGHT_MIN     0.002 // smaller ones are dropped

// What heats the skin: capsules, thick where a bone carries a broad part of the body. Those off the
// midline are mirrored.
static const struct {
  int joint;
  double a[3], b[3], radius;
} bones[] = {
    {0, {0, -0.26, 0.0}, {0.06, -0.24, 0.0}, 0.07},
    {0, {0.08, -0.27, -0.03}, {0.11, -0.24, 0.0}, 0.05},
    {1, {0.093, -0.40, 0.0}, {0.102, -0.690, 0.006}, 0.045},
    {3, {0, -0.125, 0}, {0.07, -0.125, 0.0}, 0.06},
    {3, {0, -0.07, 0}, {0.07, -0.07, 0.0}, 0.06},
    {4, {0.102, -0.690, 0.006}, {0.090, -1.070, -0.027}, 0.03},
    {6, {0, 0.0, 0}, {0.08, 0.0, 0.0}, 0.06},
    {7, {0.090, -1.110, -0.050}, {0.105, -1.155, 0.070}, 0.02},
    {9, {0, 0.075, 0}, {0.09, 0.075, 0.0}, 0.06},
    {9, {0, 0.15, -0.01}, {0.07, 0.15, -0.02}, 0.06},
    {9, {0, 0.22, -0.03}, {0.02, 0.22, -0.03}, 0.04},
    {10, {0.112, -1.160, 0.110}, {0.120, -1.168, 0.170}, 0.015},
    {12, {0, 0.285, -0.018}, {0, 0.335, 0.0}, 0.045},
    {13, {0.085, 0.215, -0.015}, {0.145, 0.225, -0.018}, 0.04},
    {15, {0, 0.385, 0.025}, {0, 0.47, 0.015}, 0.06},
    {16, {0.205, 0.224, -0.020}, {0.430, 0.215, -0.040}, 0.03},
    {18, {0.430, 0.215, -0.040}, {0.680, 0.220, -0.043}, 0.02},
    {20, {0.690, 0.220, -0.043}, {0.755, 0.220, -0.043}, 0.012},
    {20, {0.715, 0.212, -0.020}, {0.790, 0.195, 0.040}, 0.010},
    {22, {0.785, 0.218, -0.015}, {0.860, 0.210, -0.005}, 0.006},
    {22, {0.785, 0.218, -0.040}, {0.860, 0.210, -0.040}, 0.006},
    {22, {0.785, 0.218, -0.070}, {0.840, 0.210, -0.080}, 0.006},
};

int skinning_mirror_joint(int joint) {
  static const int mirror[BODY_JOINTS] = {0,  2,  1,  3,  5,  4,  6,  8,  7,  9,  11, 10,
                                          12, 14, 13, 15, 17, 16, 19, 18, 21, 20, 23, 22};
  return mirror[joint];
}

// The bone that heats a point of the left half, and how strongly.
static int nearest_bone(const double point[3], double *heat) {
  double best = 1e9;
  int joint = 0;
  for (size_t i = 0; i < sizeof bones / sizeof bones[0]; i++) {
    double t, distance = segment_distance(point, bones[i].a, bones[i].b, &t) - bones[i].radius;
    if (distance < best) {
      best = distance;
      joint = bones[i].joint;
    }
  }
  best = fmax(best, CONDUCTION_MIN);
  *heat = HEAT / (best * best);
  return joint;
}

// One joint's weights over the skin: (L + A H) w = A H p, p being 1 where the joint heats.
static int solve_joint(const struct skin_operator *skin, const int *owner, const double *heat,
                       int joint, double *diagonal, double *right, double *solution) {
  for (int i = 0; i < skin->count; i++) {
    diagonal[i] = skin->area[i] * heat[i];
    right[i] = owner[i] == joint ? diagonal[i] : 0;
    solution[i] = owner[i] == joint;
  }
  return skin_operator_solve(skin, diagonal, right, TOLERANCE, solution);
}

// Keeps the heaviest few of a row and makes them sum to 1. On the seam left and right joints weigh
// the same, so that a pair is kept or dropped as one and takes two places.
static void prune(double *row, bool seam) {
  bool kept[BODY_JOINTS] = {false};
  double total = 0;
  for (int room = BODY_WEIGHTS_MAX; room > 0;) {
    int best = -1;
    for (int j = 0; j < BODY_JOINTS; j++) {
      bool pair = seam && skinning_mirror_joint(j) != j;
      if (!kept[j] && row[j] >= WEIGHT_MIN && (!pair || room >= 2) &&
          (best < 0 || row[j] > row[best]))
        best = j;
    }
    if (best < 0)
      break;
    int partner = seam ? skinning_mirror_joint(best) : best;
    kept[best] = kept[partner] = true;
    room -= partner == best ? 1 : 2;
    total += partner == best ? row[best] : row[best] + row[partner];
  }
  for (int j = 0; j < BODY_JOINTS; j++)
    row[j] = kept[j] ? row[j] / total : 0;
}

// Points of the left half and the seam take the mean of themselves and their image; the right half
// is copied from them.
static void symmetrise(const struct surface *surface, double *weights) {
  for (int i = 0; i < surface->mesh.point_count; i++) {
    int image = surface->mirror[i];
    if (surface->mesh.points[i][0] < 0)
      continue;
    double *own = &weights[i * BODY_JOINTS], *other = &weights[image * BODY_JOINTS];
    double row[BODY_JOINTS];
    for (int j = 0; j < BODY_JOINTS; j++)
      row[j] = (own[j] + other[skinning_mirror_joint(j)]) / 2;
    prune(row, image == i);
    for (int j = 0; j < BODY_JOINTS; j++) {
      own[j] = row[j];
      other[skinning_mirror_joint(j)] = row[j];
    }
  }
}

int skinning_solve(const struct surface *surface, double *weights, struct dsnet_error *error) {
  size_t count = (size_t)surface->mesh.point_count;
  struct skin_operator skin = {0};
  int *owner = memory_alloc(count, sizeof *owner);
  double *work = memory_alloc(count * 4, sizeof *work);
  int code = DSNET_OK;
  if (!owner || !work || skin_operator_init(&skin, &surface->mesh)) {
    code = dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the skinning weights");
    goto done;
  }
  double *heat = work, *diagonal = work + count, *right = diagonal + count,
         *solution = right + count;
  for (size_t i = 0; i < count; i++) {
    const double *p = surface->mesh.points[i], left[3] = {fabs(p[0]), p[1], p[2]};
    owner[i] = nearest_bone(left, &heat[i]);
    if (p[0] < 0)
      owner[i] = skinning_mirror_joint(owner[i]);
  }
  for (int j = 0; j < BODY_JOINTS && !code; j++) {
    if (solve_joint(&skin, owner, heat, j, diagonal, right, solution))
      code = dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the skinning weights");
    for (size_t i = 0; i < count; i++)
      weights[i * BODY_JOINTS + (size_t)j] = fmax(solution[i], 0);
  }
  if (!code)
    symmetrise(surface, weights);
done:
  skin_operator_deinit(&skin);
  free(owner);
  free(work);
  return code;
}
