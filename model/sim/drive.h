// SPDX-License-Identifier: Apache-2.0
// What a motion does to tissue: for each frame of a clip the turn of every element and the load on
// every node, in the world.
//
// The load of node i, an acceleration, is
//
//   a_i = g - s_i'' - R_i g_0
//
// with g gravity, s_i'' the acceleration of where skinning puts the node, and R_i g_0 the gravity
// of the standing rest pose turned with the node's bone. The last term is how standing sag is
// subtracted: a body's template is the shape of someone who stands, so its tissue is already in
// equilibrium under g_0 in the bone's frame, and only what differs from that moves it. A body that
// stands or moves uniformly has no load at all; one that lies down, or falls, does.
//
// s_i'' at a frame is the second difference over its neighbours, and linear in between: that of the
// uniform cubic B-spline with the frames as control points, whose acceleration is continuous.
// Before the first and after the last frame the clip is continued at constant velocity. Loads
// beyond DRIVE_LOAD_MAX are cut to it: no motion of a person has them, but the glitches of capture
// do.
#ifndef DSNET_SIM_DRIVE_H
#define DSNET_SIM_DRIVE_H

#include <stdbool.h>

#include "motion/clip.h"
#include "sim/tissue.h"

#define DRIVE_GRAVITY  9.81  // m/s^2
#define DRIVE_LOAD_MAX 150.0 // m/s^2

struct drive;

// `tissue` and `made` (a shape's solid) must outlive the drive; betas are those of the shape.
int drive_new(struct drive **drive, const struct tissue *tissue, const struct tissue_solid *made,
              const float *betas, size_t betas_count, struct dsnet_error *error);
void drive_free(struct drive *drive);

// Starts at frame 0 of a clip, which the caller keeps while it is used.
void drive_start(struct drive *drive, const struct clip *clip);
// Goes to the next frame; false at the end of the clip, and then nothing has changed.
bool drive_next(struct drive *drive);

// Of the present frame, owned by the drive.
const float *drive_rotations(const struct drive *drive); // [tets][4] unit quaternions w, x, y, z
const float *drive_loads(const struct drive *drive);     // [nodes][3] m/s^2

// columns [columns][3] in rest space, from displacements in the world of the nodes [nodes][4]:
// turned back by each column's rotation. Columns without a node get 0.
void drive_unturn(const struct drive *drive, const float *displacement, float *columns);

#endif
