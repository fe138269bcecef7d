// SPDX-License-Identifier: Apache-2.0
// Trunk: pelvis to the base of the neck, with chest, shoulder blades, shoulder slope and buttocks.
#include "figure.h"

#define P        FIGURE_POINT
#define NO       P(0, 0, 0)
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

// at (y), half-widths -x and x, back z, front z, power
static const struct figure_section trunk[] = {
    {-0.395, -0.060, 0.060, -0.045, 0.050, 2.0}, {-0.355, -0.125, 0.125, -0.080, 0.084, 2.2},
    {-0.300, -0.158, 0.158, -0.100, 0.098, 2.3}, {-0.250, -0.160, 0.160, -0.104, 0.106, 2.3},
    {-0.190, -0.148, 0.148, -0.088, 0.108, 2.3}, {-0.130, -0.133, 0.133, -0.074, 0.102, 2.3},
    {-0.080, -0.129, 0.129, -0.071, 0.099, 2.3}, {-0.020, -0.136, 0.136, -0.080, 0.101, 2.4},
    {0.040, -0.148, 0.148, -0.096, 0.105, 2.4},  {0.100, -0.154, 0.154, -0.108, 0.102, 2.4},
    {0.160, -0.146, 0.146, -0.110, 0.084, 2.4},  {0.205, -0.125, 0.125, -0.098, 0.062, 2.3},
    {0.240, -0.085, 0.085, -0.080, 0.038, 2.1},
};

static void draw_chest(struct field *field) {
  figure_ellipsoid(field, PART_BREAST, true, 0.05, P(0.072, 0.078, 0.068), P(0.070, 0.055, 0.044),
                   P(0, 0.25, 0.25));
  figure_stroke(field, PART_MUSCLE, false, P(0, 0.15, 0.10), P(0, 0.05, 0.118), 0.035, -0.006);
}

static void draw_back(struct field *field) {
  // latissimus
  figure_cone(field, PART_MUSCLE, true, 0.07, P(0.130, 0.120, -0.055), 0.045,
              P(0.085, -0.06, -0.035), 0.035);
  // trapezius slope
  figure_cone(field, PART_MUSCLE, true, 0.06, P(0.020, 0.290, -0.045), 0.036,
              P(0.150, 0.232, -0.032), 0.034);
  // shoulder blades and the furrow of the spine
  figure_ellipsoid(field, PART_MUSCLE, true, 0.06, P(0.082, 0.140, -0.082), P(0.055, 0.075, 0.036),
                   P(0, 0.2, 0.1));
  figure_stroke(field, PART_MUSCLE, false, P(0, 0.20, -0.11), P(0, -0.18, -0.09), 0.040, -0.008);
}

static void draw_hips(struct field *field) {
  figure_ellipsoid(field, PART_GLUTE, true, 0.035, P(0.074, -0.318, -0.066), P(0.080, 0.090, 0.068),
                   P(0, -0.2, 0));
}

void figure_draw_torso(struct field *field) {
  figure_upright(field, PART_TORSO, false, 0.02, trunk, COUNT(trunk));
  draw_chest(field);
  draw_back(field);
  draw_hips(field);
}
