// SPDX-License-Identifier: Apache-2.0
#include "sim/solid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/solid_private.h"

// The share of lambda' that stays with the elements: enough to make each stable by itself (lambda
// = mu there, a Poisson's ratio of 0.25), far too little to lock.
static double element_bulk(const struct material *material) {
  double total = material_lambda(material) + material_shear(material);
  double own = 2 * material_shear(material);
  return total < own ? total : own;
}

static double node_bulk(const struct material *material) {
  return material_lambda(material) + material_shear(material) - element_bulk(material);
}

static int material_check(const struct material *m, size_t tet, struct dsnet_error *error) {
  if (!(m->young > 0) || !isfinite(m->young) || !(m->poisson >= 0) || !(m->poisson <= 0.495) ||
      !(m->density > 0) || !isfinite(m->density) || !(m->stiffening >= 0) ||
      !isfinite(m->stiffening) || !(m->relaxing >= 0) || !isfinite(m->relaxing))
    return dsnet_error_set(error, DSNET_EVALUE, "element %zu has an impossible material", tet);
  return DSNET_OK;
}

// The inverse of the edge matrix [X1-X0 X2-X0 X3-X0] (its rows are the gradients of the shape
// functions of corners 1..3) and the volume.
static double edges_invert(const double *positions, const uint32_t *corners, double inverse[9]) {
  const double *x0 = positions + 3 * (size_t)corners[0];
  double e[3][3];
  for (int k = 0; k < 3; k++)
    for (int c = 0; c < 3; c++)
      e[k][c] = positions[3 * (size_t)corners[k + 1] + c] - x0[c];
  for (int k = 0; k < 3; k++) {
    const double *a = e[(k + 1) % 3], *b = e[(k + 2) % 3];
    inverse[3 * k] = a[1] * b[2] - a[2] * b[1];
    inverse[3 * k + 1] = a[2] * b[0] - a[0] * b[2];
    inverse[3 * k + 2] = a[0] * b[1] - a[1] * b[0];
  }
  double six = e[0][0] * inverse[0] + e[0][1] * inverse[1] + e[0][2] * inverse[2];
  for (int i = 0; i < 9; i++)
    inverse[i] /= six;
  return six / 6;
}

// Bound on the element's squared frequency: K <= V M sum |grad N|^2 against lumped masses rho V/4,
// with M the largest (uniaxial, instantaneous) modulus; the largest over all elements bounds the
// whole solid's.
static double element_limit(const struct material *material, const double inverse[9]) {
  double sum = 0, first[3] = {0, 0, 0};
  for (int i = 0; i < 9; i++) {
    sum += inverse[i] * inverse[i];
    first[i % 3] -= inverse[i];
  }
  sum += first[0] * first[0] + first[1] * first[1] + first[2] * first[2];
  double mu = material_shear(material);
  double modulus = 2 * mu + material_lambda(material) + 2 * mu * material->relaxing;
  return 4 * modulus / material->density * sum;
}

static void element_fill(struct solid_block *block, int lane, const uint32_t *corners,
                         const struct material *material, const double inverse[9], double volume,
                         double limit) {
  for (int k = 0; k < 4; k++)
    block->corner[k][lane] = corners[k];
  for (int i = 0; i < 9; i++)
    block->gradient[i][lane] = (float)inverse[i];
  double mu = material_shear(material), relaxing = 2 * mu * material->relaxing;
  double total = 2 * mu + material_lambda(material) + relaxing;
  block->volume[lane] = (float)volume;
  block->shear[lane] = (float)mu;
  block->bulk[lane] = (float)element_bulk(material);
  block->stiffening[lane] = (float)material->stiffening;
  block->viscous[lane] = (float)relaxing;
  block->limit[lane] = (float)limit;
  block->wave[0][lane] = (float)(mu / total);
  block->wave[1][lane] = (float)(relaxing / total);
  block->wave[2][lane] = (float)((mu + material_lambda(material)) / total);
}

static bool solid_allocate(struct solid *solid) {
  size_t n = solid->nodes;
  solid->block = memory_alloc(solid->blocks, sizeof *solid->block);
  solid->branch = memory_alloc(solid->blocks, sizeof *solid->branch);
  solid->displacement = memory_alloc(n, sizeof *solid->displacement);
  solid->velocity = memory_alloc(n, sizeof *solid->velocity);
  solid->force = memory_alloc(n, sizeof *solid->force);
  solid->load = memory_alloc(n, sizeof *solid->load);
  solid->mass = memory_alloc(n, sizeof *solid->mass);
  solid->inverse_mass = memory_alloc(n, sizeof *solid->inverse_mass);
  solid->swell = memory_alloc(n, sizeof *solid->swell);
  solid->pressure = memory_alloc(n, sizeof *solid->pressure);
  solid->pressure_factor = memory_alloc(n, sizeof *solid->pressure_factor);
  return solid->block && solid->branch && solid->displacement && solid->velocity && solid->force &&
         solid->load && solid->mass && solid->inverse_mass && solid->swell && solid->pressure &&
         solid->pressure_factor;
}

static int elements_build(struct solid *solid, const struct solid_mesh *mesh,
                          struct dsnet_error *error) {
  int code = DSNET_OK;
  double *share = memory_alloc(mesh->nodes, 3 * sizeof *share); // mass, volume, volume * lambda'
  if (!share)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the tissue");
  double largest = 0;
  for (size_t t = 0; t < mesh->tets && code == DSNET_OK; t++) {
    const uint32_t *corners = mesh->corners + 4 * t;
    const struct material *material = &mesh->materials[t];
    double inverse[9], volume = edges_invert(mesh->positions, corners, inverse);
    code = material_check(material, t, error);
    if (code == DSNET_OK && !(volume > 1e-15 && isfinite(volume)))
      code = dsnet_error_set(error, DSNET_EVALUE, "element %zu has no positive volume", t);
    if (code != DSNET_OK)
      break;
    double limit = element_limit(material, inverse);
    largest = limit > largest ? limit : largest;
    element_fill(&solid->block[t / SOLID_LANES], (int)(t % SOLID_LANES), corners, material, inverse,
                 volume, limit);
    for (int k = 0; k < 4; k++) {
      double *s = share + 3 * (size_t)corners[k];
      s[0] += material->density * volume / 4;
      s[1] += volume / 4;
      s[2] += volume / 4 * node_bulk(material);
    }
  }
  for (size_t n = 0; n < mesh->nodes && code == DSNET_OK; n++) {
    const double *s = share + 3 * n;
    solid->mass[n] = (float)s[0];
    solid->inverse_mass[n] = mesh->bound[n] || s[0] <= 0 ? 0 : (float)(1 / s[0]);
    solid->pressure_factor[n] = s[1] > 0 ? (float)(s[2] / (s[1] * s[1])) : 0;
  }
  for (size_t i = 0; i < solid->blocks && code == DSNET_OK; i++)
    for (int l = 0; l < SOLID_LANES; l++)
      solid->block[i].limit[l] /= (float)largest;
  solid->frequency_max = sqrt(largest);
  free(share);
  return code;
}

// Sharpens the bound on the highest frequency by power iteration on M^-1 K, the linearised forces
// being those of a displacement of a millionth of a metre. What it returns approaches the largest
// frequency from below, and at 40 rounds lies within some percent; the courant number covers that.
static void frequency_sharpen(struct solid *solid) {
  const float tiny = 1e-6f;
  double bound = solid->frequency_max, found = 0;
  unsigned noise = 1;
  for (size_t n = 0; n < solid->nodes; n++)
    for (int c = 0; c < 3; c++) {
      noise = noise * 1664525u + 1013904223u;
      solid->displacement[n][c] =
          solid->inverse_mass[n] > 0 ? tiny * ((float)(noise >> 8) / 8388608.0f - 1) : 0;
    }
  for (int round = 0; round < 40; round++) {
    memset(solid->branch, 0, solid->blocks * sizeof *solid->branch);
    solid_evaluate(solid, 0, 0, 1);
    double peak = 0, dot = 0, square = 0;
    for (size_t n = 0; n < solid->nodes; n++)
      for (int c = 0; c < 3; c++) {
        double a = -(double)solid->force[n][c] * solid->inverse_mass[n];
        dot += -(double)solid->force[n][c] * solid->displacement[n][c];
        square += (double)solid->mass[n] * solid->displacement[n][c] * solid->displacement[n][c];
        peak = fabs(a) > peak ? fabs(a) : peak;
      }
    if (!(square > 0) || !(peak > 0))
      break;
    found = sqrt(dot / square);
    for (size_t n = 0; n < solid->nodes; n++)
      for (int c = 0; c < 3; c++)
        solid->displacement[n][c] =
            (float)(-(double)solid->force[n][c] * solid->inverse_mass[n] * (tiny / peak));
  }
  // With nothing free to move there is no frequency; the bound then serves.
  solid->frequency_max = found > 0 && found < bound ? found : bound;
}

int solid_new(struct solid **out, const struct solid_mesh *mesh, struct dsnet_error *error) {
  *out = NULL;
  if (mesh->tets == 0 || mesh->nodes == 0)
    return dsnet_error_set(error, DSNET_EVALUE, "a solid needs elements");
  if (!(mesh->relaxation_time > 0) || !isfinite(mesh->relaxation_time))
    return dsnet_error_set(error, DSNET_EVALUE, "the relaxation time must be positive");
  for (size_t i = 0; i < 4 * mesh->tets; i++)
    if (mesh->corners[i] >= mesh->nodes)
      return dsnet_error_set(error, DSNET_EVALUE, "element %zu has no node %u", i / 4,
                             mesh->corners[i]);
  struct solid *solid = calloc(1, sizeof *solid);
  if (!solid)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the tissue");
  solid->nodes = mesh->nodes;
  solid->tets = mesh->tets;
  solid->blocks = (mesh->tets + SOLID_LANES - 1) / SOLID_LANES;
  solid->relaxation_time = mesh->relaxation_time;
  // Not only below 1: at 0.7 the stiffest modes turn by a quarter a step, and their quartic energy
  // then feeds itself (the 1:4 resonance of leapfrog); 0.5 keeps clear of it.
  solid->courant = 0.5;
  int code = solid_allocate(solid)
                 ? elements_build(solid, mesh, error)
                 : dsnet_error_set(error, DSNET_ENOMEM, "no memory for the tissue");
  if (code != DSNET_OK) {
    solid_free(solid);
    return code;
  }
  solid_start(solid, NULL, NULL, NULL, NULL);
  frequency_sharpen(solid);
  solid_start(solid, NULL, NULL, NULL, NULL);
  *out = solid;
  return DSNET_OK;
}

void solid_free(struct solid *solid) {
  if (!solid)
    return;
  free(solid->block);
  free(solid->branch);
  free(solid->displacement);
  free(solid->velocity);
  free(solid->force);
  free(solid->load);
  free(solid->mass);
  free(solid->inverse_mass);
  free(solid->swell);
  free(solid->pressure);
  free(solid->pressure_factor);
  free(solid);
}

size_t solid_nodes(const struct solid *solid) {
  return solid->nodes;
}
size_t solid_tets(const struct solid *solid) {
  return solid->tets;
}
double solid_frequency_max(const struct solid *solid) {
  return solid->frequency_max;
}

void solid_set_courant(struct solid *solid, double courant) {
  solid->courant = courant < 0.001 ? 0.001 : courant > 0.9 ? 0.9 : courant;
}

const float *solid_displacement(const struct solid *solid) {
  return solid->displacement[0];
}
const float *solid_velocity(const struct solid *solid) {
  return solid->velocity[0];
}
const float *solid_forces(const struct solid *solid) {
  return solid->force[0];
}
const float *solid_masses(const struct solid *solid) {
  return solid->mass;
}
