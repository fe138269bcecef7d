// SPDX-License-Identifier: Apache-2.0
// Motion that shows how tissue answers, as one identifies a system: a clip whose joints are turned
// and whose root is turned and shaken by band-limited random signals, in bouts with rests between
// them so that free decay is seen too, in a random heading. Natural motion alone leaves most of
// what the tissue can do unseen.
#ifndef DSNET_MOTION_EXCITE_H
#define DSNET_MOTION_EXCITE_H

#include <stdint.h>

#include "motion/clip.h"

struct excite_settings {
  double low, high; // band, Hz
  double rotation;  // root mean square of a joint's turn, radians; the root's is half of it
  double shake;     // root mean square of the root's displacement, metres
  uint64_t seed;
};

// 0.5 to 4 Hz, 0.12 rad, 0.012 m.
struct excite_settings excite_settings_default(uint64_t seed);

// A new clip of the same length and rate. The same settings give the same clip. No joint turns
// faster than a person's (25 rad/s) unless the clip itself does: deglitch it first.
int excite_clip(const struct clip *clip, const struct excite_settings *settings,
                struct clip **excited, struct dsnet_error *error);

#endif
