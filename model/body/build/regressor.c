// SPDX-License-Identifier: Apache-2.0
// Each row is the one nearest to a plain bell w0 around the joint, in the norm
// sum (w - w0)^2 / w0, that meets the conditions A w = b: weights sum to 1, the rest joint, and its
// movement with each shape. By Lagrange, w = w0 + W A' (A W A' + S)^-1 (b - A w0) with W =
// diag(w0); S is 0 for the conditions that are exact and small for the movements, which may be
// missed.
#include "regressor.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "figure.h"
#include "shapes.h"
#include "skinning.h"
#include "vector.h"

#define EXACT         4 // the sum and three coordinates
#define CONDITIONS    (EXACT + 3 * SHAPES)
#define RING          1.45 // the ring reaches this many times as far as the nearest skin
#define RING_VERTICES 80   // and has at least so many
#define SLACK         3e-6 // of a movement's condition, m2: a joint may lag its shape by a little

// Condition number k of a vertex: what multiplies its weight.
static double condition(const struct surface *surface, const double *directions, int vertex,
                        const double joint[3], int k) {
  if (k == 0)
    return 1;
  if (k < EXACT) // measured from the joint, so that the right side is 0
    return surface->mesh.points[vertex][k - 1] - joint[k - 1];
  int shape = (k - EXACT) / 3, axis = (k - EXACT) % 3;
  return directions[(vertex * 3 + axis) * SHAPES + shape];
}

static void right_side(const double joint[3], double b[CONDITIONS]) {
  memset(b, 0, CONDITIONS * sizeof *b);
  b[0] = 1;
  for (int shape = 0; shape < SHAPES; shape++)
    shapes_move_joint(shape, joint, &b[EXACT + 3 * shape]);
}

// Cholesky: solves m x = x in place. The diagonal is raised a hair so that conditions that no
// vertex can tell apart (a shape that does not reach this joint) do no harm.
static void solve(double m[CONDITIONS][CONDITIONS], double x[CONDITIONS]) {
  for (int i = 0; i < CONDITIONS; i++) {
    m[i][i] += 1e-13;
    for (int k = 0; k <= i; k++) {
      double sum = m[i][k];
      for (int j = 0; j < k; j++)
        sum -= m[i][j] * m[k][j];
      m[i][k] = i == k ? sqrt(fmax(sum, 1e-15)) : sum / m[k][k];
    }
  }
  for (int i = 0; i < CONDITIONS; i++) {
    for (int j = 0; j < i; j++)
      x[i] -= m[i][j] * x[j];
    x[i] /= m[i][i];
  }
  for (int i = CONDITIONS - 1; i >= 0; i--) {
    for (int j = i + 1; j < CONDITIONS; j++)
      x[i] -= m[j][i] * x[j];
    x[i] /= m[i][i];
  }
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

// The bell to start from, over the vertices within the ring; sums to 1. Equal distances on left
// and right stay together, because what decides is the distance alone.
static void start(const struct surface *surface, const double joint[3], double *row,
                  double *sorted) {
  int count = surface->mesh.point_count;
  for (int i = 0; i < count; i++)
    sorted[i] = row[i] = vector_distance(surface->mesh.points[i], joint);
  qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
  double nearest = sorted[0], ring = fmax(RING * nearest, sorted[RING_VERTICES]), total = 0;
  for (int i = 0; i < count; i++) {
    double q = row[i] / ring;
    row[i] = q < 1 ? (1 - q * q) * (1 - q * q) : 0;
    total += row[i];
  }
  for (int i = 0; i < count; i++)
    row[i] /= total;
}

static void solve_row(const struct surface *surface, const double *directions,
                      const double joint[3], double *row, double *sorted) {
  double m[CONDITIONS][CONDITIONS] = {{0}}, b[CONDITIONS];
  right_side(joint, b);
  start(surface, joint, row, sorted);
  for (int i = 0; i < surface->mesh.point_count; i++) {
    if (row[i] <= 0)
      continue;
    double a[CONDITIONS];
    for (int k = 0; k < CONDITIONS; k++)
      a[k] = condition(surface, directions, i, joint, k);
    for (int k = 0; k < CONDITIONS; k++) {
      b[k] -= a[k] * row[i];
      for (int j = 0; j <= k; j++)
        m[k][j] += a[k] * a[j] * row[i];
    }
  }
  for (int k = EXACT; k < CONDITIONS; k++)
    m[k][k] += SLACK;
  solve(m, b);
  for (int i = 0; i < surface->mesh.point_count; i++) {
    double change = 0;
    for (int k = 0; k < CONDITIONS && row[i] > 0; k++)
      change += b[k] * condition(surface, directions, i, joint, k);
    row[i] += row[i] * change;
  }
}

int regressor_solve(const struct surface *surface, const double *directions, double *rows,
                    struct dsnet_error *error) {
  size_t count = (size_t)surface->mesh.point_count;
  double *row = memory_alloc(count * 2, sizeof *row); // and as much to sort in
  if (!row)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the joint regressor");
  for (int j = 0; j < BODY_JOINTS; j++) {
    int image = skinning_mirror_joint(j);
    if (image < j)
      continue; // came with its mirror image
    solve_row(surface, directions, figure_joints[j], row, row + count);
    for (size_t i = 0; i < count; i++) {
      size_t mirrored = (size_t)surface->mirror[i];
      double value = image == j ? (row[i] + row[mirrored]) / 2 : row[i];
      rows[(size_t)j * count + i] = value;
      if (image != j)
        rows[(size_t)image * count + mirrored] = value;
    }
  }
  free(row);
  return DSNET_OK;
}
