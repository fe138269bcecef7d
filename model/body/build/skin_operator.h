// SPDX-License-Identifier: Apache-2.0
// The Laplacian of the skin (Pinkall and Polthier 1993: cotangent weights) with lumped areas, and
// the linear systems of diffusion on it.
#ifndef DSNET_BODY_BUILD_SKIN_OPERATOR_H
#define DSNET_BODY_BUILD_SKIN_OPERATOR_H

#include "triangles.h"

struct skin_operator {
  int count, edge_count;
  int (*edges)[2];
  double *weight; // [edge] half the cotangent of the angle across; edges come once per face
  double *degree; // [point] sum of its edges' weights
  double *area;   // [point] a third of its faces' areas, m2
};

// Returns -1 when memory is out, and then holds nothing. Weights are kept above zero, where an
// obtuse angle's would not be, so that solutions stay within the range of what drives them.
int skin_operator_init(struct skin_operator *skin, const struct triangles *mesh);
void skin_operator_deinit(struct skin_operator *skin);

// Solves (L + diag(diagonal)) x = right by conjugate gradients from the x given, diagonal > 0, to a
// residual of tolerance times the right side's. Returns -1 when memory is out.
int skin_operator_solve(const struct skin_operator *skin, const double *diagonal,
                        const double *right, double tolerance, double *x);

// Smooths `channels` values per point by implicit diffusion over a length of `reach` metres.
int skin_operator_smooth(const struct skin_operator *skin, double reach, int channels,
                         double *values);

#endif
