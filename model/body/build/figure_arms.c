// SPDX-License-Identifier: Apache-2.0
// Arms and hands: along x, the palm facing down, the thumb forwards.
#include "figure.h"
#include "vector.h"

#define P        FIGURE_POINT
#define NO       P(0, 0, 0)
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

// at (x), lower y, upper y, back z, front z, power
static const struct figure_section arm[] = {
    {0.120, 0.175, 0.270, -0.070, 0.035, 2.0},  {0.170, 0.172, 0.280, -0.073, 0.038, 2.0},
    {0.220, 0.172, 0.272, -0.073, 0.034, 2.0},  {0.280, 0.171, 0.261, -0.075, 0.025, 2.0},
    {0.340, 0.171, 0.257, -0.077, 0.018, 2.0},  {0.390, 0.174, 0.253, -0.077, 0.006, 2.0},
    {0.430, 0.175, 0.252, -0.079, -0.003, 2.1}, {0.470, 0.172, 0.256, -0.083, 0.000, 2.1},
    {0.510, 0.174, 0.254, -0.082, -0.003, 2.1}, {0.570, 0.185, 0.248, -0.077, -0.012, 2.1},
    {0.630, 0.198, 0.241, -0.073, -0.018, 2.1}, {0.680, 0.203, 0.239, -0.071, -0.016, 2.1},
    {0.710, 0.203, 0.238, -0.076, -0.012, 2.1},
};

static const struct figure_section palm[] = {
    {0.690, 0.205, 0.237, -0.070, -0.018, 2.2}, {0.715, 0.203, 0.237, -0.078, -0.010, 2.4},
    {0.745, 0.204, 0.236, -0.085, -0.003, 2.5}, {0.770, 0.207, 0.235, -0.086, -0.002, 2.5},
    {0.785, 0.211, 0.233, -0.083, -0.005, 2.4},
};

static struct sweep *draw_along_x(struct field *field, enum field_part part, double blend,
                                  const struct figure_section *sections, int count) {
  struct sweep *sweep = &field_add(field, PRIMITIVE_SWEEP, part, true, blend)->shape.sweep;
  sweep->axis[0] = sweep->u[1] = sweep->v[2] = 1;
  sweep->cap_start = sweep->cap_end = 0.012;
  for (int i = 0; i < count; i++) {
    const struct figure_section *s = &sections[i];
    sweep_add(sweep, s->at, s->u0, s->u1, s->v0, s->v1, (s->u0 + s->u1) / 2, (s->v0 + s->v1) / 2,
              s->power);
  }
  return sweep;
}

// A finger of three tapering bones from `base` towards `direction`, its tip bent down a little.
static void draw_finger(struct field *field, const double base[3], const double direction[3],
                        double length, double radius, double blend) {
  static const double part[4] = {0, 0.45, 0.75, 1}, taper[4] = {1.06, 1, 0.9, 0.8};
  double joints[4][3], unit[3] = {direction[0], direction[1], direction[2]};
  vector_normalise(unit);
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 3; k++)
      joints[i][k] = base[k] + unit[k] * length * part[i];
    joints[i][1] -= 0.10 * length * part[i] * part[i];
  }
  for (int i = 0; i < 3; i++)
    figure_cone(field, PART_HAND, true, i ? 0.004 : blend, joints[i], radius * taper[i],
                joints[i + 1], radius * taper[i + 1]);
}

static void draw_hand(struct field *field) {
  draw_along_x(field, PART_HAND, 0.02, palm, COUNT(palm));
  draw_finger(field, P(0.775, 0.222, -0.013), P(1, 0, 0.09), 0.078, 0.0088, 0.010);
  draw_finger(field, P(0.780, 0.223, -0.034), P(1, 0, 0.00), 0.084, 0.0090, 0.010);
  draw_finger(field, P(0.777, 0.222, -0.055), P(1, 0, -0.08), 0.078, 0.0086, 0.010);
  draw_finger(field, P(0.768, 0.220, -0.075), P(1, 0, -0.18), 0.062, 0.0076, 0.010);
  // thumb: ball, then the finger
  figure_cone(field, PART_HAND, true, 0.02, P(0.700, 0.214, -0.030), 0.014, P(0.735, 0.206, 0.004),
              0.013);
  draw_finger(field, P(0.732, 0.207, 0.002), P(0.78, -0.1, 0.60), 0.062, 0.0105, 0.012);
}

void figure_draw_arms(struct field *field) {
  draw_along_x(field, PART_ARM, 0.05, arm, COUNT(arm));
  figure_ellipsoid(field, PART_MUSCLE, true, 0.04, P(0.195, 0.232, -0.018), P(0.070, 0.050, 0.056),
                   P(0, 0, -0.15)); // deltoid
  draw_hand(field);
}
