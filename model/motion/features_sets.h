// SPDX-License-Identifier: Apache-2.0
// The sets that the table of features.c lists, inside the motion folder.
#ifndef DSNET_MOTION_FEATURES_SETS_H
#define DSNET_MOTION_FEATURES_SETS_H

#include "motion/features.h"

extern const struct feature_set feature_set_paper;
extern const struct feature_set feature_set_inertial;
extern const struct feature_set feature_set_springs;

#endif
