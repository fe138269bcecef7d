// SPDX-License-Identifier: Apache-2.0
// A clip at another rate.
#include "motion/clip.h"

#include <math.h>
#include <string.h>

#include "motion/rotation.h"

#define SAME_RATE 1e-4
// A time this near to a frame's, in frames, is that frame's: 10 million frames of rounding.
#define ON_A_FRAME 1e-7

// Between frames `before` and `before` + 1 at `t` in (0, 1). The rotation vector continues that of
// the nearer frame: a pose that turned beyond pi stays beyond pi, because the frames that are met
// exactly are copied as they are and the two must not jump against each other.
static void blend_pose(const struct clip *clip, size_t before, double t, float *pose) {
  const float *a = clip->pose + before * CLIP_POSE_SIZE, *b = a + CLIP_POSE_SIZE;
  for (size_t j = 0; j < CLIP_POSE_SIZE; j += 3) {
    double va[3], vb[3], qa[4], qb[4], q[4], v[3];
    for (int i = 0; i < 3; i++) {
      va[i] = (double)a[j + i];
      vb[i] = (double)b[j + i];
    }
    quaternion_from_vector(va, qa);
    quaternion_from_vector(vb, qb);
    quaternion_slerp(qa, qb, t, q);
    rotation_vector_near(q, t < 0.5 ? va : vb, v);
    for (int i = 0; i < 3; i++)
      pose[j + i] = (float)v[i];
  }
}

// Catmull-Rom through four frames around. Beyond an end the frames go on in a straight line, so
// that uniform motion stays uniform there.
static void blend_trans(const struct clip *clip, size_t before, double t, float *trans) {
  for (size_t i = 0; i < 3; i++) {
    const float *at = clip->trans + before * 3 + i;
    double b = (double)at[0], c = (double)at[3];
    double a = before > 0 ? (double)at[-3] : 2 * b - c;
    double d = before + 2 < clip->frames ? (double)at[6] : 2 * c - b;
    trans[i] =
        (float)(b +
                0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a))));
  }
}

// The frame at `time`, in frames of the clip, within 0..frames - 1.
static void resample_frame(const struct clip *clip, double time, float *pose, float *trans) {
  size_t before = (size_t)time;
  double t = time - (double)before;
  if (t > 1 - ON_A_FRAME) {
    before++;
    t = 0;
  }
  if (t > ON_A_FRAME) {
    blend_pose(clip, before, t, pose);
    blend_trans(clip, before, t, trans);
    return;
  }
  memcpy(pose, clip->pose + before * CLIP_POSE_SIZE, CLIP_POSE_SIZE * sizeof *pose);
  memcpy(trans, clip->trans + before * 3, 3 * sizeof *trans);
}

int clip_resample(const struct clip *clip, double fps, struct clip **resampled,
                  struct dsnet_error *error) {
  *resampled = NULL;
  if (clip->frames == 0)
    return clip_new(resampled, 0, fps, error);
  double ratio = clip->fps / fps; // frames of the clip for one of the result
  if (fabs(ratio - 1) <= SAME_RATE)
    ratio = 1;
  double last = (double)(clip->frames - 1);
  double count = floor(last / ratio + ON_A_FRAME) + 1;
  if (!(count <= CLIP_FRAMES_MAX)) // not a number when fps is none; clip_new says so of the others
    count = CLIP_FRAMES_MAX + 1;
  struct clip *made;
  int result = clip_new(&made, (size_t)count, fps, error);
  if (result < 0)
    return result;
  memcpy(made->betas, clip->betas, sizeof made->betas);
  made->betas_count = clip->betas_count;
  memcpy(made->gender, clip->gender, sizeof made->gender);
  for (size_t k = 0; k < made->frames; k++)
    resample_frame(clip, fmin((double)k * ratio, last), made->pose + k * CLIP_POSE_SIZE,
                   made->trans + k * 3);
  *resampled = made;
  return 0;
}
