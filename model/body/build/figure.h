// SPDX-License-Identifier: Apache-2.0
// The figure: an adult in the T-pose, drawn as primitives and strokes around SMPL's joints. All
// numbers are metres in the rest pose (y-up, facing +z, the left side at +x); they follow common
// anthropometric tables for a person of 1.72 m, and then the eye.
#ifndef DSNET_BODY_BUILD_FIGURE_H
#define DSNET_BODY_BUILD_FIGURE_H

#include "body/body.h"
#include "field.h"

#define FIGURE_SOLE  (-1.185) // the floor it stands on
#define FIGURE_CROWN 0.535

// The figure at rest, every shape at zero. field_finish has not been called.
void figure_draw(struct field *field);

// Rest joints of the figure, SMPL's order.
extern const double figure_joints[BODY_JOINTS][3];
extern const int figure_parents[BODY_JOINTS]; // -1 for the root

// Parts of the drawing, one file each.
void figure_draw_torso(struct field *field);
void figure_draw_head(struct field *field);
void figure_draw_legs(struct field *field);
void figure_draw_arms(struct field *field);

// Conveniences of the drawings: the new primitive is added to the field.
struct figure_section { // a station by its extents, see sweep_add
  double at, u0, u1, v0, v1, power;
};
// Centres lie midway; axis along +y, u = +x, v = +z, so that extents are body coordinates.
struct sweep *figure_upright(struct field *field, enum field_part part, bool paired, double blend,
                             const struct figure_section *sections, int count);
void figure_ellipsoid(struct field *field, enum field_part part, bool paired, double blend,
                      const double centre[3], const double radii[3], const double turn[3]);
void figure_cone(struct field *field, enum field_part part, bool paired, double blend,
                 const double a[3], double radius_a, const double b[3], double radius_b);
void figure_stroke(struct field *field, enum field_part part, bool paired, const double a[3],
                   const double b[3], double radius, double height);

#define FIGURE_POINT(x, y, z)                                                                      \
  (const double[3]) {                                                                              \
    (x), (y), (z)                                                                                  \
  }

#endif
