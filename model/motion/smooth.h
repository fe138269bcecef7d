// SPDX-License-Identifier: Apache-2.0
// Takes the noise of motion capture out of a clip. What markers, solvers and rounded files add is
// small in the pose but not in its second derivative, which is what moves tissue: poses rounded to
// 0.01 rad at 120 Hz jitter by some 100 rad/s^2. Biomechanics filters captured motion at 6 to 12 Hz
// before it takes accelerations (Winter, "Biomechanics and Motor Control of Human Movement").
#ifndef DSNET_MOTION_SMOOTH_H
#define DSNET_MOTION_SMOOTH_H

#include "motion/clip.h"

#define SMOOTH_HERTZ 8.0 // for soft tissue, which moves at 2 to 8 Hz

// Low-pass without delay: every joint's rotation and the root's place become the mean over their
// neighbours in time with Gaussian weights that halve the power at `hertz`. Quaternions are
// averaged on the hemisphere of the frame's own. At the ends the neighbours that are there count.
// DSNET_EVALUE for a frequency that is not positive; on failure the clip is as it was.
int clip_smooth(struct clip *clip, double hertz, struct dsnet_error *error);

#endif
