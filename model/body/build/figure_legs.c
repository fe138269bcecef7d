// SPDX-License-Identifier: Apache-2.0
// Legs and feet.
#include "figure.h"
#include "vector.h"

#define P        FIGURE_POINT
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

// at (y), inner x, outer x, back z, front z, power
static const struct figure_section leg[] = {
    {-1.120, 0.063, 0.116, -0.062, 0.010, 2.0}, {-1.075, 0.060, 0.119, -0.063, 0.008, 2.0},
    {-1.020, 0.063, 0.118, -0.058, 0.010, 2.0}, {-0.940, 0.057, 0.129, -0.064, 0.024, 2.0},
    {-0.860, 0.049, 0.145, -0.073, 0.037, 2.1}, {-0.800, 0.048, 0.150, -0.071, 0.044, 2.1},
    {-0.740, 0.056, 0.148, -0.055, 0.049, 2.1}, {-0.690, 0.056, 0.148, -0.050, 0.057, 2.2},
    {-0.640, 0.050, 0.153, -0.058, 0.066, 2.1}, {-0.570, 0.037, 0.164, -0.070, 0.080, 2.0},
    {-0.490, 0.020, 0.175, -0.082, 0.090, 2.0}, {-0.420, 0.010, 0.181, -0.090, 0.091, 2.0},
    {-0.350, 0.012, 0.180, -0.086, 0.090, 2.0}, {-0.280, 0.030, 0.166, -0.070, 0.076, 2.0},
};

// at (along the foot from the ankle), inner, outer, sole y, top y, power
static const struct figure_section foot[] = {
    {-0.042, -0.026, 0.026, -1.194, -1.118, 2.2}, {-0.020, -0.032, 0.032, -1.196, -1.085, 2.3},
    {0.020, -0.034, 0.033, -1.196, -1.072, 2.3},  {0.060, -0.037, 0.039, -1.196, -1.098, 2.3},
    {0.100, -0.043, 0.047, -1.196, -1.126, 2.3},  {0.130, -0.045, 0.050, -1.196, -1.144, 2.4},
    {0.150, -0.042, 0.045, -1.194, -1.154, 2.4},
};

static const double toes_out = 0.14; // angle that the feet are turned by

// A place in the foot's own frame: along, across (outwards), height over the sole.
static void foot_place(const double at[3], double point[3]) {
  point[0] = 0.089 + at[0] * sin(toes_out) + at[1] * cos(toes_out);
  point[1] = FIGURE_SOLE + at[2];
  point[2] = -0.027 + at[0] * cos(toes_out) - at[1] * sin(toes_out);
}

static void draw_toes(struct field *field) {
  // across, reach, radius; the root lies in the ball
  static const double toes[5][4] = {{-0.0285, 0.190, 0.0140},
                                    {-0.0050, 0.190, 0.0098},
                                    {0.0145, 0.181, 0.0093},
                                    {0.0320, 0.170, 0.0089},
                                    {0.0465, 0.155, 0.0088}};
  for (int i = 0; i < 5; i++) {
    const double *toe = toes[i];
    double root[3], tip[3];
    foot_place(P(toe[1] - 0.055, 0.80 * toe[0], toe[2] * 1.45), root);
    foot_place(P(toe[1] - toe[2], toe[0], toe[2] * 0.85), tip);
    figure_cone(field, PART_FOOT, true, 0.009, root, toe[2] * 1.12, tip, toe[2] * 0.95);
  }
}

static void draw_foot(struct field *field) {
  struct sweep *sweep = &field_add(field, PRIMITIVE_SWEEP, PART_FOOT, true, 0.03)->shape.sweep;
  sweep->origin[0] = 0.089;
  sweep->origin[2] = -0.027;
  sweep->axis[0] = sin(toes_out), sweep->axis[2] = cos(toes_out);
  sweep->u[0] = cos(toes_out), sweep->u[2] = -sin(toes_out);
  sweep->v[1] = 1;
  sweep->cap_start = 0.024;
  sweep->cap_end = 0.016;
  for (int i = 0; i < COUNT(foot); i++) {
    const struct figure_section *s = &foot[i];
    sweep_add(sweep, s->at, s->u0, s->u1, s->v0, s->v1, 0, s->v0 + 0.4 * (s->v1 - s->v0), s->power);
  }
  draw_toes(field);
  double a[3], b[3];
  foot_place(P(0.030, -0.040, 0.004), a); // the arch
  foot_place(P(0.075, -0.042, 0.004), b);
  figure_stroke(field, PART_FOOT, true, a, b, 0.036, -0.012);
  // inner and outer ankle bones, hollows before the heel's tendon
  figure_stroke(field, PART_FOOT, true, P(0.061, -1.076, -0.020), P(0.061, -1.088, -0.022), 0.034,
                0.006);
  figure_stroke(field, PART_FOOT, true, P(0.119, -1.088, -0.032), P(0.119, -1.100, -0.032), 0.034,
                0.006);
  figure_stroke(field, PART_FOOT, true, P(0.064, -1.060, -0.052), P(0.062, -1.095, -0.054), 0.034,
                -0.003);
  figure_stroke(field, PART_FOOT, true, P(0.116, -1.060, -0.056), P(0.118, -1.100, -0.060), 0.034,
                -0.003);
}

static void draw_thigh(struct field *field) {
  figure_stroke(field, PART_LEG, true, P(0.070, -0.600, 0.055), P(0.076, -0.635, 0.056), 0.055,
                0.007); // vastus medialis
  figure_stroke(field, PART_LEG, true, P(0.150, -0.520, 0.040), P(0.138, -0.610, 0.052), 0.055,
                0.005); // vastus lateralis
  figure_stroke(field, PART_LEG, true, P(0.178, -0.480, -0.015), P(0.158, -0.640, -0.010), 0.040,
                -0.004); // the groove behind it
  figure_stroke(field, PART_LEG, true, P(0.080, -0.560, -0.072), P(0.076, -0.660, -0.056), 0.036,
                0.004); // hamstrings, either side of the hollow of the knee
  figure_stroke(field, PART_LEG, true, P(0.130, -0.580, -0.070), P(0.130, -0.670, -0.052), 0.036,
                0.004);
}

static void draw_knee(struct field *field) {
  figure_stroke(field, PART_LEG, true, P(0.102, -0.668, 0.064), P(0.102, -0.686, 0.062), 0.034,
                0.007); // kneecap
  figure_stroke(field, PART_LEG, true, P(0.074, -0.692, 0.048), P(0.074, -0.710, 0.046), 0.036,
                -0.003);
  figure_stroke(field, PART_LEG, true, P(0.131, -0.692, 0.048), P(0.131, -0.710, 0.046), 0.036,
                -0.003);
  figure_stroke(field, PART_LEG, true, P(0.102, -0.725, 0.050), P(0.101, -0.745, 0.050), 0.036,
                0.005);
  figure_stroke(field, PART_LEG, true, P(0.103, -0.680, -0.052), P(0.103, -0.715, -0.052), 0.034,
                -0.006);
}

static void draw_calf(struct field *field) {
  figure_stroke(field, PART_LEG, true, P(0.074, -0.770, -0.062), P(0.077, -0.850, -0.064), 0.060,
                0.008);
  figure_stroke(field, PART_LEG, true, P(0.128, -0.760, -0.058), P(0.124, -0.825, -0.062), 0.058,
                0.006);
  figure_stroke(field, PART_LEG, true, P(0.090, -0.955, -0.066), P(0.090, -1.080, -0.064), 0.028,
                0.004); // tendon of the heel
  figure_stroke(field, PART_LEG, true, P(0.092, -0.780, 0.044), P(0.084, -0.980, 0.016), 0.030,
                0.003); // shin
}

void figure_draw_legs(struct field *field) {
  figure_upright(field, PART_LEG, true, 0.05, leg, COUNT(leg))->cap_end = 0.09;
  draw_foot(field);
  draw_thigh(field);
  draw_knee(field);
  draw_calf(field);
}
