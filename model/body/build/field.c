// SPDX-License-Identifier: Apache-2.0
#include "field.h"

#include <assert.h>
#include <string.h>

#include "vector.h"

#define GRADIENT_STEP  0.0005
#define PROJECT_STEPS  6
#define PROJECT_LIMIT  0.01 // longest single step, metres
#define PROJECT_ENOUGH 1e-7 // metres from the surface

struct primitive *field_add(struct field *field, enum primitive_kind kind, enum field_part part,
                            bool paired, double blend) {
  assert(field->primitive_count < FIELD_PRIMITIVES_MAX);
  struct primitive *primitive = &field->primitives[field->primitive_count++];
  memset(primitive, 0, sizeof *primitive);
  primitive->kind = kind;
  primitive->part = part;
  primitive->paired = paired;
  primitive->blend = blend;
  return primitive;
}

struct stroke *field_add_stroke(struct field *field, enum field_part part, bool paired) {
  assert(field->stroke_count < FIELD_STROKES_MAX);
  struct stroke *stroke = &field->strokes[field->stroke_count++];
  memset(stroke, 0, sizeof *stroke);
  stroke->part = part;
  stroke->paired = paired;
  return stroke;
}

static void primitive_finish(struct primitive *primitive) {
  const struct cone *cone = &primitive->shape.cone;
  const struct ellipsoid *ellipsoid = &primitive->shape.ellipsoid;
  double *centre = primitive->bound_centre;
  switch (primitive->kind) {
  case PRIMITIVE_SWEEP:
    sweep_finish(&primitive->shape.sweep);
    sweep_bound(&primitive->shape.sweep, centre, &primitive->bound_radius);
    break;
  case PRIMITIVE_ELLIPSOID:
    memcpy(centre, ellipsoid->centre, sizeof ellipsoid->centre);
    primitive->bound_radius =
        fmax(fmax(ellipsoid->radii[0], ellipsoid->radii[1]), ellipsoid->radii[2]);
    break;
  case PRIMITIVE_CONE:
    for (int i = 0; i < 3; i++)
      centre[i] = (cone->ends[0][i] + cone->ends[1][i]) / 2;
    primitive->bound_radius =
        vector_distance(cone->ends[0], cone->ends[1]) / 2 + fmax(cone->radius[0], cone->radius[1]);
    break;
  }
}

void field_finish(struct field *field) {
  for (int i = 0; i < field->primitive_count; i++)
    primitive_finish(&field->primitives[i]);
}

// First-order distance: value over gradient length of the ellipsoid's own implicit function.
static double ellipsoid_distance(const struct ellipsoid *ellipsoid, const double point[3]) {
  double p[3], k0 = 0, k1 = 0;
  vector_subtract(point, ellipsoid->centre, p);
  for (int i = 0; i < 3; i++) {
    double q = vector_dot(p, ellipsoid->axes[i]) / ellipsoid->radii[i];
    k0 += q * q;
    k1 += q * q / (ellipsoid->radii[i] * ellipsoid->radii[i]);
  }
  if (k1 <= 0)
    return -fmin(fmin(ellipsoid->radii[0], ellipsoid->radii[1]), ellipsoid->radii[2]);
  return sqrt(k0) * (sqrt(k0) - 1) / sqrt(k1);
}

static double cone_distance(const struct cone *cone, const double point[3]) {
  double t, distance = segment_distance(point, cone->ends[0], cone->ends[1], &t);
  return distance - (cone->radius[0] + t * (cone->radius[1] - cone->radius[0]));
}

static double primitive_distance(const struct primitive *primitive, const double point[3]) {
  switch (primitive->kind) {
  case PRIMITIVE_SWEEP:
    return sweep_distance(&primitive->shape.sweep, point);
  case PRIMITIVE_ELLIPSOID:
    return ellipsoid_distance(&primitive->shape.ellipsoid, point);
  case PRIMITIVE_CONE:
    break;
  }
  return cone_distance(&primitive->shape.cone, point);
}

static double smooth_minimum(double a, double b, double k) {
  double h = fmax(k - fabs(a - b), 0) / k;
  return fmin(a, b) - h * h * h * k / 6;
}

// Leaves out what is too far away to change the value: the smooth minimum is local. The factor
// allows for distances that fall short of the true one.
static double join(const struct primitive *primitive, const double point[3], double value) {
  double nearest = vector_distance(point, primitive->bound_centre) - primitive->bound_radius;
  if (0.6 * nearest > value + primitive->blend)
    return value;
  return smooth_minimum(value, primitive_distance(primitive, point), primitive->blend);
}

static double stroke_height(const struct stroke *stroke, const double point[3]) {
  double t, distance = segment_distance(point, stroke->ends[0], stroke->ends[1], &t);
  if (distance >= stroke->radius)
    return 0;
  double q = 1 - distance * distance / (stroke->radius * stroke->radius);
  return stroke->height * q * q * q;
}

double field_value(const struct field *field, const double point[3]) {
  const double mirror[3] = {-point[0], point[1], point[2]};
  double value = 10; // metres: further than anything
  for (int i = 0; i < field->primitive_count; i++) {
    const struct primitive *primitive = &field->primitives[i];
    // The nearer of the two goes first on either side, so that the order is mirrored too.
    const double *first = point[0] >= 0 ? point : mirror, *second = point[0] >= 0 ? mirror : point;
    value = join(primitive, first, value);
    if (primitive->paired)
      value = join(primitive, second, value);
  }
  for (int i = 0; i < field->stroke_count; i++) {
    const struct stroke *stroke = &field->strokes[i];
    value -= stroke_height(stroke, stroke->paired && point[0] < 0 ? mirror : point);
  }
  return -smooth_minimum(-value, point[1] - field->floor, field->floor_blend);
}

void field_gradient(const struct field *field, const double point[3], double gradient[3]) {
  for (int i = 0; i < 3; i++) {
    double a[3] = {point[0], point[1], point[2]}, b[3] = {point[0], point[1], point[2]};
    a[i] -= GRADIENT_STEP;
    b[i] += GRADIENT_STEP;
    gradient[i] = (field_value(field, b) - field_value(field, a)) / (2 * GRADIENT_STEP);
  }
}

void field_project(const struct field *field, bool seam, double point[3]) {
  for (int step = 0; step < PROJECT_STEPS; step++) {
    double gradient[3], value = field_value(field, point);
    if (fabs(value) < PROJECT_ENOUGH)
      break;
    field_gradient(field, point, gradient);
    if (seam)
      gradient[0] = 0;
    double norm2 = vector_dot(gradient, gradient);
    if (norm2 < 1e-4) // a flat spot of the field: no direction to go
      break;
    double length = value / sqrt(norm2);
    length = fmin(fmax(length, -PROJECT_LIMIT), PROJECT_LIMIT);
    vector_add_scaled(point, -length / sqrt(norm2), gradient);
  }
  if (seam)
    point[0] = 0;
}
