// SPDX-License-Identifier: Apache-2.0
// How the bones move, inside the motion folder: forward kinematics on the rest offsets of an
// average adult, and from three frames what a sensor fixed to each bone would measure. Heading and
// place do not enter. The true offsets depend on the shape and are not known here; they scale
// accelerations by some percent, and `betas` tell the network by how much.
#ifndef DSNET_MOTION_BONE_MOTION_H
#define DSNET_MOTION_BONE_MOTION_H

#include <stddef.h>

#define BONES 22

// What is remembered of the frames before, so that each frame is placed and its turn measured once.
// Of places two, not velocities: differences of what was rounded alike are 0 at rest.
struct bone_memory {
  float seen;               // frames so far: 0, 1 or 2
  float rotation[BONES][4]; // of the last frame, bone to world
  float velocity[BONES][3]; // of the last frame, angular, in the bone's frame
  float place[2][BONES][3]; // of the last frame and the one before, relative to the root
  float trans[2][3];
};

// One bone, in its own frame. Capture glitches (a joint that turns by pi in a frame) are cut to
// what a body can do, so that no single frame can drive a network out of its range: 300 m/s^2, 30
// rad/s, 2000 rad/s^2.
struct bone_motion {
  double rotation[4];     // quaternion, bone to world
  double acceleration[3]; // m/s^2 of the bone's joint, without gravity
  double force[3];        // acceleration less gravity: at rest 9.81 upwards
  double velocity[3];     // angular, rad/s
  double angular[3];      // angular acceleration, rad/s^2
};

// motion [BONES] at the fixed rate `fps`; updates memory. The first frame has no velocities, the
// second no accelerations.
void bone_motion_step(double fps, const float *pose, const float *trans, struct bone_memory *memory,
                      struct bone_motion *motion);

// v in the world from v in the frame of q, and back.
void bone_to_world(const double q[4], const double v[3], double world[3]);
void bone_from_world(const double q[4], const double v[3], double bone[3]);

#endif
