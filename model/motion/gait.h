// SPDX-License-Identifier: Apache-2.0
// The mechanics that generated motion is made of: legs that reach for a foot, and the vertical path
// of a body that bounces on them. Angles in radians, metres, seconds. Pure functions, any thread.
#ifndef DSNET_MOTION_GAIT_H
#define DSNET_MOTION_GAIT_H

// Of an adult as tall as SMPL's template and the built-in body.
#define GAIT_THIGH        0.38
#define GAIT_SHANK        0.40
#define GAIT_ANKLE_HEIGHT 0.08  // of the ankle over the sole
#define GAIT_TOES         0.18  // of their tips in front of the ankle
#define GAIT_HEEL         0.06  // behind the ankle
#define GAIT_HIP_DROP     0.09  // of the hips under the pelvis joint
#define GAIT_STANDING     0.941 // pelvis over the floor with the knees just not straight
#define GAIT_GRAVITY      9.81

struct gait_leg {
  double hip, knee, ankle; // flexion; the ankle's turns the toes up
};

// The leg whose ankle is `forward` in front of and `down` under the hip, with the sole pitched by
// `pitch` (positive: toes down). A foot at or out of full reach is missed
// by a little, with a leg that is all but straight.
struct gait_leg gait_leg_reach(double forward, double down, double pitch);

struct gait_bounce {
  double flight, stance; // duration of the two phases of one bounce
  double omega;          // of the spring that a leg is during stance
  double speed;          // at take-off
};

// One bounce every `period`, of which `flight` is ballistic; 0 < flight < period. The stance is
// that of a mass on a spring, so that height, velocity and acceleration are continuous.
struct gait_bounce gait_bounce_make(double period, double flight);

// Height over that of touch-down at `time` since touch-down, any time (it repeats). *airborne (may
// be NULL) is 0 on the floor and else the share of the flight that has passed.
double gait_bounce_height(const struct gait_bounce *bounce, double time, double *airborne);

#endif
