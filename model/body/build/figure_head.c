// SPDX-License-Identifier: Apache-2.0
// Neck and head, with a hint of a face.
#include "figure.h"

#define P        FIGURE_POINT
#define NO       P(0, 0, 0)
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

// at (y), half-widths, back z, front z, power
static const struct figure_section neck[] = {
    {0.225, -0.064, 0.064, -0.084, 0.028, 2.1}, {0.260, -0.057, 0.057, -0.077, 0.035, 2.0},
    {0.300, -0.053, 0.053, -0.069, 0.042, 2.0}, {0.340, -0.053, 0.053, -0.066, 0.048, 2.0},
    {0.380, -0.055, 0.055, -0.066, 0.040, 2.0},
};

static const struct figure_section face[] = {
    {0.313, -0.024, 0.024, 0.050, 0.108, 2.2},  {0.322, -0.035, 0.035, 0.022, 0.111, 2.2},
    {0.340, -0.046, 0.046, -0.004, 0.111, 2.2}, {0.360, -0.053, 0.053, -0.020, 0.112, 2.2},
    {0.385, -0.059, 0.059, -0.030, 0.112, 2.2}, {0.410, -0.0645, 0.0645, -0.030, 0.111, 2.2},
    {0.435, -0.067, 0.067, -0.030, 0.110, 2.2}, {0.460, -0.067, 0.067, -0.030, 0.108, 2.2},
    {0.485, -0.064, 0.064, -0.020, 0.102, 2.2},
};

static void draw_neck(struct field *field) {
  figure_upright(field, PART_NECK, false, 0.045, neck, COUNT(neck));
  // the muscle from behind the ear to the breastbone, and the throat
  figure_stroke(field, PART_NECK, true, P(0.018, 0.245, 0.034), P(0.050, 0.350, -0.018), 0.024,
                0.005);
  figure_stroke(field, PART_NECK, false, P(0, 0.290, 0.042), P(0, 0.280, 0.040), 0.024, 0.004);
}

static void draw_skull(struct field *field) {
  figure_ellipsoid(field, PART_HEAD, false, 0.02, P(0, 0.444, 0.010), P(0.0765, 0.091, 0.094), NO);
  struct sweep *sweep = &field_add(field, PRIMITIVE_SWEEP, PART_HEAD, false, 0.022)->shape.sweep;
  sweep->axis[1] = sweep->u[0] = sweep->v[2] = 1;
  sweep->cap_start = 0.010;
  sweep->cap_end = 0.035;
  for (int i = 0; i < COUNT(face); i++) // widest well behind the face's front
    sweep_add(sweep, face[i].at, face[i].u0, face[i].u1, face[i].v0, face[i].v1, 0,
              face[i].v0 + 0.42 * (face[i].v1 - face[i].v0), face[i].power);
  figure_ellipsoid(field, PART_HEAD, false, 0.016, P(0, 0.3195, 0.0960), P(0.022, 0.0150, 0.0170),
                   NO); // chin
}

static void draw_eyes(struct field *field) {
  // the sockets, the closed lids, the brow
  figure_stroke(field, PART_HEAD, true, P(0.024, 0.4240, 0.110), P(0.044, 0.4230, 0.101), 0.025,
                -0.0100);
  figure_stroke(field, PART_HEAD, true, P(0.030, 0.4205, 0.102), P(0.036, 0.4205, 0.099), 0.0165,
                0.0062);
  figure_stroke(field, PART_HEAD, true, P(0.018, 0.4460, 0.111), P(0.036, 0.4485, 0.104), 0.018,
                0.0024);
  figure_stroke(field, PART_HEAD, true, P(0.036, 0.4485, 0.104), P(0.057, 0.4400, 0.084), 0.018,
                0.0026);
}

static void draw_nose(struct field *field) {
  figure_cone(field, PART_HEAD, false, 0.016, P(0, 0.4330, 0.1040), 0.0070, P(0, 0.3920, 0.1195),
              0.0090);
  figure_ellipsoid(field, PART_HEAD, false, 0.008, P(0, 0.3870, 0.1215), P(0.0110, 0.0098, 0.0112),
                   NO);
  figure_ellipsoid(field, PART_HEAD, true, 0.007, P(0.0120, 0.3845, 0.1140),
                   P(0.0078, 0.0078, 0.0110), P(0, 0.3, 0));
}

static void draw_mouth(struct field *field) {
  // the swell of the teeth, upper and lower lip, the line between, the hollow over the chin
  figure_stroke(field, PART_HEAD, true, P(0, 0.3550, 0.113), P(0.014, 0.3550, 0.109), 0.0280,
                0.0050);
  figure_stroke(field, PART_HEAD, true, P(0, 0.3600, 0.118), P(0.014, 0.3580, 0.113), 0.0110,
                0.0022);
  figure_stroke(field, PART_HEAD, true, P(0, 0.3455, 0.118), P(0.012, 0.3465, 0.113), 0.0120,
                0.0032);
  figure_stroke(field, PART_HEAD, true, P(0, 0.3530, 0.119), P(0.023, 0.3520, 0.109), 0.0080,
                -0.0028);
  figure_stroke(field, PART_HEAD, true, P(0, 0.3325, 0.114), P(0.010, 0.3330, 0.112), 0.0140,
                -0.0026);
}

static void draw_cheeks_and_ears(struct field *field) {
  figure_stroke(field, PART_HEAD, true, P(0.044, 0.3980, 0.092), P(0.064, 0.4060, 0.040), 0.030,
                0.0040);
  figure_stroke(field, PART_HEAD, true, P(0.052, 0.3620, 0.075), P(0.058, 0.3680, 0.045), 0.034,
                -0.0018);
  figure_stroke(field, PART_HEAD, true, P(0.066, 0.4500, 0.075), P(0.070, 0.4500, 0.060), 0.034,
                -0.0028); // temple
  figure_stroke(field, PART_HEAD, true, P(0.050, 0.3440, 0.022), P(0.046, 0.3380, 0.036), 0.028,
                0.0040); // corner of the jaw
  figure_ellipsoid(field, PART_HEAD, true, 0.006, P(0.0730, 0.4140, -0.004),
                   P(0.0085, 0.0300, 0.0185), P(0.18, 0.32, -0.12));
  figure_stroke(field, PART_HEAD, true, P(0.0840, 0.4200, 0.000), P(0.0820, 0.4100, 0.004), 0.0130,
                -0.0055);
}

void figure_draw_head(struct field *field) {
  draw_neck(field);
  draw_skull(field);
  draw_nose(field);
  draw_eyes(field);
  draw_mouth(field);
  draw_cheeks_and_ears(field);
}
