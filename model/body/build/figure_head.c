// SPDX-License-Identifier: Apache-2.0
// Neck and head, with a hint of a face.
#include "figure.h"

#define P        FIGURE_POINT
#define NO       P(0, 0, 0)
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

// at (y), half-widths, back z, front z, power
static const struct figure_section face[] = {
    {0.316, -0.024, 0.024, 0.030, 0.106, 2.2},  {0.335, -0.040, 0.040, 0.000, 0.111, 2.2},
    {0.360, -0.051, 0.051, -0.020, 0.113, 2.2}, {0.390, -0.060, 0.060, -0.030, 0.112, 2.2},
    {0.420, -0.065, 0.065, -0.030, 0.107, 2.2}, {0.450, -0.067, 0.067, -0.030, 0.108, 2.2},
    {0.480, -0.064, 0.064, -0.020, 0.104, 2.2},
};

static void draw_neck(struct field *field) {
  figure_cone(field, PART_NECK, false, 0.05, P(0, 0.230, -0.035), 0.060, P(0, 0.370, -0.005),
              0.055);
}

static void draw_skull(struct field *field) {
  figure_ellipsoid(field, PART_HEAD, false, 0.02, P(0, 0.445, 0.012), P(0.076, 0.090, 0.096), NO);
  struct sweep *sweep = figure_upright(field, PART_HEAD, false, 0.03, face, COUNT(face));
  sweep->cap_start = 0.012;
  sweep->cap_end = 0.03;
  figure_cone(field, PART_HEAD, true, 0.02, P(0.050, 0.352, 0.010), 0.016, P(0.016, 0.320, 0.085),
              0.016); // jaw
}

static void draw_face(struct field *field) {
  figure_cone(field, PART_HEAD, false, 0.012, P(0, 0.436, 0.106), 0.007, P(0, 0.390, 0.125), 0.010);
  figure_ellipsoid(field, PART_HEAD, true, 0.010, P(0.011, 0.385, 0.114), P(0.008, 0.008, 0.012),
                   NO);
  figure_stroke(field, PART_HEAD, true, P(0.026, 0.426, 0.108), P(0.038, 0.425, 0.102), 0.024,
                -0.011);
  figure_ellipsoid(field, PART_HEAD, true, 0.006, P(0.031, 0.424, 0.088), P(0.014, 0.011, 0.012),
                   NO);
  figure_stroke(field, PART_HEAD, true, P(0.012, 0.447, 0.112), P(0.048, 0.447, 0.094), 0.018,
                0.004);
  figure_stroke(field, PART_HEAD, true, P(0, 0.352, 0.116), P(0.020, 0.351, 0.108), 0.009, -0.003);
  figure_stroke(field, PART_HEAD, true, P(0, 0.360, 0.116), P(0.014, 0.357, 0.110), 0.010, 0.003);
  figure_stroke(field, PART_HEAD, true, P(0, 0.343, 0.116), P(0.012, 0.344, 0.110), 0.011, 0.004);
  figure_stroke(field, PART_HEAD, false, P(0, 0.332, 0.112), P(0, 0.332, 0.112), 0.012, -0.003);
  figure_stroke(field, PART_HEAD, false, P(0, 0.316, 0.108), P(0, 0.316, 0.108), 0.022, 0.005);
  figure_ellipsoid(field, PART_HEAD, true, 0.006, P(0.076, 0.412, 0.002), P(0.007, 0.030, 0.018),
                   P(0.2, -0.35, 0)); // ear
}

void figure_draw_head(struct field *field) {
  draw_neck(field);
  draw_skull(field);
  draw_face(field);
}
