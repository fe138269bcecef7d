// SPDX-License-Identifier: Apache-2.0
// The inertial part that two feature sets share, inside the motion folder.
#ifndef DSNET_MOTION_FEATURES_INERTIAL_H
#define DSNET_MOTION_FEATURES_INERTIAL_H

#include "motion/bone_motion.h"

#define INERTIAL_BONE_FLOATS 9 // force 3, angular velocity 3, angular acceleration 3

// out [BONES][INERTIAL_BONE_FLOATS]
void features_inertial_write(const struct bone_motion *motion, float *out);

#endif
