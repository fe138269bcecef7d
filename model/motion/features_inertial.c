// SPDX-License-Identifier: Apache-2.0
// What the tissue feels, per bone in the bone's own frame: acceleration less gravity (m/s^2),
// angular velocity (rad/s) and angular acceleration (rad/s^2); then betas. It is the same whatever
// the heading and place of the body, so the network need not learn that they do not matter.
#include "motion/features_inertial.h"

#include <string.h>

#include "motion/features_sets.h"

#define MEMORY_FLOATS (sizeof(struct bone_memory) / sizeof(float))

_Static_assert(sizeof(struct bone_memory) == (1 + 13 * BONES + 6) * sizeof(float), "no padding");

void features_inertial_write(const struct bone_motion *motion, float *out) {
  for (size_t b = 0; b < BONES; b++, out += INERTIAL_BONE_FLOATS)
    for (size_t i = 0; i < 3; i++) {
      out[i] = (float)motion[b].force[i];
      out[3 + i] = (float)motion[b].velocity[i];
      out[6 + i] = (float)motion[b].angular[i];
    }
}

static void step(double fps, const float *pose, const float *trans, const float *betas,
                 float *memory_block, float *out) {
  struct bone_memory memory;
  struct bone_motion motion[BONES];
  memcpy(&memory, memory_block, sizeof memory);
  bone_motion_step(fps, pose, trans, &memory, motion);
  features_inertial_write(motion, out);
  memcpy(out + BONES * INERTIAL_BONE_FLOATS, betas, FEATURES_BETAS * sizeof *out);
  memcpy(memory_block, &memory, sizeof memory);
}

const struct feature_set feature_set_inertial = {
    .name = "inertial",
    .about = "per bone, in its own frame: acceleration less gravity, angular velocity and "
             "acceleration; betas",
    .width = BONES * INERTIAL_BONE_FLOATS + FEATURES_BETAS,
    .memory = MEMORY_FLOATS,
    .step = step,
};
