// SPDX-License-Identifier: Apache-2.0
// Trunk: pelvis to the base of the neck, with chest, shoulder blades, shoulder slope and buttocks.
#include "figure.h"

#define P        FIGURE_POINT
#define NO       P(0, 0, 0)
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

// at (y), half-widths -x and x, back z, front z, power
static const struct figure_section trunk[] = {
    {-0.395, -0.060, 0.060, -0.045, 0.050, 2.0}, {-0.355, -0.130, 0.130, -0.082, 0.086, 2.2},
    {-0.300, -0.163, 0.163, -0.100, 0.100, 2.3}, {-0.250, -0.161, 0.161, -0.102, 0.106, 2.3},
    {-0.190, -0.148, 0.148, -0.087, 0.106, 2.3}, {-0.130, -0.134, 0.134, -0.073, 0.100, 2.3},
    {-0.080, -0.129, 0.129, -0.070, 0.097, 2.3}, {-0.020, -0.135, 0.135, -0.080, 0.099, 2.4},
    {0.040, -0.146, 0.146, -0.096, 0.103, 2.4},  {0.100, -0.153, 0.153, -0.108, 0.100, 2.4},
    {0.160, -0.146, 0.146, -0.109, 0.083, 2.4},  {0.205, -0.122, 0.122, -0.097, 0.060, 2.3},
    {0.240, -0.080, 0.080, -0.078, 0.036, 2.1},
};

static void draw_chest(struct field *field) {
  // pectoral: a fan from the breastbone to the arm
  figure_cone(field, PART_MUSCLE, true, 0.05, P(0.045, 0.120, 0.058), 0.042, P(0.165, 0.205, 0.008),
              0.034);
  figure_ellipsoid(field, PART_BREAST, true, 0.05, P(0.078, 0.070, 0.066), P(0.066, 0.054, 0.041),
                   P(0, 0.30, 0.25));
  figure_stroke(field, PART_MUSCLE, false, P(0, 0.16, 0.09), P(0, 0.05, 0.112), 0.036, -0.007);
  // the hollow between shoulder, chest and collarbone is shallow
  figure_stroke(field, PART_MUSCLE, true, P(0.095, 0.205, 0.045), P(0.120, 0.225, 0.030), 0.050,
                0.009);
  // collarbones, and the notch between them
  figure_stroke(field, PART_MUSCLE, true, P(0.020, 0.232, 0.044), P(0.080, 0.240, 0.042), 0.022,
                0.006);
  figure_stroke(field, PART_MUSCLE, true, P(0.080, 0.240, 0.042), P(0.150, 0.258, 0.012), 0.022,
                0.005);
  figure_stroke(field, PART_MUSCLE, false, P(0, 0.242, 0.036), P(0, 0.240, 0.036), 0.026, -0.008);
}

static void draw_belly(struct field *field) {
  // the arch of the ribs
  figure_stroke(field, PART_MUSCLE, true, P(0.020, 0.015, 0.108), P(0.095, -0.065, 0.080), 0.038,
                0.005);
  // midline, the outer edge of the straight muscle, navel
  figure_stroke(field, PART_MUSCLE, false, P(0, 0.010, 0.104), P(0, -0.150, 0.106), 0.026, -0.004);
  figure_stroke(field, PART_MUSCLE, true, P(0.070, -0.040, 0.092), P(0.058, -0.200, 0.098), 0.030,
                -0.004);
  figure_stroke(field, PART_MUSCLE, false, P(0, -0.150, 0.106), P(0, -0.152, 0.106), 0.018, -0.007);
  // crest of the hip bone and the fold of the groin
  figure_stroke(field, PART_MUSCLE, true, P(0.142, -0.190, 0.035), P(0.100, -0.225, 0.088), 0.040,
                0.004);
  figure_stroke(field, PART_MUSCLE, true, P(0.115, -0.270, 0.088), P(0.040, -0.345, 0.078), 0.040,
                -0.004);
}

static void draw_back(struct field *field) {
  // latissimus
  figure_cone(field, PART_MUSCLE, true, 0.07, P(0.130, 0.120, -0.055), 0.045,
              P(0.085, -0.060, -0.035), 0.034);
  // trapezius: from the neck to the point of the shoulder, and down the spine
  figure_cone(field, PART_MUSCLE, true, 0.06, P(0.022, 0.285, -0.042), 0.030,
              P(0.150, 0.232, -0.032), 0.030);
  // the slope above the collarbone
  figure_cone(field, PART_MUSCLE, true, 0.05, P(0.030, 0.250, -0.005), 0.030,
              P(0.150, 0.232, -0.005), 0.030);
  // shoulder blade
  figure_ellipsoid(field, PART_MUSCLE, true, 0.06, P(0.084, 0.140, -0.080), P(0.056, 0.076, 0.035),
                   P(0, 0.2, 0.1));
  figure_stroke(field, PART_MUSCLE, true, P(0.070, 0.190, -0.115), P(0.145, 0.222, -0.085), 0.030,
                0.004);
  // the long muscles beside the spine and the furrow between them
  figure_stroke(field, PART_MUSCLE, true, P(0.036, 0.02, -0.090), P(0.040, -0.17, -0.080), 0.040,
                0.006);
  figure_stroke(field, PART_MUSCLE, false, P(0, 0.20, -0.108), P(0, -0.19, -0.084), 0.036, -0.009);
}

static void draw_hips(struct field *field) {
  figure_ellipsoid(field, PART_GLUTE, true, 0.05, P(0.076, -0.308, -0.058), P(0.086, 0.096, 0.068),
                   P(0.10, -0.25, 0.15));
  // the pubic mound
  figure_ellipsoid(field, PART_TORSO, false, 0.04, P(0, -0.350, 0.044), P(0.060, 0.060, 0.040), NO);
}

void figure_draw_torso(struct field *field) {
  figure_upright(field, PART_TORSO, false, 0.02, trunk, COUNT(trunk));
  draw_chest(field);
  draw_belly(field);
  draw_back(field);
  draw_hips(field);
}
