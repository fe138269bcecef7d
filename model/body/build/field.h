// SPDX-License-Identifier: Apache-2.0
// The implicit surface the body is cut from: primitives joined one after the other by a smooth
// minimum (Quilez's cubic one, which is C2 and local), then strokes that raise or carve the surface
// by an amount in metres, then the floor. The field is negative inside and close to a distance near
// the surface. Left and right are exact mirror images in the plane x = 0.
#ifndef DSNET_BODY_BUILD_FIELD_H
#define DSNET_BODY_BUILD_FIELD_H

#include <stdbool.h>

#include "sweep.h"

#define FIELD_PRIMITIVES_MAX 96
#define FIELD_STROKES_MAX    128

// What a primitive belongs to; shape directions address primitives by it.
enum field_part {
  PART_TORSO,
  PART_BREAST,
  PART_GLUTE,
  PART_MUSCLE,
  PART_NECK,
  PART_HEAD,
  PART_LEG,
  PART_FOOT,
  PART_ARM,
  PART_HAND,
};

enum primitive_kind { PRIMITIVE_SWEEP, PRIMITIVE_ELLIPSOID, PRIMITIVE_CONE };

struct ellipsoid {
  double centre[3], axes[3][3], radii[3];
};

struct cone { // a capsule whose radius goes from radius[0] at ends[0] to radius[1] at ends[1]
  double ends[2][3], radius[2];
};

struct primitive {
  enum primitive_kind kind;
  enum field_part part;
  bool paired;  // has a mirror image on the right
  double blend; // metres over which it melts into what came before
  union {
    struct sweep sweep;
    struct ellipsoid ellipsoid;
    struct cone cone;
  } shape;
  double bound_centre[3], bound_radius; // set by field_finish
};

// Along a segment; fades to nothing at `radius`. A paired one is drawn on the left and reflected,
// so it should end before the midline or cross it at a right angle.
struct stroke {
  enum field_part part;
  bool paired;
  double ends[2][3], radius, height; // height > 0 raises the surface, < 0 carves it
};

struct field {
  int primitive_count, stroke_count;
  struct primitive primitives[FIELD_PRIMITIVES_MAX];
  struct stroke strokes[FIELD_STROKES_MAX];
  double floor, floor_blend; // nothing lies under y = floor
};

// The next free primitive, zeroed but for what is given. The tables are constants of the builder
// and fit; running over the maximum is a programming error (assert).
struct primitive *field_add(struct field *field, enum primitive_kind kind, enum field_part part,
                            bool paired, double blend);
struct stroke *field_add_stroke(struct field *field, enum field_part part, bool paired);

// Slopes and bounds; call once after the last change and before the first value.
void field_finish(struct field *field);

double field_value(const struct field *field, const double point[3]);

// Central differences over half a millimetre.
void field_gradient(const struct field *field, const double point[3], double gradient[3]);

// Moves the point to the surface by Newton steps along the gradient. With `seam`, x stays 0.
void field_project(const struct field *field, bool seam, double point[3]);

#endif
