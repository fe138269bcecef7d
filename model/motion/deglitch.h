// SPDX-License-Identifier: Apache-2.0
// Mends the glitches of motion capture in a clip: joints that turn faster than a person can, most
// of them flips of up to half a turn from one frame to the next and back.
#ifndef DSNET_MOTION_DEGLITCH_H
#define DSNET_MOTION_DEGLITCH_H

#include "motion/clip.h"

#define DEGLITCH_SPEED 25.0 // rad/s

struct deglitch_report {
  size_t spans;   // bridged, all joints together
  size_t frames;  // joint rotations that were replaced
  double fastest; // rad/s, the highest joint speed found at first
};

// The highest angular speed of any joint of a clip, root included, from frame to frame (rad/s).
double clip_joint_speed(const struct clip *clip);

// In each joint's rotations, every stretch whose speed passes `speed` (rad/s; three fifths of it
// for pelvis and spine; glitches less than a quarter of a second apart are one) is replaced by a
// bridge: slerp from the motion carried on from before it to the motion carried back from after it,
// eased in and out, so that rotation and angular velocity are continuous. A stretch too short for
// its angle is widened until the bridge itself is slow enough; at an end of the clip the good side
// is held. Frames outside the stretches are untouched, bit for bit; translation is not changed.
// Afterwards no joint is faster than `speed`. `report` may be NULL. DSNET_EVALUE for a speed that
// is not positive; on failure the clip is as it was.
int clip_deglitch(struct clip *clip, double speed, struct deglitch_report *report,
                  struct dsnet_error *error);

#endif
