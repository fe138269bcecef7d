// SPDX-License-Identifier: Apache-2.0
#include "motion/bone_motion.h"

#include <math.h>
#include <string.h>

#include "motion/rotation.h"

#define GRAVITY          9.81
#define ACCELERATION_MAX 300.0
#define VELOCITY_MAX     30.0
#define ANGULAR_MAX      2000.0

// SMPL's tree, and each joint's place relative to its parent's in the rest pose (y up, facing +z),
// metres, of an adult of average build.
static const struct {
  int parent;
  double offset[3];
} bones[BONES] = {
    {-1, {0, 0, 0}}, // pelvis
    {0, {0.06, -0.09, -0.01}},
    {0, {-0.06, -0.09, -0.01}}, // hips
    {0, {0, 0.12, -0.03}},      // spine1
    {1, {0.04, -0.38, 0}},
    {2, {-0.04, -0.38, 0}}, // knees
    {3, {0, 0.14, 0.02}},   // spine2
    {4, {-0.01, -0.42, -0.04}},
    {5, {0.01, -0.42, -0.04}}, // ankles
    {6, {0, 0.06, 0}},         // spine3
    {7, {0.04, -0.06, 0.12}},
    {8, {-0.04, -0.06, 0.12}}, // feet
    {9, {0, 0.21, -0.03}},     // neck
    {9, {0.08, 0.11, -0.02}},
    {9, {-0.08, 0.11, -0.02}}, // collars
    {12, {0, 0.09, 0.05}},     // head
    {13, {0.12, 0.04, -0.02}},
    {14, {-0.12, 0.04, -0.02}}, // shoulders
    {16, {0.26, -0.01, -0.02}},
    {17, {-0.26, -0.01, -0.02}}, // elbows
    {18, {0.25, 0.01, 0}},
    {19, {-0.25, 0.01, 0}}, // wrists
};

// v + 2 w (u x v) + 2 u x (u x v) for q = (w, u)
static void rotate(double w, const double u[3], const double v[3], double out[3]) {
  double a[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
  double b[3] = {u[1] * a[2] - u[2] * a[1], u[2] * a[0] - u[0] * a[2], u[0] * a[1] - u[1] * a[0]};
  for (int i = 0; i < 3; i++)
    out[i] = v[i] + 2 * (w * a[i] + b[i]);
}

void bone_to_world(const double q[4], const double v[3], double world[3]) {
  rotate(q[0], q + 1, v, world);
}

void bone_from_world(const double q[4], const double v[3], double bone[3]) {
  rotate(-q[0], q + 1, v, bone);
}

// Each bone's rotation to the world and its joint's place relative to the root's translation.
static void place(const float *pose, double rotation[BONES][4], float place[BONES][3]) {
  double position[BONES][3];
  for (int b = 0; b < BONES; b++) {
    const double vector[3] = {(double)pose[3 * b], (double)pose[3 * b + 1],
                              (double)pose[3 * b + 2]};
    int parent = bones[b].parent;
    quaternion_from_vector(vector, rotation[b]);
    memset(position[b], 0, sizeof position[b]);
    if (parent >= 0) {
      quaternion_multiply(rotation[parent], rotation[b], rotation[b]);
      bone_to_world(rotation[parent], bones[b].offset, position[b]);
      for (int i = 0; i < 3; i++)
        position[b][i] += position[parent][i];
    }
    for (int i = 0; i < 3; i++)
      place[b][i] = (float)position[b][i];
  }
}

static void cut(double v[3], double most) {
  double norm = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  if (norm > most)
    for (int i = 0; i < 3; i++)
      v[i] *= most / norm;
}

// fps log(before^T after), cut
static void angular_velocity(double fps, const float before[4], const double after[4],
                             double velocity[3]) {
  const double inverse[4] = {(double)before[0], -(double)before[1], -(double)before[2],
                             -(double)before[3]};
  double relative[4];
  quaternion_multiply(inverse, after, relative);
  quaternion_to_vector(relative, velocity);
  for (int i = 0; i < 3; i++)
    velocity[i] *= fps;
  cut(velocity, VELOCITY_MAX);
}

// `now` is the bone's place in this frame, `root` the acceleration of the root's translation.
static void measure(double fps, const struct bone_memory *memory, const float now[3],
                    const double root[3], int bone, struct bone_motion *m) {
  for (int i = 0; i < 3; i++)
    m->acceleration[i] = m->velocity[i] = m->angular[i] = 0;
  if (memory->seen >= 1)
    angular_velocity(fps, memory->rotation[bone], m->rotation, m->velocity);
  if (memory->seen >= 2) {
    const float *before = memory->place[0][bone], *earlier = memory->place[1][bone];
    double a[3];
    for (int i = 0; i < 3; i++) {
      m->angular[i] = fps * (m->velocity[i] - (double)memory->velocity[bone][i]);
      a[i] = root[i] + fps * fps * ((double)now[i] - 2 * (double)before[i] + (double)earlier[i]);
    }
    cut(m->angular, ANGULAR_MAX);
    cut(a, ACCELERATION_MAX);
    bone_from_world(m->rotation, a, m->acceleration);
  }
  static const double up[3] = {0, 0, GRAVITY};
  bone_from_world(m->rotation, up, m->force);
  for (int i = 0; i < 3; i++)
    m->force[i] += m->acceleration[i];
}

void bone_motion_step(double fps, const float *pose, const float *trans, struct bone_memory *memory,
                      struct bone_motion *motion) {
  double rotation[BONES][4], root[3];
  float now[BONES][3];
  place(pose, rotation, now);
  for (int i = 0; i < 3; i++)
    root[i] = fps * fps *
              (((double)trans[i] - (double)memory->trans[0][i]) -
               ((double)memory->trans[0][i] - (double)memory->trans[1][i]));
  for (int b = 0; b < BONES; b++) {
    // Rounded as it is remembered: a bone at rest has no velocity.
    for (int i = 0; i < 4; i++)
      motion[b].rotation[i] = (double)(float)rotation[b][i];
    measure(fps, memory, now[b], root, b, &motion[b]);
    for (int i = 0; i < 4; i++)
      memory->rotation[b][i] = (float)rotation[b][i];
    for (int i = 0; i < 3; i++)
      memory->velocity[b][i] = (float)motion[b].velocity[i];
  }
  memcpy(memory->place[1], memory->place[0], sizeof memory->place[0]);
  memcpy(memory->place[0], now, sizeof now);
  memcpy(memory->trans[1], memory->trans[0], sizeof memory->trans[0]);
  memcpy(memory->trans[0], trans, sizeof memory->trans[0]);
  memory->seen = memory->seen < 1 ? 1 : 2;
}
