// SPDX-License-Identifier: Apache-2.0
// The linear subspace of displacements: principal components about zero (a body at rest has D = 0,
// and error is measured against predicting zero, so no mean is taken away), by the method of
// snapshots (Sirovich 1987): with S [N][3V] snapshots, eigenvectors of the small Gram matrix S S^T
// give those of the covariance, at N^2 3V products instead of (3V)^2 N.
#ifndef DSNET_TRAIN_SUBSPACE_H
#define DSNET_TRAIN_SUBSPACE_H

#include <stddef.h>

#include "base/error.h"

// basis has orthonormal columns; latents are whitened: D = basis diag(scale) z.
struct subspace {
  size_t values;   // 3V
  size_t latent;   // Z
  float *basis;    // [Z][3V], one direction after the other
  float *scale;    // [Z] metres, root mean square of the coordinate over the snapshots
  double captured; // share of the snapshots' energy inside the subspace
};

// Finds `latent` directions of snapshots [count][values]; with `latent` 0 the fewest that leave at
// most `loss` (a share, 0..1) of the energy outside, up to `most`. Fewer are returned when the
// snapshots have fewer that mean anything. DSNET_EVALUE when they are all zero.
int subspace_fit(struct subspace *subspace, const float *snapshots, size_t count, size_t values,
                 size_t latent, double loss, size_t most, struct dsnet_error *error);
void subspace_deinit(struct subspace *subspace);

// Whitened latents [count][Z] of displacements [count][values], and per frame the energy that lies
// outside the subspace (m^2, summed over vertices) -> residual [count].
void subspace_project(const struct subspace *subspace, const float *displacements, size_t count,
                      float *latents, float *residual);

// displacements [count][values] of whitened latents.
void subspace_expand(const struct subspace *subspace, const float *latents, size_t count,
                     float *displacements);

#endif
