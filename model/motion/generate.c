// SPDX-License-Identifier: Apache-2.0
// From a kind's poses to a clip in AMASS's frame.
#include "motion/generate.h"

#include <math.h>
#include <string.h>

#include "motion/rotation.h"

// The body's y-up frame, which faces +z, in the z-up world: forward becomes -y, left stays +x.
static void turn_to_world(const struct generate_pose *pose, double heading, double root[4],
                          double pelvis[3]) {
  double up[4], turn[4], both[4];
  quaternion_from_vector((double[3]){acos(-1) / 2, 0, 0}, up);
  quaternion_from_vector((double[3]){0, 0, heading}, turn);
  quaternion_multiply(turn, up, both);
  quaternion_multiply(both, pose->joints[0], root);
  double x = pose->pelvis[0], y = -pose->pelvis[2];
  pelvis[0] = cos(heading) * x - sin(heading) * y;
  pelvis[1] = sin(heading) * x + cos(heading) * y;
  pelvis[2] = pose->pelvis[1];
}

static void store_frame(const struct generate_pose *pose, double heading, const float *previous,
                        float *joints, float *trans) {
  double root[4], pelvis[3];
  turn_to_world(pose, heading, root, pelvis);
  for (int j = 0; j < 22; j++) {
    double vector[3], reference[3] = {0};
    for (int k = 0; previous && k < 3; k++)
      reference[k] = previous[3 * j + k];
    rotation_vector_near(j ? pose->joints[j] : root, reference, vector);
    for (int k = 0; k < 3; k++)
      joints[3 * j + k] = (float)vector[k];
  }
  for (int k = 0; k < 3; k++)
    trans[k] = (float)pelvis[k];
}

int generate_clip(struct clip **clip, const struct generate_kind *kind,
                  const struct generate_settings *settings, double seconds, double fps,
                  double heading, struct dsnet_error *error) {
  if (!(seconds > 0 && seconds <= 3600))
    return dsnet_error_set(error, DSNET_EVALUE, "seconds: %g is not within 0 to 3600", seconds);
  if (!(fps >= 1 && fps <= 1000))
    return dsnet_error_set(error, DSNET_EVALUE, "fps: %g is not within 1 to 1000", fps);
  size_t frames = (size_t)ceil(seconds * fps);
  int result = clip_new(clip, frames, fps, error);
  if (result < 0)
    return result;
  for (size_t t = 0; t < frames; t++) {
    struct generate_pose pose;
    kind->pose(settings, (double)t / fps, &pose);
    float *joints = (*clip)->pose + t * CLIP_POSE_SIZE;
    store_frame(&pose, heading, t ? joints - CLIP_POSE_SIZE : NULL, joints, (*clip)->trans + 3 * t);
  }
  return 0;
}
