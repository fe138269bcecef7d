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

// One spring driven by -input (world), its state out in the bone's frame.
static void spring_step(const struct transition *t, const double input[3], const double q[4],
                        float state[SPRING_FLOATS], float *out) {
  double place[3], velocity[3];
  for (int i = 0; i < 3; i++) {
    double rest = -input[i] / (t->omega * t->omega);
    double u = (double)state[i] - rest, v = (double)state[3 + i];
    state[i] = (float)(t->a * u + t->b * v + rest);
    state[3 + i] = (float)(t->c * u + t->d * v);
    place[i] = t->omega * t->omega * (double)state[i];
    velocity[i] = t->omega * (double)state[3 + i];
  }
  bone_from_world(q, place, place);
  bone_from_world(q, velocity, velocity);
  for (int i = 0; i < 3; i++) {
    out[i] = (float)place[i];
    out[3 + i] = (float)velocity[i];
  }
}

static void step(double fps, const float *pose, const float *trans, const float *betas,
                 float *memory_block, float *out) {
  struct memory memory;
  struct bone_motion motion[BONES];
  memcpy(&memory, memory_block, sizeof memory);
  bone_motion_step(fps, pose, trans, &memory.bones, motion);
  features_inertial_write(motion, out);
  size_t at = 0;
  for (size_t f = 0; f < FREQUENCIES; f++) {
    struct transition t = transition_of(hertz[f], 1 / fps);
    for (size_t s = 0; s < SPRING_BONES; s++, at += 2) {
      const struct bone_motion *m = &motion[spring_bones[s]];
      double linear[3], angular[3];
      bone_to_world(m->rotation, m->acceleration, linear);
      bone_to_world(m->rotation, m->angular, angular);
      float *to = out + INERTIAL + at * SPRING_FLOATS;
      spring_step(&t, linear, m->rotation, memory.springs[at], to);
      spring_step(&t, angular, m->rotation, memory.springs[at + 1], to + SPRING_FLOATS);
    }
  }
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
