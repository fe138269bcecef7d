// SPDX-License-Identifier: Apache-2.0
// Live motion at any rate for a network that runs at one: brings a client's frames onto the model's
// grid as they come, fills in frames that were lost, and keeps implausible poses out. Knows only
// what has arrived. Plain data: a copy goes on as the original would.
//
// Rates. The model's frames between two poses of the client are interpolated (slerp; linear
// translation) and stepped one after the other; the client gets one result for each of its poses: a
// mixture of the two newest model frames. When the model's rate is a multiple of the client's, a
// model frame falls on every pose and results are on time; otherwise they are of one model frame
// before. At the model's own rate poses pass through bit for bit. Rates that differ by 1e-4 or
// less, relatively, are the same.
//
// Time. A pose is taken to be one period after the last as long as its timestamp is within half a
// period of that (jitter); the timeline follows slow drift. If it is later, poses were lost, and
// the motion between is interpolated; if it is earlier, it replaces the last pose. After more than
// RETIMER_GAP_SECONDS (or one and a half periods of a slow client), or when time runs backwards,
// the motion is taken up anew: velocities start from zero instead of spiking. A timestamp that is
// given again says nothing, and the pose is one period after the last: clocks may tick more
// coarsely than poses come. When it stood still for longer than a break, time counts from where it
// moves on.
//
// Glitches. With `hold`, a joint that turned faster than DEGLITCH_SPEED since its last plausible
// rotation keeps that rotation. What is allowed grows with the time that passes, so a joint is held
// for an eighth of a second at the most.
#ifndef DSNET_MOTION_RETIMER_H
#define DSNET_MOTION_RETIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "motion/clip.h"

#define RETIMER_GAP_SECONDS 0.25

struct retimer {
  double ratio;      // model frames in a client's period
  double period;     // seconds, the client's
  double phase;      // of the newest pose after the newest model frame, 0..1 model frames
  double clock;      // the timeline's estimate of the newest pose's timestamp
  double last;       // newest timestamp
  double still;      // seconds of poses that gave it again
  double from, span; // model frames: phase of the pose before, time between the two
  float pose[2][CLIP_POSE_SIZE]; // before, newest
  float trans[2][3];
  float good_age[CLIP_POSE_SIZE / 3]; // seconds since each joint was last plausible
  uint32_t any, hold;                 // whether there was a pose; whether to hold
};

// What the newest pose leads to.
struct retimer_plan {
  uint32_t steps; // model frames to step, often 1
  bool restart;   // forget velocities before the first of them
  bool gap;       // because of the timestamps
  uint32_t held;  // joints that were held
  float mix;      // the result is mix x newest + (1 - mix) x the one before
};

// `fps` of the client, `rate` of the model, frames a second.
void retimer_init(struct retimer *retimer, double fps, double rate, bool hold);
// Forgets the motion, as before the first pose.
void retimer_reset(struct retimer *retimer);

// Seconds by which results lag behind poses.
double retimer_delay(double fps, double rate);

void retimer_push(struct retimer *retimer, const float *pose, const float *trans, double timestamp,
                  struct retimer_plan *plan);
// The pose [66] and translation [3] of model frame 0 .. plan.steps - 1 of the last push.
void retimer_frame(const struct retimer *retimer, uint32_t step, float *pose, float *trans);

#endif
