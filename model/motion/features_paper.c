// SPDX-License-Identifier: Apache-2.0
// The features of DSNet (arXiv 2201.07660), in SI units. With R(t) the rotation of a joint relative
// to its parent (the root: to the world), f the rate, p(t) the root translation:
//
//   pose          theta(t)                                    [22][3] rad
//   velocity      omega(t) = f log(R(t-1)^T R(t))             [22][3] rad/s, in the joint's own
//   frame acceleration  alpha(t) = f (omega(t) - omega(t-1))        [22][3] rad/s^2 root v(t) = f
//   (p(t) - p(t-1))                    [3] m/s, in the world
//                 a(t) = f (v(t) - v(t-1))                    [3] m/s^2
//   betas                                                     [10]
//
// The block of memory is a count of the frames seen (0, 1 or 2: more makes no difference), then
// pose and translation of one frame before and of two frames before. What is remembered are inputs,
// bit for bit, and the velocity of one frame before is computed again from them: a velocity kept as
// a float would be multiplied by f in the acceleration, rounding and all. For the same reason all
// arithmetic is double and rounds once, into the output.
#include <string.h>

#include "motion/features_sets.h"
#include "motion/rotation.h"

#define JOINTS    22
#define POSE_SIZE (3 * JOINTS)

// The memory block; a float array of its size is read and written through it.
struct memory {
  float seen;
  float pose[2][POSE_SIZE]; // one frame before, two frames before
  float trans[2][3];
};

struct output {
  float pose[POSE_SIZE], velocity[POSE_SIZE], acceleration[POSE_SIZE];
  float root_velocity[3], root_acceleration[3];
  float betas[FEATURES_BETAS];
};

_Static_assert(sizeof(struct memory) == (1 + 2 * (POSE_SIZE + 3)) * sizeof(float), "no padding");
_Static_assert(sizeof(struct output) == 214 * sizeof(float), "no padding");

static void load_rotation(const float vector[3], double q[4]) {
  const double v[3] = {(double)vector[0], (double)vector[1], (double)vector[2]};
  quaternion_from_vector(v, q);
}

// f log(before^T after)
static void angular_velocity(double fps, const double before[4], const double after[4],
                             double velocity[3]) {
  double inverse[4], relative[4];
  quaternion_conjugate(before, inverse);
  quaternion_multiply(inverse, after, relative);
  quaternion_to_vector(relative, velocity);
  for (int i = 0; i < 3; i++)
    velocity[i] *= fps;
}

static void step_joint(double fps, const struct memory *memory, const float *pose, size_t joint,
                       struct output *out) {
  double now[4], before[4], earlier[4], velocity[3], last_velocity[3];
  if (memory->seen < 1)
    return;
  load_rotation(pose + joint, now);
  load_rotation(memory->pose[0] + joint, before);
  angular_velocity(fps, before, now, velocity);
  for (int i = 0; i < 3; i++)
    out->velocity[joint + i] = (float)velocity[i];
  if (memory->seen < 2)
    return;
  load_rotation(memory->pose[1] + joint, earlier);
  angular_velocity(fps, earlier, before, last_velocity);
  for (int i = 0; i < 3; i++)
    out->acceleration[joint + i] = (float)(fps * (velocity[i] - last_velocity[i]));
}

static void step_root(double fps, const struct memory *memory, const float *trans,
                      struct output *out) {
  for (int i = 0; i < 3; i++) {
    double step = (double)trans[i] - (double)memory->trans[0][i];
    double last_step = (double)memory->trans[0][i] - (double)memory->trans[1][i];
    if (memory->seen >= 1)
      out->root_velocity[i] = (float)(fps * step);
    if (memory->seen >= 2)
      out->root_acceleration[i] = (float)(fps * fps * (step - last_step));
  }
}

static void remember(struct memory *memory, const float *pose, const float *trans) {
  memcpy(memory->pose[1], memory->pose[0], sizeof memory->pose[0]);
  memcpy(memory->trans[1], memory->trans[0], sizeof memory->trans[0]);
  memcpy(memory->pose[0], pose, sizeof memory->pose[0]);
  memcpy(memory->trans[0], trans, sizeof memory->trans[0]);
  memory->seen = memory->seen < 1 ? 1 : 2;
}

// The blocks are copied into the structs and back, because a caller's float array may not be
// accessed as a struct; compilers see through most of it.
static void step(double fps, const float *pose, const float *trans, const float *betas,
                 float *memory_block, float *out_block) {
  struct memory memory;
  struct output out = {0};
  memcpy(&memory, memory_block, sizeof memory);
  memcpy(out.pose, pose, sizeof out.pose);
  for (size_t joint = 0; joint < POSE_SIZE; joint += 3)
    step_joint(fps, &memory, pose, joint, &out);
  step_root(fps, &memory, trans, &out);
  memcpy(out.betas, betas, sizeof out.betas);
  remember(&memory, pose, trans);
  memcpy(memory_block, &memory, sizeof memory);
  memcpy(out_block, &out, sizeof out);
}

const struct feature_set feature_set_paper = {
    .name = "paper",
    .about =
        "DSNet's: pose, joint velocity and acceleration, root velocity and acceleration, betas",
    .width = sizeof(struct output) / sizeof(float),
    .memory = sizeof(struct memory) / sizeof(float),
    .step = step,
};
