// SPDX-License-Identifier: Apache-2.0
// Motion features: what the network sees of a frame. A feature set is one entry of a table; it
// declares its width and the block of floats it remembers between frames. Features are causal and
// are computed one frame at a time; a whole clip is the same function called in a loop, so the two
// forms are equal by construction. Rotations follow Casas & Otaduy / DSNet (arXiv 2201.07660), with
// true SI units.
#ifndef DSNET_MOTION_FEATURES_H
#define DSNET_MOTION_FEATURES_H

#include <stddef.h>

#define FEATURES_BETAS     10
#define FEATURES_WIDTH_MAX 2048

struct feature_set {
  const char *name;
  const char *about; // one line for `dsnet info`
  size_t width;      // floats of one frame, betas included
  size_t memory;     // floats remembered between frames; all zeros means "no frame yet"
  // out [width] from pose [66] radians, trans [3] metres, betas [10] at the fixed rate `fps`;
  // updates memory. Pure otherwise; one thread per memory block.
  void (*step)(double fps, const float *pose, const float *trans, const float *betas, float *memory,
               float *out);
};

// "paper": pose 66, joint angular velocity 66 (log of the relative rotation, rad/s), angular
// acceleration 66 (backward difference, rad/s^2), root velocity 3 (m/s), root acceleration 3
// (m/s^2), betas 10: 214. The first frame has zero velocity, the second zero acceleration.
// "inertial" (208) and "springs" (712) are heading-free: see features_inertial.c and
// features_springs.c. NULL when there is no set of that name.
const struct feature_set *feature_set_find(const char *name);

// The table, for listings; NULL past its end.
const struct feature_set *feature_set_at(size_t index);

#endif
