// SPDX-License-Identifier: Apache-2.0
// The inertial features and the states of damped springs that hang on the bones, at frequencies of
// soft tissue: linear tissue is a mixture of such springs, so that the network has to learn only
// what is not linear. On each bone with tissue, per frequency, a point mass and a small inertia:
//
//   y'' + 2 zeta w y' + w^2 y = -a      (a: acceleration of the bone's joint; y in the world)
//   r'' + 2 zeta w r' + w^2 r = -alpha  (alpha: angular acceleration)
//
// solved exactly for an input that is constant over a frame, so stable at any rate. The second
// gives what tissue away from the joint feels: to first order a point at x moves by y + r x x.
// Outputs, in the bone's frame: w^2 y (m/s^2), w y' and the same of r (rad/s^2).
#include <math.h>
#include <string.h>

#include "motion/bone_motion.h"
#include "motion/features_inertial.h"
#include "motion/features_sets.h"

#define FREQUENCIES   3
#define SPRING_BONES  14
#define SPRINGS       (SPRING_BONES * FREQUENCIES * 2)
#define INERTIAL      (BONES * INERTIAL_BONE_FLOATS)
#define SPRING_FLOATS 6

static const double hertz[FREQUENCIES] = {3.2, 5.0, 7.5};
static const double damping = 0.2;
// Pelvis, hips, spine, knees, collars, shoulders, elbows: the head, hands and feet hardly move.
static const int spring_bones[SPRING_BONES] = {0, 1, 2, 3, 4, 5, 6, 9, 13, 14, 16, 17, 18, 19};

struct memory {
  struct bone_memory bones;
  float springs[SPRINGS][SPRING_FLOATS]; // in the world: place 3, velocity 3
};

_Static_assert(sizeof(struct memory) ==
                   sizeof(struct bone_memory) + SPRINGS * SPRING_FLOATS * sizeof(float),
               "no padding");

// The exact step of a damped oscillator: (u, u') -> (a u + b u', c u + d u').
struct transition {
  double omega, a, b, c, d;
};

static struct transition transition_of(double frequency, double dt) {
  double omega = 2 * M_PI * frequency, decay = damping * omega;
  double ring = omega * sqrt(1 - damping * damping), fade = exp(-decay * dt);
  double s = sin(ring * dt) / ring, k = cos(ring * dt);
  return (struct transition){omega, fade * (k + decay * s), fade * s, -fade * omega * omega * s,
                             fade * (k - decay * s)};
}

// The rotation of q as a matrix: many vectors are turned by the same one.
static void matrix_of(const double q[4], double m[3][3]) {
  double w = q[0], x = q[1], y = q[2], z = q[3];
  m[0][0] = 1 - 2 * (y * y + z * z), m[0][1] = 2 * (x * y - w * z), m[0][2] = 2 * (x * z + w * y);
  m[1][0] = 2 * (x * y + w * z), m[1][1] = 1 - 2 * (x * x + z * z), m[1][2] = 2 * (y * z - w * x);
  m[2][0] = 2 * (x * z - w * y), m[2][1] = 2 * (y * z + w * x), m[2][2] = 1 - 2 * (x * x + y * y);
}

// One spring driven by -input (world), its state out in the bone's frame.
static void spring_step(const struct transition *t, const double input[3], const double m[3][3],
                        float state[SPRING_FLOATS], float *out) {
  double square = t->omega * t->omega, place[3], velocity[3];
  for (int i = 0; i < 3; i++) {
    double rest = -input[i] / square;
    double u = (double)state[i] - rest, v = (double)state[3 + i];
    place[i] = t->a * u + t->b * v + rest;
    velocity[i] = t->c * u + t->d * v;
    state[i] = (float)place[i];
    state[3 + i] = (float)velocity[i];
  }
  for (int i = 0; i < 3; i++) { // to the bone: by the transpose
    out[i] = (float)(square * (m[0][i] * place[0] + m[1][i] * place[1] + m[2][i] * place[2]));
    out[3 + i] =
        (float)(t->omega * (m[0][i] * velocity[0] + m[1][i] * velocity[1] + m[2][i] * velocity[2]));
  }
}

static void to_world(const double m[3][3], const double v[3], double world[3]) {
  for (int i = 0; i < 3; i++)
    world[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
}

// All springs of the s-th bone that has some.
static void bone_step(const struct transition transitions[FREQUENCIES], size_t s,
                      const struct bone_motion *motion, struct memory *memory, float *out) {
  double m[3][3], linear[3], angular[3];
  matrix_of(motion->rotation, m);
  to_world(m, motion->acceleration, linear);
  to_world(m, motion->angular, angular);
  for (size_t f = 0; f < FREQUENCIES; f++) {
    size_t at = 2 * (f * SPRING_BONES + s);
    float *to = out + at * SPRING_FLOATS;
    spring_step(&transitions[f], linear, m, memory->springs[at], to);
    spring_step(&transitions[f], angular, m, memory->springs[at + 1], to + SPRING_FLOATS);
  }
}

static void step(double fps, const float *pose, const float *trans, const float *betas,
                 float *memory_block, float *out) {
  struct memory memory;
  struct bone_motion motion[BONES];
  struct transition transitions[FREQUENCIES];
  memcpy(&memory, memory_block, sizeof memory);
  bone_motion_step(fps, pose, trans, &memory.bones, motion);
  features_inertial_write(motion, out);
  for (size_t f = 0; f < FREQUENCIES; f++)
    transitions[f] = transition_of(hertz[f], 1 / fps);
  for (size_t s = 0; s < SPRING_BONES; s++)
    bone_step(transitions, s, &motion[spring_bones[s]], &memory, out + INERTIAL);
  memcpy(out + INERTIAL + SPRINGS * SPRING_FLOATS, betas, FEATURES_BETAS * sizeof *out);
  memcpy(memory_block, &memory, sizeof memory);
}

const struct feature_set feature_set_springs = {
    .name = "springs",
    .about = "inertial, and the states of damped springs on the bones at 3.2, 5 and 7.5 Hz",
    .width = INERTIAL + SPRINGS * SPRING_FLOATS + FEATURES_BETAS,
    .memory = sizeof(struct memory) / sizeof(float),
    .step = step,
};
