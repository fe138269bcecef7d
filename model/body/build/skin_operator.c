// SPDX-License-Identifier: Apache-2.0
#include "skin_operator.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "vector.h"

#define COTANGENT_MIN  0.02
#define ITERATIONS_MAX 2000

int skin_operator_init(struct skin_operator *skin, const struct triangles *mesh) {
  memset(skin, 0, sizeof *skin);
  skin->count = mesh->point_count;
  skin->edge_count = 3 * mesh->face_count;
  skin->edges = memory_alloc((size_t)skin->edge_count, sizeof *skin->edges);
  skin->weight = memory_alloc((size_t)skin->edge_count, sizeof *skin->weight);
  skin->degree = memory_alloc((size_t)skin->count, sizeof *skin->degree);
  skin->area = memory_alloc((size_t)skin->count, sizeof *skin->area);
  if (!skin->edges || !skin->weight || !skin->degree || !skin->area) {
    skin_operator_deinit(skin);
    return -1;
  }
  for (int h = 0; h < skin->edge_count; h++) {
    const int *face = mesh->faces[h / 3];
    int a = face[h % 3], b = face[(h + 1) % 3], c = face[(h + 2) % 3];
    double p[3], q[3], n[3];
    vector_subtract(mesh->points[a], mesh->points[c], p);
    vector_subtract(mesh->points[b], mesh->points[c], q);
    vector_cross(p, q, n);
    double twice_area = vector_norm(n);
    double cotangent = twice_area > 0 ? vector_dot(p, q) / twice_area : 0;
    skin->edges[h][0] = a;
    skin->edges[h][1] = b;
    skin->weight[h] = fmax(cotangent, COTANGENT_MIN) / 2;
    skin->degree[a] += skin->weight[h];
    skin->degree[b] += skin->weight[h];
    skin->area[c] += twice_area / 6;
  }
  return 0;
}

void skin_operator_deinit(struct skin_operator *skin) {
  free(skin->edges);
  free(skin->weight);
  free(skin->degree);
  free(skin->area);
  memset(skin, 0, sizeof *skin);
}

static void multiply(const struct skin_operator *skin, const double *diagonal, const double *x,
                     double *y) {
  for (int i = 0; i < skin->count; i++)
    y[i] = (diagonal[i] + skin->degree[i]) * x[i];
  for (int e = 0; e < skin->edge_count; e++) {
    int a = skin->edges[e][0], b = skin->edges[e][1];
    y[a] -= skin->weight[e] * x[b];
    y[b] -= skin->weight[e] * x[a];
  }
}

static double dot(const double *a, const double *b, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++)
    sum += a[i] * b[i];
  return sum;
}

int skin_operator_solve(const struct skin_operator *skin, const double *diagonal,
                        const double *right, double tolerance, double *x) {
  int n = skin->count;
  double *work = memory_alloc((size_t)n * 4, sizeof *work);
  if (!work)
    return -1;
  double *residual = work, *preconditioned = work + n, *direction = work + 2 * n,
         *image = work + 3 * n;
  multiply(skin, diagonal, x, image);
  for (int i = 0; i < n; i++) {
    residual[i] = right[i] - image[i];
    preconditioned[i] = residual[i] / (diagonal[i] + skin->degree[i]);
    direction[i] = preconditioned[i];
  }
  double rho = dot(residual, preconditioned, n);
  double enough = tolerance * tolerance * dot(right, right, n);
  for (int k = 0; k < ITERATIONS_MAX && dot(residual, residual, n) > enough; k++) {
    multiply(skin, diagonal, direction, image);
    double alpha = rho / dot(direction, image, n);
    for (int i = 0; i < n; i++) {
      x[i] += alpha * direction[i];
      residual[i] -= alpha * image[i];
      preconditioned[i] = residual[i] / (diagonal[i] + skin->degree[i]);
    }
    double next = dot(residual, preconditioned, n), beta = next / rho;
    rho = next;
    for (int i = 0; i < n; i++)
      direction[i] = preconditioned[i] + beta * direction[i];
  }
  free(work);
  return 0;
}

int skin_operator_smooth(const struct skin_operator *skin, double reach, int channels,
                         double *values) {
  int n = skin->count;
  double *work = memory_alloc((size_t)n * 3, sizeof *work);
  if (!work)
    return -1;
  double *diagonal = work, *right = work + n, *x = work + 2 * n;
  int failed = 0;
  for (int c = 0; c < channels && !failed; c++) {
    for (int i = 0; i < n; i++) {
      diagonal[i] = skin->area[i] / (reach * reach);
      x[i] = values[i * channels + c];
      right[i] = diagonal[i] * x[i];
    }
    failed = skin_operator_solve(skin, diagonal, right, 1e-9, x);
    for (int i = 0; i < n; i++)
      values[i * channels + c] = x[i];
  }
  free(work);
  return failed;
}
