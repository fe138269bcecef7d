// SPDX-License-Identifier: Apache-2.0
// The motion of a solid in time: velocity Verlet with a step that follows the stiffest element.
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "sim/solid_private.h"

// A step is never cut below this part of the undeformed solid's: a clip with a glitch must not
// stall the simulation, and the cut velocities keep such a frame finite.
#define STEP_SHRINK_MAX 8.0

static void nodes_start(struct solid *solid, float (*target)[4], const float *values) {
  memset(target, 0, solid->nodes * sizeof *target);
  if (!values)
    return;
  for (size_t n = 0; n < solid->nodes; n++)
    for (int c = 0; c < 3; c++)
      target[n][c] = solid->inverse_mass[n] > 0 ? values[3 * n + c] : 0;
}

// The end values of the last interval become the start of the next; new ones are taken over.
// Quaternions q and -q are one rotation: the nearer to the start is kept, so that mixing takes the
// short way.
static void rotations_take(struct solid *solid, const float *rotations) {
  static const float none[4] = {1, 0, 0, 0};
  for (size_t i = 0; i < solid->blocks; i++) {
    struct solid_block *block = &solid->block[i];
    memcpy(block->turn[0], block->turn[1], sizeof block->turn[0]);
    for (int l = 0; rotations && l < SOLID_LANES; l++) {
      size_t t = i * SOLID_LANES + (size_t)l;
      const float *q = t < solid->tets ? rotations + 4 * t : none;
      float dot = 0;
      for (int c = 0; c < 4; c++)
        dot += q[c] * block->turn[0][c][l];
      for (int c = 0; c < 4; c++)
        block->turn[1][c][l] = dot < 0 ? -q[c] : q[c];
    }
  }
}

static void loads_take(struct solid *solid, const float *loads) {
  for (size_t n = 0; n < solid->nodes; n++) {
    memcpy(solid->load[n][0], solid->load[n][1], sizeof solid->load[n][0]);
    for (int c = 0; loads && c < 3; c++)
      solid->load[n][1][c] = loads[3 * n + c];
  }
}

void solid_start(struct solid *solid, const float *displacement, const float *velocity,
                 const float *rotations, const float *loads) {
  for (size_t i = 0; i < solid->blocks; i++)
    for (int l = 0; l < SOLID_LANES; l++) {
      solid->block[i].turn[1][0][l] = 1;
      for (int c = 1; c < 4; c++)
        solid->block[i].turn[1][c][l] = 0;
    }
  memset(solid->load, 0, solid->nodes * sizeof *solid->load);
  for (int twice = 0; twice < 2; twice++) {
    rotations_take(solid, rotations);
    loads_take(solid, loads);
  }
  nodes_start(solid, solid->displacement, displacement);
  nodes_start(solid, solid->velocity, velocity);
  solid_evaluate(solid, 1, 0, 0);
}

// v += dt (f / m + a), a at `time` of the interval; bound nodes stay. A velocity beyond
// SOLID_SPEED_MAX is scaled back to it.
static void kick(struct solid *solid, float dt, float time) {
  const float square_max = (float)(SOLID_SPEED_MAX * SOLID_SPEED_MAX);
  for (size_t n = 0; n < solid->nodes; n++) {
    float inverse = solid->inverse_mass[n];
    if (inverse == 0)
      continue;
    float *v = solid->velocity[n], square = 0;
    for (int c = 0; c < 3; c++) {
      float a0 = solid->load[n][0][c], a1 = solid->load[n][1][c];
      v[c] += dt * (solid->force[n][c] * inverse + a0 + time * (a1 - a0));
      square += v[c] * v[c];
    }
    if (!(square <= square_max)) {
      float scale = isfinite(square) ? sqrtf(square_max / square) : 0;
      for (int c = 0; c < 3; c++)
        v[c] = isfinite(v[c]) ? v[c] * scale : 0;
    }
  }
}

static void drift(struct solid *solid, float dt) {
  for (size_t n = 0; n < solid->nodes; n++)
    for (int c = 0; c < 3; c++)
      solid->displacement[n][c] += dt * solid->velocity[n][c];
}

static double step_limit(const struct solid *solid) {
  double shrink = sqrt(fmax(1, (double)solid->growth));
  shrink = fmin(shrink, STEP_SHRINK_MAX);
  return 2 * solid->courant / (solid->frequency_max * shrink);
}

size_t solid_advance(struct solid *solid, double seconds, const float *rotations,
                     const float *loads) {
  rotations_take(solid, rotations);
  loads_take(solid, loads);
  size_t steps = 0;
  double done = 0;
  while (done < seconds) {
    double left = ceil((seconds - done) / step_limit(solid));
    bool last = left <= 1;
    double dt = last ? seconds - done : (seconds - done) / left;
    float start = (float)(done / seconds);
    done = last ? seconds : done + dt;
    float end = (float)(done / seconds);
    kick(solid, (float)(dt / 2), start);
    drift(solid, (float)dt);
    // The exact answer of the branch to a strain that grows linearly over the step.
    double part = dt / solid->relaxation_time;
    solid_evaluate(solid, end, (float)exp(-part), (float)(-expm1(-part) / part));
    kick(solid, (float)(dt / 2), end);
    steps++;
  }
  return steps;
}
