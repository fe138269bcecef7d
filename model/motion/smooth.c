// SPDX-License-Identifier: Apache-2.0
#include "motion/smooth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "motion/rotation.h"

#define JOINTS (CLIP_POSE_SIZE / 3)

// The neighbours of a frame that count, and their weights by distance.
struct window {
  size_t first, last; // frames
  const double *weights;
};

static void joint_rotation(const struct clip *clip, size_t frame, size_t joint, double q[4]) {
  const float *pose = clip->pose + frame * CLIP_POSE_SIZE + 3 * joint;
  const double vector[3] = {(double)pose[0], (double)pose[1], (double)pose[2]};
  quaternion_from_vector(vector, q);
}

static double weight_at(const struct window *window, size_t frame, size_t other) {
  return window->weights[frame > other ? frame - other : other - frame];
}

static void smooth_joint(const struct clip *clip, const struct window *window, size_t frame,
                         size_t joint, double q[4]) {
  double centre[4], norm = 0;
  joint_rotation(clip, frame, joint, centre);
  memset(q, 0, 4 * sizeof *q);
  for (size_t t = window->first; t <= window->last; t++) {
    double other[4], dot = 0, weight = weight_at(window, frame, t);
    joint_rotation(clip, t, joint, other);
    for (int i = 0; i < 4; i++)
      dot += centre[i] * other[i];
    for (int i = 0; i < 4; i++)
      q[i] += (dot < 0 ? -weight : weight) * other[i];
  }
  for (int i = 0; i < 4; i++)
    norm += q[i] * q[i];
  for (int i = 0; i < 4; i++)
    q[i] /= sqrt(norm); // above 0: the centre counts, and nothing on its hemisphere cancels it
}

static void smooth_frame(const struct clip *clip, const struct window *window, size_t frame,
                         float *pose, float *trans) {
  double place[3] = {0, 0, 0}, sum = 0;
  for (size_t j = 0; j < JOINTS; j++) {
    double q[4], vector[3];
    const float *own = clip->pose + frame * CLIP_POSE_SIZE + 3 * j;
    const double near[3] = {(double)own[0], (double)own[1], (double)own[2]};
    smooth_joint(clip, window, frame, j, q);
    rotation_vector_near(q, near, vector);
    for (size_t i = 0; i < 3; i++)
      pose[3 * j + i] = (float)vector[i];
  }
  for (size_t t = window->first; t <= window->last; t++) {
    double weight = weight_at(window, frame, t);
    sum += weight;
    for (size_t i = 0; i < 3; i++)
      place[i] += weight * (double)clip->trans[3 * t + i];
  }
  for (size_t i = 0; i < 3; i++)
    trans[i] = (float)(place[i] / sum);
}

int clip_smooth(struct clip *clip, double hertz, struct dsnet_error *error) {
  if (!(hertz > 0) || !isfinite(hertz))
    return dsnet_error_set(error, DSNET_EVALUE, "the frequency to smooth at must be positive");
  // exp(-(2 pi f s)^2) = 1/2 at f = hertz
  double deviation = sqrt(log(2)) / (2 * M_PI * hertz) * clip->fps; // frames
  size_t reach = (size_t)fmin(ceil(4 * deviation), (double)clip->frames);
  double *weights = memory_alloc(reach + 1, sizeof *weights);
  float *pose = memory_alloc(clip->frames * CLIP_POSE_SIZE, sizeof *pose);
  float *trans = memory_alloc(clip->frames * 3, sizeof *trans);
  if (!weights || !pose || !trans) {
    free(weights);
    free(pose);
    free(trans);
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory to smooth the clip");
  }
  for (size_t k = 0; k <= reach; k++)
    weights[k] = exp(-0.5 * (double)(k * k) / (deviation * deviation));
  for (size_t t = 0; t < clip->frames; t++) {
    struct window window = {.first = t > reach ? t - reach : 0,
                            .last = clip->frames - 1 - t > reach ? t + reach : clip->frames - 1,
                            .weights = weights};
    smooth_frame(clip, &window, t, pose + t * CLIP_POSE_SIZE, trans + 3 * t);
  }
  free(weights);
  free(clip->pose);
  free(clip->trans);
  clip->pose = pose;
  clip->trans = trans;
  return DSNET_OK;
}
