// SPDX-License-Identifier: Apache-2.0
// Arms and hands: along x, the palm facing down, the thumb forwards.
#include "figure.h"
#include "vector.h"

#define P        FIGURE_POINT
#define NO       P(0, 0, 0)
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

// at (x), lower y, upper y, back z, front z, power
static const struct figure_section arm[] = {
    {0.120, 0.175, 0.264, -0.066, 0.032, 2.0},  {0.170, 0.172, 0.274, -0.070, 0.036, 2.0},
    {0.220, 0.172, 0.269, -0.072, 0.033, 2.0},  {0.280, 0.171, 0.259, -0.073, 0.022, 2.0},
    {0.340, 0.171, 0.256, -0.075, 0.014, 2.0},  {0.390, 0.174, 0.252, -0.077, 0.003, 2.0},
    {0.430, 0.176, 0.251, -0.078, -0.005, 2.1}, {0.470, 0.173, 0.255, -0.081, -0.002, 2.1},
    {0.510, 0.175, 0.253, -0.081, -0.005, 2.1}, {0.570, 0.185, 0.248, -0.077, -0.012, 2.1},
    {0.630, 0.198, 0.242, -0.073, -0.017, 2.1}, {0.680, 0.203, 0.239, -0.071, -0.016, 2.1},
    {0.710, 0.204, 0.238, -0.075, -0.012, 2.1},
};

static const struct figure_section palm[] = {
    {0.690, 0.206, 0.237, -0.070, -0.018, 2.2}, {0.715, 0.204, 0.238, -0.078, -0.012, 2.4},
    {0.745, 0.204, 0.237, -0.085, -0.005, 2.5}, {0.770, 0.208, 0.234, -0.087, -0.003, 2.5},
    {0.780, 0.211, 0.232, -0.086, -0.004, 2.4},
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

// A finger of three tapering bones from `base` towards `direction`, bent down a little on its way.
static void draw_finger(struct field *field, const double base[3], const double direction[3],
                        double length, double radius, double bend) {
  static const double part[4] = {0, 0.44, 0.74, 1}, taper[4] = {1.08, 1, 0.92, 0.80};
  double joints[4][3], unit[3] = {direction[0], direction[1], direction[2]};
  vector_normalise(unit);
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 3; k++)
      joints[i][k] = base[k] + unit[k] * (length - radius) * part[i];
    joints[i][1] -= bend * length * part[i] * part[i];
  }
  for (int i = 0; i < 3; i++)
    figure_cone(field, PART_HAND, true, i ? 0.003 : 0.008, joints[i], radius * taper[i],
                joints[i + 1], radius * taper[i + 1]);
}

static void draw_hand(struct field *field) {
  draw_along_x(field, PART_HAND, 0.02, palm, COUNT(palm));
  draw_finger(field, P(0.770, 0.2215, -0.0140), P(1, 0, 0.09), 0.088, 0.0094, 0.16);
  draw_finger(field, P(0.775, 0.2225, -0.0355), P(1, 0, 0.01), 0.094, 0.0096, 0.16);
  draw_finger(field, P(0.772, 0.2215, -0.0565), P(1, 0, -0.07), 0.088, 0.0092, 0.18);
  draw_finger(field, P(0.763, 0.2195, -0.0760), P(1, 0, -0.17), 0.074, 0.0083, 0.20);
  // thumb: its ball, then the finger
  figure_cone(field, PART_HAND, true, 0.02, P(0.704, 0.214, -0.028), 0.0150, P(0.738, 0.205, 0.002),
              0.0130);
  draw_finger(field, P(0.734, 0.206, 0.000), P(0.82, -0.12, 0.52), 0.070, 0.0112, 0.06);
  // the knuckles and the heel of the palm
  static const double knuckles[4][3] = {{0.774, 0.232, -0.014},
                                        {0.779, 0.233, -0.035},
                                        {0.775, 0.232, -0.056},
                                        {0.766, 0.230, -0.075}};
  for (int i = 0; i < 4; i++)
    figure_stroke(field, PART_HAND, true, knuckles[i], knuckles[i], 0.011, 0.0022);
  figure_stroke(field, PART_HAND, true, P(0.745, 0.204, -0.045), P(0.760, 0.206, -0.040), 0.026,
                -0.004);
}

static void draw_muscles(struct field *field) {
  figure_ellipsoid(field, PART_MUSCLE, true, 0.04, P(0.198, 0.230, -0.018), P(0.072, 0.048, 0.056),
                   P(0, 0, -0.17)); // deltoid
  figure_stroke(field, PART_MUSCLE, true, P(0.290, 0.222, 0.022), P(0.360, 0.222, 0.010), 0.050,
                0.007); // biceps
  figure_stroke(field, PART_MUSCLE, true, P(0.260, 0.195, -0.070), P(0.340, 0.200, -0.076), 0.052,
                0.007); // triceps
  figure_stroke(field, PART_MUSCLE, true, P(0.272, 0.250, 0.000), P(0.300, 0.255, -0.030), 0.036,
                -0.004); // the end of the deltoid
  figure_stroke(field, PART_MUSCLE, true, P(0.450, 0.240, -0.008), P(0.520, 0.236, -0.010), 0.044,
                0.006); // brachioradialis
  figure_stroke(field, PART_MUSCLE, true, P(0.470, 0.184, -0.035), P(0.520, 0.186, -0.040), 0.046,
                0.004); // flexors
  figure_stroke(field, PART_MUSCLE, true, P(0.432, 0.212, -0.080), P(0.440, 0.212, -0.080), 0.026,
                0.006); // point of the elbow
  figure_stroke(field, PART_MUSCLE, true, P(0.430, 0.212, 0.000), P(0.434, 0.212, 0.000), 0.032,
                -0.004); // its hollow
  figure_stroke(field, PART_MUSCLE, true, P(0.668, 0.234, -0.064), P(0.672, 0.234, -0.064), 0.020,
                0.004); // ulna at the wrist
}

void figure_draw_arms(struct field *field) {
  draw_along_x(field, PART_ARM, 0.05, arm, COUNT(arm));
  draw_muscles(field);
  draw_hand(field);
}
