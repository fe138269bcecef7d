// SPDX-License-Identifier: Apache-2.0
// Each row is the one nearest to a plain Gaussian w0 around the joint, in the norm
// sum (w - w0)^2 / w0, that meets the conditions A w = b: weights sum to 1, the rest joint, and its
// movement with each shape. By Lagrange, w = w0 + W A' (A W A' + S)^-1 (b - A w0) with W = diag(w0);
// S is 0 for the conditions that are exact and small for the movements, which may be missed.
#include "regressor.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "figure.h"
#include "shapes.h"
#include "vector.h"
#include "weights.h"

#define EXACT      4 // the sum and three coordinates
#define CONDITIONS (EXACT + 3 * SHAPES)
#define RING       1.45 // the ring reaches this many times as far as the nearest skin
#define SLACK      1e-7 // of a movement's condition, m2 (they are of the order of a centimetre)

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

// Cholesky: solves m x = x in place. The diagonal is raised a hair so that conditions that no vertex
// can tell apart (a shape that does not reach this joint) do no harm.
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

// The Gaussian to start from, over vertices within the ring; sums to 1.
static void start(const struct surface *surface, const double joint[3], double *row) {
  double nearest = 1e9, total = 0;
  for (int i = 0; i < surface->mesh.point_count; i++)
    nearest = fmin(nearest, vector_distance(surface->mesh.points[i], joint));
  for (int i = 0; i < surface->mesh.point_count; i++) {
    double q = vector_distance(surface->mesh.points[i], joint) / nearest;
    row[i] = q < RING ? exp(-2 * q * q) : 0;
    total += row[i];
  }
  for (int i = 0; i < surface->mesh.point_count; i++)
    row[i] /= total;
}

static void solve_row(const struct surface *surface, const double *directions,
                      const double joint[3], double *row) {
  double m[CONDITIONS][CONDITIONS] = {{0}}, b[CONDITIONS];
  right_side(joint, b);
  start(surface, joint, row);
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
  double *row = memory_alloc(count, sizeof *row);
  if (!row)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the joint regressor");
  for (int j = 0; j < BODY_JOINTS; j++) {
    int image = weights_mirror_joint(j);
    if (image < j)
      continue; // came with its mirror image
    solve_row(surface, directions, figure_joints[j], row);
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
