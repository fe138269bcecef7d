// SPDX-License-Identifier: Apache-2.0
// Parametric motion of our own making, free of any licence: clips for the 22 SMPL joints in a z-up
// world whose floor is z = 0. Used by `dsnet motion`, the embedded sample clip and the training
// data.
#ifndef DSNET_MOTION_GENERATE_H
#define DSNET_MOTION_GENERATE_H

#include <stddef.h>

#include "motion/clip.h"

// The body's joints in its own frame (y up, facing +z) and the pelvis in the world.
struct generate_pose {
  double joints[22][4]; // unit quaternions (w, x, y, z), the root's without the turn to z-up
  double pelvis[3];     // x to the left, y up over the floor, z forward; metres
};

struct generate_settings {
  double rate;      // scales the tempo; 1 is the kind's own
  double amplitude; // scales how large the movement is; 1 is the kind's own
};

#define GENERATE_SCALE_MIN 0.5
#define GENERATE_SCALE_MAX 1.5

struct generate_kind {
  const char *name;
  const char *about;
  double seconds; // a good length
  // The pose at `time` >= 0. A smooth function of time but for touch-downs.
  void (*pose)(const struct generate_settings *settings, double time, struct generate_pose *pose);
};

// NULL when there is no kind of that name.
const struct generate_kind *generate_kind_find(const char *name);
// The table, for listings; NULL past its end.
const struct generate_kind *generate_kind_at(size_t index);

// A clip of the kind at `fps` frames/s (1..1000) for `seconds` (up to 3,600), turned about the
// vertical by `heading` radians.
int generate_clip(struct clip **clip, const struct generate_kind *kind,
                  const struct generate_settings *settings, double seconds, double fps,
                  double heading, struct dsnet_error *error);

#endif
