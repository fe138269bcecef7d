// SPDX-License-Identifier: Apache-2.0
// Legs and feet.
#include "figure.h"
#include "vector.h"

#define P        FIGURE_POINT
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

// at (y), inner x, outer x, back z, front z, power
static const struct figure_section leg[] = {
    {-1.120, 0.062, 0.116, -0.062, 0.012, 2.0}, {-1.075, 0.059, 0.119, -0.062, 0.010, 2.0},
    {-1.020, 0.062, 0.119, -0.057, 0.012, 2.0}, {-0.940, 0.056, 0.131, -0.065, 0.026, 2.0},
    {-0.860, 0.048, 0.147, -0.077, 0.038, 2.1}, {-0.800, 0.046, 0.152, -0.075, 0.044, 2.1},
    {-0.740, 0.053, 0.150, -0.057, 0.050, 2.1}, {-0.690, 0.053, 0.151, -0.050, 0.060, 2.2},
    {-0.640, 0.049, 0.154, -0.056, 0.068, 2.1}, {-0.570, 0.036, 0.162, -0.067, 0.080, 2.0},
    {-0.490, 0.019, 0.172, -0.078, 0.089, 2.0}, {-0.420, 0.010, 0.178, -0.085, 0.090, 2.0},
    {-0.350, 0.012, 0.178, -0.085, 0.090, 2.0}, {-0.280, 0.030, 0.168, -0.070, 0.075, 2.0},
};

// at (along the foot from the ankle), inner, outer, sole y, top y, power
static const struct figure_section foot[] = {
    {-0.045, -0.027, 0.027, -1.196, -1.115, 2.3}, {-0.020, -0.033, 0.033, -1.196, -1.085, 2.3},
    {0.020, -0.035, 0.034, -1.196, -1.072, 2.3},  {0.060, -0.038, 0.040, -1.196, -1.100, 2.3},
    {0.100, -0.043, 0.046, -1.196, -1.130, 2.3},  {0.140, -0.046, 0.048, -1.196, -1.150, 2.4},
    {0.165, -0.045, 0.042, -1.196, -1.158, 2.4},
};

static void draw_foot(struct field *field) {
  const double angle = 0.14; // toes point outwards
  struct sweep *sweep = &field_add(field, PRIMITIVE_SWEEP, PART_FOOT, true, 0.03)->shape.sweep;
  sweep->origin[0] = 0.089;
  sweep->origin[2] = -0.027;
  sweep->axis[0] = sin(angle), sweep->axis[2] = cos(angle);
  sweep->u[0] = cos(angle), sweep->u[2] = -sin(angle);
  sweep->v[1] = 1;
  sweep->cap_start = 0.02;
  sweep->cap_end = 0.02;
  for (int i = 0; i < COUNT(foot); i++) {
    const struct figure_section *s = &foot[i];
    sweep_add(sweep, s->at, s->u0, s->u1, s->v0, s->v1, 0, s->v0 + 0.4 * (s->v1 - s->v0), s->power);
  }
  // toes: along, across, length, radius
  static const double toes[5][4] = {{0.183, -0.030, 0.022, 0.0125},
                                    {0.185, -0.007, 0.019, 0.0095},
                                    {0.178, 0.010, 0.018, 0.0090},
                                    {0.168, 0.025, 0.017, 0.0085},
                                    {0.155, 0.038, 0.016, 0.0085}};
  for (int i = 0; i < 5; i++) {
    const double *toe = toes[i];
    double p[3] = {sweep->origin[0], FIGURE_SOLE + toe[3] * 0.95, sweep->origin[2]};
    vector_add_scaled(p, toe[0], sweep->axis);
    vector_add_scaled(p, toe[1], sweep->u);
    figure_ellipsoid(field, PART_FOOT, true, 0.008, p, P(toe[3], toe[3], toe[2]), P(0, angle, 0));
  }
}

void figure_draw_legs(struct field *field) {
  figure_upright(field, PART_LEG, true, 0.035, leg, COUNT(leg));
  draw_foot(field);
  // kneecap, and the inner and outer ankle bones
  figure_stroke(field, PART_LEG, true, P(0.102, -0.672, 0.062), P(0.102, -0.69, 0.06), 0.04, 0.004);
  figure_stroke(field, PART_FOOT, true, P(0.061, -1.083, -0.022), P(0.061, -1.083, -0.022), 0.026,
                0.006);
  figure_stroke(field, PART_FOOT, true, P(0.119, -1.095, -0.03), P(0.119, -1.095, -0.03), 0.026,
                0.007);
}
