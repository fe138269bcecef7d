// SPDX-License-Identifier: Apache-2.0
// A motion clip: poses and root translations at a fixed rate, in the AMASS layout (Mahmood et al.
// 2019, https://amass.is.tue.mpg.de; its npz keys). World z-up, metres, radians.
#ifndef DSNET_MOTION_CLIP_H
#define DSNET_MOTION_CLIP_H

#include <stddef.h>

#include "base/error.h"

#define CLIP_POSE_SIZE  66 // 22 SMPL body joints, axis-angle
#define CLIP_BETAS_MAX  16
#define CLIP_FRAMES_MAX 10000000

// Owned by whoever loaded or made it; clip_free releases it. Plain data, no locks.
struct clip {
  size_t frames;
  double fps;                  // frames a second, finite, within 1..1000
  float *pose;                 // [frames][66] radians
  float *trans;                // [frames][3] metres
  float betas[CLIP_BETAS_MAX]; // zeros beyond betas_count
  size_t betas_count;
  char gender[16]; // as the file has it, or "neutral"
};

// A zeroed clip of `frames` frames.
int clip_new(struct clip **clip, size_t frames, double fps, struct dsnet_error *error);
void clip_free(struct clip *clip);

// Reads an AMASS-layout npz: `poses` [N][>=66] (24-, 52- and 55-joint files; or `root_orient`
// [N][3] and `pose_body` [N][63] of the SMPL-X releases), `trans` [N][3], `mocap_framerate` or
// `mocap_frame_rate` (float or integer), optional `betas` and `gender` (unicode or bytes). Other
// arrays are skipped. A missing, mis-shaped, truncated or non-finite array is an error that names
// it.
int clip_load(struct clip **clip, const char *path, struct dsnet_error *error);
int clip_load_memory(struct clip **clip, const void *npz, size_t size, struct dsnet_error *error);

// Writes `poses` [N][156] float32 (zeros for the hands), `trans`, `betas` [16], `mocap_framerate`
// and `gender`, as AMASS does, atomically.
int clip_save(const struct clip *clip, const char *path, struct dsnet_error *error);

// The same motion at another rate: rotations by slerp, translation by cubic (Catmull-Rom)
// interpolation. Frame k of the result is at time k / fps; the last one is the last such time
// inside the clip. When the rates agree to 1e-4 relative the frames are copied unchanged (AMASS has
// 120.00004577).
int clip_resample(const struct clip *clip, double fps, struct clip **resampled,
                  struct dsnet_error *error);

#endif
