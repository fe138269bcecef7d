// SPDX-License-Identifier: Apache-2.0
// The energies of a solid, straight from the formulas of sim/material.h and in double precision:
// slow, and independent of the vector code that steps it.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/solid_private.h"

static void rotation_matrix(const struct solid_block *block, int lane, double r[9]) {
  double w = block->turn[1][0][lane], x = block->turn[1][1][lane], y = block->turn[1][2][lane],
         z = block->turn[1][3][lane], s = 2 / (w * w + x * x + y * y + z * z);
  double values[9] = {1 - s * (y * y + z * z), s * (x * y - w * z),     s * (x * z + w * y),
                      s * (x * y + w * z),     1 - s * (x * x + z * z), s * (y * z - w * x),
                      s * (x * z - w * y),     s * (y * z + w * x),     1 - s * (x * x + y * y)};
  for (int i = 0; i < 9; i++)
    r[i] = values[i];
}

// F = I + R^T dw/dX
static void gradient(const struct solid *solid, const struct solid_block *block, int lane,
                     double f[9]) {
  double r[9], w[9] = {0}; // w: dw/dX, rows are components
  rotation_matrix(block, lane, r);
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        w[3 * i + j] += ((double)solid->displacement[block->corner[k + 1][lane]][i] -
                         solid->displacement[block->corner[0][lane]][i]) *
                        block->gradient[3 * k + j][lane];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      f[3 * i + j] = (i == j) + r[i] * w[j] + r[3 + i] * w[3 + j] + r[6 + i] * w[6 + j];
}

static double determinant(const double f[9]) {
  return f[0] * (f[4] * f[8] - f[5] * f[7]) - f[1] * (f[3] * f[8] - f[5] * f[6]) +
         f[2] * (f[3] * f[7] - f[4] * f[6]);
}

// mu/2 (m + b/2 m+^2), continued beyond the largest distortion with its slope there.
static double distortion_energy(double mu, double b, double m) {
  double positive = fmax(0, m), cap = MATERIAL_DISTORTION_MAX;
  double stiffening = positive <= cap ? positive * positive / 2 : cap * positive - cap * cap / 2;
  return mu / 2 * (m + b * stiffening);
}

void solid_energy(const struct solid *solid, double *kinetic, double *elastic) {
  if (kinetic) {
    *kinetic = 0;
    for (size_t n = 0; n < solid->nodes; n++)
      for (int c = 0; c < 3; c++)
        *kinetic += 0.5 * solid->mass[n] * solid->velocity[n][c] * (double)solid->velocity[n][c];
  }
  if (!elastic)
    return;
  *elastic = NAN;
  double *swell = memory_alloc(solid->nodes, sizeof *swell);
  if (!swell)
    return;
  double energy = 0;
  for (size_t t = 0; t < solid->tets; t++) {
    const struct solid_block *block = &solid->block[t / SOLID_LANES];
    int lane = (int)(t % SOLID_LANES);
    double f[9], square = 0;
    gradient(solid, block, lane, f);
    for (int i = 0; i < 9; i++)
      square += f[i] * f[i];
    double j = determinant(f), volume = block->volume[lane];
    energy +=
        volume * distortion_energy(block->shear[lane], block->stiffening[lane], square - 1 - 2 * j);
    energy += volume * block->bulk[lane] / 2 * (j - 1) * (j - 1);
    for (int k = 0; k < 4; k++)
      swell[block->corner[k][lane]] += volume / 4 * (j - 1);
  }
  for (size_t n = 0; n < solid->nodes; n++)
    energy += (double)solid->pressure_factor[n] / 2 * swell[n] * swell[n];
  free(swell);
  *elastic = energy;
}
