// SPDX-License-Identifier: Apache-2.0
#include "figure.h"

#include <string.h>

#include "vector.h"

const double figure_joints[BODY_JOINTS][3] = {
    {0, -0.223, 0.010},      {0.075, -0.318, 0.006},  {-0.075, -0.318, 0.006},
    {0, -0.114, -0.005},     {0.102, -0.690, 0.006},  {-0.102, -0.690, 0.006},
    {0, 0.021, -0.012},      {0.090, -1.090, -0.027}, {-0.090, -1.090, -0.027},
    {0, 0.078, -0.010},      {0.112, -1.150, 0.095},  {-0.112, -1.150, 0.095},
    {0, 0.288, -0.018},      {0.080, 0.196, -0.012},  {-0.080, 0.196, -0.012},
    {0, 0.353, 0.015},       {0.172, 0.226, -0.018},  {-0.172, 0.226, -0.018},
    {0.430, 0.215, -0.040},  {-0.430, 0.215, -0.040}, {0.680, 0.220, -0.043},
    {-0.680, 0.220, -0.043}, {0.765, 0.217, -0.045},  {-0.765, 0.217, -0.045},
};

const int figure_parents[BODY_JOINTS] = {-1, 0, 0, 0,  1,  2,  3,  4,  5,  6,  7,  8,
                                         9,  9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21};

void figure_draw(struct field *field) {
  memset(field, 0, sizeof *field);
  field->floor = FIGURE_SOLE;
  field->floor_blend = 0.016;
  figure_draw_torso(field);
  figure_draw_legs(field);
  figure_draw_arms(field);
  figure_draw_head(field);
}

struct sweep *figure_upright(struct field *field, enum field_part part, bool paired, double blend,
                             const struct figure_section *sections, int count) {
  struct sweep *sweep = &field_add(field, PRIMITIVE_SWEEP, part, paired, blend)->shape.sweep;
  sweep->axis[1] = sweep->u[0] = sweep->v[2] = 1;
  sweep->cap_start = sweep->cap_end = 0.03;
  for (int i = 0; i < count; i++) {
    const struct figure_section *s = &sections[i];
    sweep_add(sweep, s->at, s->u0, s->u1, s->v0, s->v1, (s->u0 + s->u1) / 2, (s->v0 + s->v1) / 2,
              s->power);
  }
  return sweep;
}

// Rows are the turned axes: rotations about x, then y, then z, in radians.
static void turn_axes(const double turn[3], double axes[3][3]) {
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++)
      axes[i][k] = i == k;
  for (int i = 0; i < 3; i++) {
    int a = (i + 1) % 3, b = (i + 2) % 3;
    double c = cos(turn[i]), s = sin(turn[i]);
    for (int row = 0; row < 3; row++) {
      double *axis = axes[row], p = axis[a], q = axis[b];
      axis[a] = c * p - s * q;
      axis[b] = s * p + c * q;
    }
  }
}

void figure_ellipsoid(struct field *field, enum field_part part, bool paired, double blend,
                      const double centre[3], const double radii[3], const double turn[3]) {
  struct ellipsoid *ellipsoid =
      &field_add(field, PRIMITIVE_ELLIPSOID, part, paired, blend)->shape.ellipsoid;
  memcpy(ellipsoid->centre, centre, sizeof ellipsoid->centre);
  memcpy(ellipsoid->radii, radii, sizeof ellipsoid->radii);
  turn_axes(turn, ellipsoid->axes);
}

void figure_cone(struct field *field, enum field_part part, bool paired, double blend,
                 const double a[3], double radius_a, const double b[3], double radius_b) {
  struct cone *cone = &field_add(field, PRIMITIVE_CONE, part, paired, blend)->shape.cone;
  memcpy(cone->ends[0], a, sizeof cone->ends[0]);
  memcpy(cone->ends[1], b, sizeof cone->ends[1]);
  cone->radius[0] = radius_a;
  cone->radius[1] = radius_b;
}

void figure_stroke(struct field *field, enum field_part part, bool paired, const double a[3],
                   const double b[3], double radius, double height) {
  struct stroke *stroke = field_add_stroke(field, part, paired);
  memcpy(stroke->ends[0], a, sizeof stroke->ends[0]);
  memcpy(stroke->ends[1], b, sizeof stroke->ends[1]);
  stroke->radius = radius;
  stroke->height = height;
}
