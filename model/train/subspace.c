// SPDX-License-Identifier: Apache-2.0
#include "train/subspace.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/gemm.h"

// LAPACK's eigenvectors of a symmetric matrix (divide and conquer), out of OpenBLAS, whose package
// has no C header for it. The last two arguments are the lengths of the texts, as Fortran passes
// them.
void dsyevd_(const char *job, const char *triangle, const int *n, double *a, const int *lda,
             double *w, double *work, const int *work_size, int *integers, const int *integers_size,
             int *info, size_t job_length, size_t triangle_length);

// Directions with less than this share of the largest one's energy are rounding of the float Gram
// matrix.
#define RELATIVE_FLOOR 1e-7

static double *gram_matrix(const float *snapshots, size_t count, size_t values) {
  float *gram = memory_alloc(count * count, sizeof *gram);
  double *wide = memory_alloc(count * count, sizeof *wide);
  if (gram && wide) {
    gemm_multiply(false, true, count, count, values, 1, snapshots, values, snapshots, values, 0,
                  gram, count);
    // Symmetric to the last bit, which the float product need not be.
    for (size_t i = 0; i < count; i++)
      for (size_t j = 0; j < count; j++)
        wide[i * count + j] = 0.5 * ((double)gram[i * count + j] + gram[j * count + i]);
  } else {
    free(wide);
    wide = NULL;
  }
  free(gram);
  return wide;
}

// Number of directions, from eigenvalues [count] in descending order.
static size_t choose_latent(const double *energy, size_t count, double total, size_t latent,
                            double loss, size_t most) {
  size_t meaningful = 0;
  while (meaningful < count && energy[meaningful] > energy[0] * RELATIVE_FLOOR)
    meaningful++;
  if (most > meaningful)
    most = meaningful;
  if (latent)
    return latent < most ? latent : most;
  double inside = 0;
  size_t chosen = 0;
  while (chosen < most && total - inside > loss * total)
    inside += energy[chosen++];
  return chosen;
}

// Modified Gram-Schmidt in double: the directions of small eigenvalues come out of the Gram matrix
// less orthogonal than the projection needs.
static void orthonormalise(float *basis, size_t latent, size_t values) {
  for (size_t k = 0; k < latent; k++) {
    float *direction = basis + k * values;
    for (size_t j = 0; j < k; j++) {
      const float *other = basis + j * values;
      double dot = 0;
      for (size_t i = 0; i < values; i++)
        dot += (double)direction[i] * other[i];
      for (size_t i = 0; i < values; i++)
        direction[i] -= (float)(dot * other[i]);
    }
    double norm = 0;
    for (size_t i = 0; i < values; i++)
      norm += (double)direction[i] * direction[i];
    float scale = norm > 0 ? (float)(1 / sqrt(norm)) : 0;
    for (size_t i = 0; i < values; i++)
      direction[i] *= scale;
  }
}

// basis = V S with V's rows the leading eigenvectors, largest first.
static int leading_directions(struct subspace *subspace, const float *snapshots, size_t count,
                              const double *vectors) {
  float *leading = memory_alloc(subspace->latent * count, sizeof *leading);
  if (!leading)
    return -1;
  for (size_t k = 0; k < subspace->latent; k++)
    for (size_t n = 0; n < count; n++)
      leading[k * count + n] = (float)vectors[(count - 1 - k) * count + n];
  gemm_multiply(false, false, subspace->latent, subspace->values, count, 1, leading, count,
                snapshots, subspace->values, 0, subspace->basis, subspace->values);
  free(leading);
  orthonormalise(subspace->basis, subspace->latent, subspace->values);
  return 0;
}

// Eigenvalues in ascending order, and eigenvectors in place of the matrix, j in column j of
// LAPACK's column-major order, that is in row j of ours.
static int eigenvectors(double *matrix, size_t count, double *values, struct dsnet_error *error) {
  int n = (int)count, info = 0, query = -1, integers_size = 0;
  double best = 0;
  dsyevd_("V", "L", &n, matrix, &n, values, &best, &query, &integers_size, &query, &info, 1, 1);
  int size = (int)best;
  double *work = memory_alloc((size_t)size, sizeof *work);
  int *integers = memory_alloc((size_t)integers_size, sizeof *integers);
  if (work && integers)
    dsyevd_("V", "L", &n, matrix, &n, values, work, &size, integers, &integers_size, &info, 1, 1);
  bool allocated = work && integers;
  free(work);
  free(integers);
  if (!allocated)
    return dsnet_error_set(error, DSNET_ENOMEM, "principal components: out of memory");
  if (info)
    return dsnet_error_set(error, DSNET_EVALUE, "principal components: no convergence");
  return 0;
}

int subspace_fit(struct subspace *subspace, const float *snapshots, size_t count, size_t values,
                 size_t latent, double loss, size_t most, struct dsnet_error *error) {
  memset(subspace, 0, sizeof *subspace);
  int result = DSNET_ENOMEM;
  double *energy = memory_alloc(count, sizeof *energy);
  double *gram = gram_matrix(snapshots, count, values);
  if (!energy || !gram)
    goto done;
  result = eigenvectors(gram, count, energy, error);
  if (result < 0)
    goto done;
  result = DSNET_ENOMEM;
  double total = 0;
  for (size_t i = 0; i < count; i++)
    total += energy[i] > 0 ? energy[i] : 0;
  for (size_t i = 0; i < count / 2; i++) {
    double swap = energy[i];
    energy[i] = energy[count - 1 - i];
    energy[count - 1 - i] = swap;
  }
  if (!(total > 0)) {
    result = dsnet_error_set(error, DSNET_EVALUE, "the displacements are all zero");
    goto done;
  }
  subspace->values = values;
  subspace->latent = choose_latent(energy, count, total, latent, loss, most);
  subspace->basis = memory_alloc(subspace->latent * values, sizeof *subspace->basis);
  subspace->scale = memory_alloc(subspace->latent, sizeof *subspace->scale);
  if (!subspace->basis || !subspace->scale ||
      leading_directions(subspace, snapshots, count, gram) < 0)
    goto done;
  for (size_t k = 0; k < subspace->latent; k++) {
    subspace->scale[k] = (float)sqrt(energy[k] / (double)count);
    subspace->captured += energy[k] / total;
  }
  result = 0;
done:
  if (result == DSNET_ENOMEM)
    dsnet_error_set(error, DSNET_ENOMEM, "principal components: out of memory");
  free(gram);
  free(energy);
  if (result < 0)
    subspace_deinit(subspace);
  return result;
}

void subspace_deinit(struct subspace *subspace) {
  free(subspace->basis);
  free(subspace->scale);
  memset(subspace, 0, sizeof *subspace);
}

void subspace_project(const struct subspace *subspace, const float *displacements, size_t count,
                      float *latents, float *residual) {
  size_t latent = subspace->latent, values = subspace->values;
  gemm_multiply(false, true, count, latent, values, 1, displacements, values, subspace->basis,
                values, 0, latents, latent);
  for (size_t f = 0; f < count; f++) {
    const float *frame = displacements + f * values;
    double energy = 0;
    for (size_t i = 0; i < values; i++)
      energy += (double)frame[i] * frame[i];
    for (size_t k = 0; k < latent; k++) {
      float *z = &latents[f * latent + k];
      energy -= (double)*z * *z;
      *z /= subspace->scale[k];
    }
    residual[f] = (float)(energy > 0 ? energy : 0);
  }
}

void subspace_expand(const struct subspace *subspace, const float *latents, size_t count,
                     float *displacements) {
  size_t values = subspace->values;
  memset(displacements, 0, count * values * sizeof *displacements);
  for (size_t f = 0; f < count; f++)
    for (size_t k = 0; k < subspace->latent; k++) {
      float z = latents[f * subspace->latent + k] * subspace->scale[k];
      const float *direction = subspace->basis + k * values;
      float *frame = displacements + f * values;
      for (size_t i = 0; i < values; i++)
        frame[i] += z * direction[i];
    }
}
