// SPDX-License-Identifier: Apache-2.0
#include "motion/retimer.h"

#include <math.h>
#include <string.h>

#include "motion/deglitch.h"
#include "motion/rotation.h"

#define JOINTS (CLIP_POSE_SIZE / 3)
// Share of a timestamp's deviation by which the timeline follows it. It follows clocks that are up
// to 1.5% off; following faster, it would swing with clocks that tick coarsely.
#define DRIFT 0.03
#define TINY  1e-9 // model frames: rounding of times that fall on the grid
// As in clip_resample: rates this near to each other, relatively, are the same.
#define SAME_RATE 1e-4

static bool is_whole(double x) {
  return fabs(x - round(x)) <= SAME_RATE * x;
}

void retimer_init(struct retimer *retimer, double fps, double rate, bool hold) {
  double ratio = rate / fps;
  *retimer = (struct retimer){.ratio = is_whole(ratio) && ratio > 0.5 ? round(ratio) : ratio,
                              .period = 1 / fps,
                              .hold = hold};
}

void retimer_reset(struct retimer *retimer) {
  *retimer =
      (struct retimer){.ratio = retimer->ratio, .period = retimer->period, .hold = retimer->hold};
}

static bool on_grid(double ratio) {
  return ratio > 0.5 && is_whole(ratio);
}

double retimer_delay(double fps, double rate) {
  return on_grid(rate / fps) ? 0 : 1 / rate;
}

// Periods that have passed since the last pose, or -1 for a break.
static double periods_passed(struct retimer *retimer, double timestamp) {
  double elapsed = timestamp - retimer->last;
  double limit = fmax(RETIMER_GAP_SECONDS, 1.5 * retimer->period);
  bool silent = retimer->still > limit;
  retimer->last = timestamp;
  retimer->clock += retimer->period;
  if (elapsed == 0) {
    retimer->still += retimer->period;
    return 1;
  }
  retimer->still = 0;
  if (silent)
    retimer->clock = timestamp;
  double behind = timestamp - retimer->clock;
  if (elapsed < 0 || elapsed > limit || fabs(behind) > 2 * limit)
    return -1;
  double passed = fmax(0, 1 + round(behind / retimer->period));
  retimer->clock += (passed - 1) * retimer->period;
  retimer->clock += DRIFT * (timestamp - retimer->clock);
  return passed;
}

static double angle_between(const float a[3], const float b[3]) {
  double u[3] = {(double)a[0], (double)a[1], (double)a[2]};
  double v[3] = {(double)b[0], (double)b[1], (double)b[2]}, p[4], q[4], way[3];
  quaternion_from_vector(u, p);
  quaternion_from_vector(v, q);
  quaternion_conjugate(p, p);
  quaternion_multiply(p, q, q);
  quaternion_to_vector(q, way);
  return sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2]);
}

// Keeps joints of the newest pose where they were while they cannot have got where they are said to
// be. Returns how many.
static uint32_t hold(struct retimer *retimer, double seconds) {
  uint32_t held = 0;
  for (size_t j = 0; j < JOINTS; j++) {
    const float *before = retimer->pose[0] + 3 * j;
    float *now = retimer->pose[1] + 3 * j;
    retimer->good_age[j] += (float)seconds;
    if (angle_between(before, now) <= DEGLITCH_SPEED * (double)retimer->good_age[j]) {
      retimer->good_age[j] = 0;
      continue;
    }
    memcpy(now, before, 3 * sizeof *now);
    held++;
  }
  return held;
}

static void start(struct retimer *retimer, double timestamp, struct retimer_plan *plan) {
  retimer->any = 1;
  retimer->clock = retimer->last = timestamp;
  retimer->phase = retimer->from = retimer->span = 0;
  memset(retimer->good_age, 0, sizeof retimer->good_age);
  plan->steps = 1;
  plan->restart = true;
  plan->mix = 1;
}

void retimer_push(struct retimer *retimer, const float *pose, const float *trans, double timestamp,
                  struct retimer_plan *plan) {
  *plan = (struct retimer_plan){.mix = 1};
  memcpy(retimer->pose[0], retimer->pose[1], sizeof retimer->pose[0]);
  memcpy(retimer->trans[0], retimer->trans[1], sizeof retimer->trans[0]);
  memcpy(retimer->pose[1], pose, sizeof retimer->pose[1]);
  memcpy(retimer->trans[1], trans, sizeof retimer->trans[1]);
  if (!retimer->any) {
    start(retimer, timestamp, plan);
    return;
  }
  double passed = periods_passed(retimer, timestamp);
  if (passed < 0) {
    start(retimer, timestamp, plan);
    plan->gap = true;
    return;
  }
  if (retimer->hold)
    plan->held = hold(retimer, fmax(passed, 1) * retimer->period);
  retimer->from = retimer->phase;
  retimer->span = passed * retimer->ratio;
  double reached = retimer->phase + retimer->span;
  plan->steps = (uint32_t)floor(reached + TINY);
  retimer->phase = fmax(0, reached - plan->steps);
  if (!on_grid(retimer->ratio))
    plan->mix = (float)retimer->phase;
}

void retimer_frame(const struct retimer *retimer, uint32_t step, float *pose, float *trans) {
  double at = retimer->span > 0 ? (step + 1 - retimer->from) / retimer->span : 1;
  if (at > 1 - TINY) {
    memcpy(pose, retimer->pose[1], sizeof retimer->pose[1]);
    memcpy(trans, retimer->trans[1], sizeof retimer->trans[1]);
    return;
  }
  for (size_t j = 0; j < JOINTS; j++) {
    double a[3], b[3], p[4], q[4], between[3];
    for (size_t i = 0; i < 3; i++) {
      a[i] = (double)retimer->pose[0][3 * j + i];
      b[i] = (double)retimer->pose[1][3 * j + i];
    }
    quaternion_from_vector(a, p);
    quaternion_from_vector(b, q);
    quaternion_slerp(p, q, at, q);
    rotation_vector_near(q, a, between);
    for (size_t i = 0; i < 3; i++)
      pose[3 * j + i] = (float)between[i];
  }
  for (size_t i = 0; i < 3; i++)
    trans[i] = (float)((double)retimer->trans[0][i] +
                       at * ((double)retimer->trans[1][i] - (double)retimer->trans[0][i]));
}
