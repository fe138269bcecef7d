// SPDX-License-Identifier: Apache-2.0
// A limb as an artist draws it: cross-sections along a straight axis, each a quarter-wise
// superellipse with its own centre and four radii, joined by cubic curves and closed by rounded
// caps. Torso, legs, arms, feet, fingers and face are all sweeps.
#ifndef DSNET_BODY_BUILD_SWEEP_H
#define DSNET_BODY_BUILD_SWEEP_H

#define SWEEP_STATIONS_MAX 16

enum sweep_channel {
  SWEEP_CENTRE_U, // of the section, in the sweep's frame, metres
  SWEEP_CENTRE_V,
  SWEEP_U_MINUS, // radii towards -u, +u, -v and +v
  SWEEP_U_PLUS,
  SWEEP_V_MINUS,
  SWEEP_V_PLUS,
  SWEEP_POWER, // of the superellipse: 2 an ellipse, more is squarer
  SWEEP_CHANNELS
};

struct sweep {
  double origin[3], axis[3], u[3], v[3]; // orthonormal frame; axis runs through the stations
  int count;
  double at[SWEEP_STATIONS_MAX]; // increasing places along the axis
  double value[SWEEP_STATIONS_MAX][SWEEP_CHANNELS];
  double slope[SWEEP_STATIONS_MAX][SWEEP_CHANNELS]; // set by sweep_finish
  double cap_start, cap_end; // lengths of the rounded ends beyond the first and the last station
};

// A station by its extents: the section spans u0..u1 and v0..v1 and is widest at (cu, cv).
void sweep_add(struct sweep *sweep, double at, double u0, double u1, double v0, double v1,
               double cu, double cv, double power);

// Slopes of the curves from the stations as they now are; call after any change to them.
void sweep_finish(struct sweep *sweep);

// Approximate signed distance, negative inside: exact along rays from the section's centre.
double sweep_distance(const struct sweep *sweep, const double point[3]);

// A sphere that holds the whole sweep.
void sweep_bound(const struct sweep *sweep, double centre[3], double *radius);

#endif
