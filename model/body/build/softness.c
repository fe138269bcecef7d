// SPDX-License-Identifier: Apache-2.0
#include "softness.h"

#include "body/body.h"
#include "skin_operator.h"
#include "vector.h"

#define SMOOTHING 0.015 // metres

// Each joint's part of the body, before what lies on it: the trunk's wall, the limbs' muscle.
static const double part[BODY_JOINTS] = {
    0.35, 0.45, 0.45, 0.40, 0.25, 0.25, 0.25, 0.03, 0.03, 0.15, 0.02, 0.02,
    0.12, 0.12, 0.12, 0.03, 0.30, 0.30, 0.18, 0.18, 0.03, 0.03, 0.02, 0.02,
};

// Soft places (amount > 0) and bony ones (< 0) around a segment on the left.
static const struct {
  double a[3], b[3], radius, amount;
} places[] = {
    {{0.075, 0.055, 0.11}, {0.085, 0.060, 0.10}, 0.105, 0.90},       // breast
    {{0.000, -0.170, 0.11}, {0.050, -0.160, 0.10}, 0.140, 0.55},     // belly
    {{0.125, -0.140, 0.02}, {0.120, -0.170, -0.02}, 0.090, 0.25},    // flank
    {{0.080, -0.330, -0.12}, {0.080, -0.300, -0.12}, 0.120, 0.75},   // buttock
    {{0.060, -0.430, 0.00}, {0.070, -0.540, 0.00}, 0.100, 0.45},     // inside of the thigh
    {{0.100, -0.430, -0.08}, {0.100, -0.550, -0.07}, 0.100, 0.40},   // back of the thigh
    {{0.110, -0.450, 0.09}, {0.110, -0.560, 0.08}, 0.090, 0.20},     // front of the thigh
    {{0.095, -0.790, -0.075}, {0.098, -0.850, -0.075}, 0.080, 0.40}, // calf
    {{0.260, 0.190, -0.07}, {0.350, 0.190, -0.07}, 0.075, 0.45},     // back of the upper arm
    {{0.102, -0.690, 0.06}, {0.102, -0.690, 0.06}, 0.060, -0.30},    // kneecap
    {{0.095, -0.760, 0.05}, {0.085, -1.050, 0.01}, 0.045, -0.25},    // shin
    {{0.430, 0.215, -0.08}, {0.430, 0.215, -0.08}, 0.050, -0.20},    // elbow
    {{0.000, 0.150, 0.09}, {0.000, 0.030, 0.11}, 0.040, -0.20},      // breastbone
    {{0.030, 0.215, 0.05}, {0.150, 0.245, 0.01}, 0.040, -0.15},      // collarbone
    {{0.000, 0.200, -0.11}, {0.000, -0.180, -0.09}, 0.045, -0.20},   // spine
};

int softness_measure(const struct surface *surface, const double *weights, double *softness,
                     struct dsnet_error *error) {
  const struct triangles *mesh = &surface->mesh;
  struct skin_operator skin;
  for (int i = 0; i < mesh->point_count; i++) {
    const double *p = mesh->points[i], left[3] = {fabs(p[0]), p[1], p[2]};
    double value = 0;
    for (int j = 0; j < BODY_JOINTS; j++)
      value += weights[i * BODY_JOINTS + j] * part[j];
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
      double t, q = segment_distance(left, places[k].a, places[k].b, &t) / places[k].radius;
      if (q < 1)
        value += places[k].amount * (1 - q * q) * (1 - q * q);
    }
    softness[i] = fmin(fmax(value, 0), 1);
  }
  if (skin_operator_init(&skin, mesh) || skin_operator_smooth(&skin, SMOOTHING, 1, softness))
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the soft-tissue map");
  skin_operator_deinit(&skin);
  for (int i = 0; i < mesh->point_count; i++) {
    int image = surface->mirror[i];
    if (mesh->points[i][0] >= 0)
      softness[i] = softness[image] = fmin(fmax((softness[i] + softness[image]) / 2, 0), 1);
  }
  return DSNET_OK;
}
