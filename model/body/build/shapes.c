// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "figure.h"
#include "skin_operator.h"
#include "skinning.h"
#include "vector.h"

enum { STATURE, MASS, CHEST, HIPS, BELLY, SHOULDERS, LEGS, MUSCLE, LIMBS, HEAD };

const char *const shapes_names[SHAPES] = {"stature",   "mass", "chest",  "hips",  "belly",
                                          "shoulders", "legs", "muscle", "limbs", "head"};

#define SMOOTHING 0.018 // metres

// Tissue gained in each joint's part of the body, millimetres along the normal. Left and right
// parts share a line; the order is that of `part_joints`.
enum { PARTS = 14 };
static const int part_joints[PARTS] = {0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18, 20};
static const double gain_mass[PARTS] = {8.5, 6.5, 9.5, 3.6, 8.0, 0.8, 6.0,
                                        0.4, 4.0, 4.0, 1.2, 4.5, 2.6, 0.3};
static const double gain_limbs[PARTS] = {0.5, 4.0, 0,   3.2, 0,   0.8, 0,
                                         0.3, 0,   0.8, 0,   3.2, 2.4, 0.5};
static const double gain_muscle[PARTS] = {0, 1.2, -1.2, 0.5, 0.2, 0,   1.8,
                                          0, 2.2, 2.5,  0,   1.2, 0.8, 0.2};

// Tissue gained around a segment, fading over `radius`; `height` along the normal and `shift` in a
// fixed direction, both in millimetres. Drawn on the left.
static const struct bump {
  int shape;
  double a[3], b[3], radius, height, shift[3];
} bumps[] = {
    {MASS, {0.00, -0.16, 0.11}, {0.05, -0.16, 0.10}, 0.15, 5.0, {0, -1, 2}},
    {MASS, {0.07, -0.33, -0.12}, {0.07, -0.33, -0.12}, 0.12, 3.0, {0, 0, 0}},
    {MASS, {0.15, -0.21, 0.0}, {0.16, -0.36, 0.0}, 0.11, 3.0, {0, 0, 0}},
    {MASS, {0.075, 0.05, 0.11}, {0.075, 0.05, 0.11}, 0.09, 3.0, {0, -1, 0}},
    {CHEST, {0.080, 0.052, 0.105}, {0.080, 0.052, 0.105}, 0.085, 8.0, {0, -2.0, 5.0}},
    {CHEST, {0.000, 0.080, 0.0}, {0.100, 0.080, 0.0}, 0.22, 2.2, {0, 0, 0}},
    {HIPS, {0.165, -0.33, 0.0}, {0.165, -0.40, 0.0}, 0.15, 6.5, {2, 0, 0}},
    {HIPS, {0.080, -0.34, -0.12}, {0.080, -0.32, -0.12}, 0.12, 6.5, {0, 0, -1}},
    {HIPS, {0.135, -0.08, 0.0}, {0.135, -0.06, 0.0}, 0.11, -3.5, {0, 0, 0}},
    {BELLY, {0.000, -0.17, 0.11}, {0.020, -0.15, 0.11}, 0.17, 9.0, {0, -1.5, 6.0}},
    {BELLY, {0.130, -0.15, 0.0}, {0.130, -0.17, 0.0}, 0.11, 4.0, {0, 0, 0}},
    {MUSCLE, {0.200, 0.245, -0.02}, {0.225, 0.24, -0.02}, 0.090, 4.5, {0, 0, 0}},
    {MUSCLE, {0.080, 0.095, 0.10}, {0.105, 0.12, 0.09}, 0.085, 5.0, {0, 0, 0}},
    {MUSCLE, {0.145, 0.09, -0.05}, {0.125, 0.02, -0.05}, 0.100, 5.0, {2, 0, -1}},
    {MUSCLE, {0.060, 0.265, -0.045}, {0.090, 0.26, -0.04}, 0.070, 4.0, {0, 0, 0}},
    {MUSCLE, {0.310, 0.235, 0.02}, {0.360, 0.235, 0.01}, 0.080, 5.0, {0, 0, 0}},
    {MUSCLE, {0.290, 0.20, -0.08}, {0.350, 0.20, -0.08}, 0.080, 4.0, {0, 0, 0}},
    {MUSCLE, {0.480, 0.22, -0.02}, {0.510, 0.22, -0.02}, 0.080, 3.0, {0, 0, 0}},
    {MUSCLE, {0.120, -0.50, 0.085}, {0.115, -0.58, 0.08}, 0.110, 4.5, {0, 0, 0}},
    {MUSCLE, {0.100, -0.50, -0.08}, {0.100, -0.58, -0.07}, 0.090, 3.0, {0, 0, 0}},
    {MUSCLE, {0.085, -0.80, -0.075}, {0.115, -0.82, -0.075}, 0.085, 4.5, {0, 0, 0}},
    {MUSCLE, {0.000, -0.12, 0.1}, {0.05, -0.12, 0.1}, 0.120, -1.5, {0, 0, 0}},
};

// The movement of space at a point of the left half (x >= 0) for the shapes that are one.
static void warp(int shape, const double p[3], double move[3]) {
  memset(move, 0, 3 * sizeof *move);
  if (shape == STATURE) {
    for (int i = 0; i < 3; i++)
      move[i] = 0.036 * p[i];
  } else if (shape == SHOULDERS) {
    double across = smooth_ramp(0.02, 0.20, p[0]), up = smooth_ramp(-0.12, 0.17, p[1]);
    move[0] = 0.0085 * across * up;
  } else if (shape == LEGS) {
    // Stretches the legs from the groin to the ankle; a smooth ramp's integral at either end.
    double from = -0.30, to = -1.08, ease = 0.10, t = from - p[1], length = from - to;
    double start = t < 0 ? 0 : t < ease ? t * t / (2 * ease) : t - ease / 2, s = t - length + ease;
    double end = s < 0 ? 0 : s < ease ? s * s / (2 * ease) : s - ease / 2;
    move[1] = -0.026 * (start - end);
  } else if (shape == HEAD) {
    double up = smooth_ramp(0.26, 0.38, p[1]) * smooth_ramp(0.15, 0.10, p[0]);
    const double base[3] = {0, 0.335, 0.01};
    for (int i = 0; i < 3; i++)
      move[i] = 0.028 * up * (p[i] - base[i]);
  }
}

void shapes_move_joint(int shape, const double point[3], double move[3]) {
  const double left[3] = {fabs(point[0]), point[1], point[2]};
  warp(shape, left, move);
  if (point[0] < 0)
    move[0] = -move[0];
}

static double part_gain(const double *weights, const double *gains) {
  double sum = 0;
  for (int k = 0; k < PARTS; k++) {
    int joint = part_joints[k], mirror = skinning_mirror_joint(joint);
    sum += gains[k] * (weights[joint] + (mirror != joint ? weights[mirror] : 0));
    if (joint == 20) // the fingers go with the hand
      sum += gains[k] * (weights[22] + weights[23]);
  }
  return sum;
}

static void tissue(int shape, const double p[3], const double normal[3], const double *weights,
                   double move[3]) {
  double height = 0;
  if (shape == MASS)
    height = part_gain(weights, gain_mass);
  else if (shape == MUSCLE)
    height = part_gain(weights, gain_muscle);
  else if (shape == LIMBS)
    height = part_gain(weights, gain_limbs);
  for (size_t i = 0; i < sizeof bumps / sizeof bumps[0]; i++) {
    const struct bump *bump = &bumps[i];
    double t, q = segment_distance(p, bump->a, bump->b, &t) / bump->radius;
    if (bump->shape != shape || q >= 1)
      continue;
    double fade = (1 - q * q) * (1 - q * q);
    height += bump->height * fade;
    vector_add_scaled(move, 0.001 * fade, bump->shift);
  }
  vector_add_scaled(move, 0.001 * height, normal);
}

// Area-weighted vertex normals [point_count][3].
static void measure_normals(const struct triangles *mesh, double (*normals)[3]) {
  memset(normals, 0, (size_t)mesh->point_count * sizeof *normals);
  for (int f = 0; f < mesh->face_count; f++) {
    const int *face = mesh->faces[f];
    double n[3];
    vector_triangle_normal(mesh->points[face[0]], mesh->points[face[1]], mesh->points[face[2]], n);
    for (int k = 0; k < 3; k++)
      vector_add_scaled(normals[face[k]], 1, n);
  }
  for (int i = 0; i < mesh->point_count; i++)
    vector_normalise(normals[i]);
}

// The left half's movements to the right, and none across the seam.
static void reflect(const struct surface *surface, double (*moves)[3]) {
  for (int i = 0; i < surface->mesh.point_count; i++) {
    int image = surface->mirror[i];
    if (surface->mesh.points[i][0] < 0)
      continue;
    if (image == i)
      moves[i][0] = 0;
    memcpy(moves[image], moves[i], sizeof moves[i]);
    if (image != i)
      moves[image][0] = -moves[i][0];
  }
}

int shapes_measure(const struct surface *surface, const double *weights, double *directions,
                   struct dsnet_error *error) {
  const struct triangles *mesh = &surface->mesh;
  size_t count = (size_t)mesh->point_count;
  struct skin_operator skin = {0};
  double(*normals)[3] = memory_alloc(count, sizeof *normals);
  double(*moves)[3] = memory_alloc(count, sizeof *moves);
  bool out = !normals || !moves || skin_operator_init(&skin, mesh);
  if (!out)
    measure_normals(mesh, normals);
  for (int shape = 0; shape < SHAPES && !out; shape++) {
    for (size_t i = 0; i < count; i++) {
      memset(moves[i], 0, sizeof moves[i]);
      if (mesh->points[i][0] >= 0)
        tissue(shape, mesh->points[i], normals[i], &weights[i * BODY_JOINTS], moves[i]);
    }
    reflect(surface, moves);
    out = skin_operator_smooth(&skin, SMOOTHING, 3, moves[0]);
    for (size_t i = 0; i < count; i++) {
      double move[3];
      shapes_move_joint(shape, mesh->points[i], move);
      vector_add_scaled(moves[i], 1, move);
    }
    reflect(surface, moves);
    for (size_t i = 0; i < count; i++)
      for (int k = 0; k < 3; k++)
        directions[(i * 3 + (size_t)k) * SHAPES + (size_t)shape] = moves[i][k];
  }
  skin_operator_deinit(&skin);
  free(normals);
  free(moves);
  return out ? dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the shape directions")
             : DSNET_OK;
}
