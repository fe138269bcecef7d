// SPDX-License-Identifier: Apache-2.0
// motion/retimer.c: against clip_resample at many rates, and with timestamps that jitter, drift,
// skip, stop, run backwards or say nothing.
#include "motion/retimer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "motion/generate.h"
#include "motion/rotation.h"

#define RATE 60.0

// The clip of the body running, at any rate.
static struct clip *running(double fps) {
  static const struct generate_settings settings = {1, 1};
  struct clip *clip;
  assert_int_equal(generate_clip(&clip, generate_kind_find("run"), &settings, 4, fps, 0, NULL), 0);
  return clip;
}

static void push(struct retimer *retimer, const struct clip *clip, size_t frame, double timestamp,
                 struct retimer_plan *plan) {
  retimer_push(retimer, clip->pose + frame * CLIP_POSE_SIZE, clip->trans + 3 * frame, timestamp,
               plan);
}

// How far a pose is from another: the largest joint's angle.
static double distance(const float *a, const float *b) {
  double most = 0;
  for (int j = 0; j < 22; j++) {
    double u[3], v[3], p[4], q[4], way[3];
    for (int i = 0; i < 3; i++) {
      u[i] = (double)a[3 * j + i];
      v[i] = (double)b[3 * j + i];
    }
    quaternion_from_vector(u, p);
    quaternion_from_vector(v, q);
    quaternion_conjugate(p, p);
    quaternion_multiply(p, q, q);
    quaternion_to_vector(q, way);
    most = fmax(most, sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2]));
  }
  return most;
}

static void the_models_own_rate_passes_bit_for_bit(void **state) {
  (void)state;
  struct clip *clip = running(60);
  struct retimer retimer;
  retimer_init(&retimer, 60, RATE, false);
  assert_true(retimer_delay(60, RATE) == 0);
  for (size_t t = 0; t < clip->frames; t++) {
    struct retimer_plan plan;
    float pose[CLIP_POSE_SIZE], trans[3];
    push(&retimer, clip, t, (double)t / 60, &plan);
    assert_int_equal(plan.steps, 1);
    assert_int_equal(plan.restart, t == 0);
    assert_false(plan.gap);
    assert_true(plan.mix == 1);
    retimer_frame(&retimer, 0, pose, trans);
    assert_memory_equal(pose, clip->pose + t * CLIP_POSE_SIZE, sizeof pose);
    assert_memory_equal(trans, clip->trans + 3 * t, sizeof trans);
  }
  clip_free(clip);
}

// The grid's poses are those of the motion, and a client's result is of its own time less the
// delay.
static void other_rates_meet_the_grid(void **state) {
  (void)state;
  static const double rates[] = {1, 10, 24, 25, 30, 50, 59.94, 60.06, 72, 90, 100, 120, 240, 1000};
  struct clip *fine = running(960); // 16 for every frame of the grid
  for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
    struct clip *clip = running(rates[r]);
    struct retimer retimer;
    retimer_init(&retimer, rates[r], RATE, false);
    double delay = retimer_delay(rates[r], RATE);
    assert_true(delay == (fmod(60, rates[r]) == 0 ? 0 : 1 / RATE));
    size_t stepped = 0;
    double worst = 0;
    for (size_t t = 0; t < clip->frames; t++) {
      struct retimer_plan plan;
      push(&retimer, clip, t, (double)t / rates[r], &plan);
      for (uint32_t step = 0; step < plan.steps; step++, stepped++) {
        float pose[CLIP_POSE_SIZE], trans[3];
        retimer_frame(&retimer, step, pose, trans);
        if (stepped * 16 < fine->frames)
          worst = fmax(worst, distance(pose, fine->pose + stepped * 16 * CLIP_POSE_SIZE));
      }
      assert_true(plan.mix >= 0 && plan.mix <= 1);
      // The result is of model time stepped - 1 (newest) and stepped - 2, mixed.
      double result = ((double)stepped - 2 + (double)plan.mix) / RATE;
      if (t)
        assert_true(fabs(result - ((double)t / rates[r] - delay)) < 1e-6);
    }
    // Linear between poses: the error goes with the square of the period. A runner's leg turns with
    // some 200 rad/s^2.
    double period = 1 / rates[r];
    if (rates[r] >= 24)
      assert_true(worst < 1e-4 + 400 * period * period / 8);
    clip_free(clip);
  }
  clip_free(fine);
}

// Rotations on the grid are those that clip_resample, which sees the whole clip, puts there.
static void rotations_are_those_of_a_clip_resampled(void **state) {
  (void)state;
  static const double rates[] = {24, 30, 50, 59.94, 90, 120};
  for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
    struct clip *clip = running(rates[r]), *offline;
    assert_int_equal(clip_resample(clip, RATE, &offline, NULL), 0);
    struct retimer retimer;
    retimer_init(&retimer, rates[r], RATE, false);
    size_t stepped = 0;
    for (size_t t = 0; t < clip->frames; t++) {
      struct retimer_plan plan;
      push(&retimer, clip, t, (double)t / rates[r], &plan);
      for (uint32_t step = 0; step < plan.steps; step++, stepped++) {
        float pose[CLIP_POSE_SIZE], trans[3];
        retimer_frame(&retimer, step, pose, trans);
        assert_true(distance(pose, offline->pose + stepped * CLIP_POSE_SIZE) < 1e-5);
      }
    }
    assert_int_equal(stepped, offline->frames);
    clip_free(offline);
    clip_free(clip);
  }
}

// As in clip_resample, which copies such a clip unchanged.
static void a_rate_next_to_the_models_is_the_models(void **state) {
  (void)state;
  static const double rates[] = {59.995, 60.0001, 60.005};
  struct clip *clip = running(60);
  for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
    struct retimer retimer;
    retimer_init(&retimer, rates[r], RATE, false);
    assert_true(retimer_delay(rates[r], RATE) == 0);
    for (size_t t = 0; t < clip->frames; t++) {
      struct retimer_plan plan;
      float pose[CLIP_POSE_SIZE], trans[3];
      push(&retimer, clip, t, (double)t / rates[r], &plan);
      assert_int_equal(plan.steps, 1);
      assert_true(plan.mix == 1);
      retimer_frame(&retimer, 0, pose, trans);
      assert_memory_equal(pose, clip->pose + t * CLIP_POSE_SIZE, sizeof pose);
    }
  }
  assert_true(retimer_delay(30.001, RATE) == 0);
  assert_true(retimer_delay(59.94, RATE) > 0 && retimer_delay(29.97, RATE) > 0);
  clip_free(clip);
}

static void jitter_and_drift_change_nothing(void **state) {
  (void)state;
  struct clip *clip = running(60);
  struct random_state random;
  random_init(&random, 1);
  struct retimer retimer;
  retimer_init(&retimer, 60, RATE, false);
  for (size_t t = 0; t < clip->frames; t++) {
    struct retimer_plan plan;
    // A clock that is 0.2% fast and stamps up to a third of a period off.
    double stamp = 1e6 + 1.002 * (double)t / 60 + (random_uniform(&random) - 0.5) * 0.66 / 60;
    push(&retimer, clip, t, stamp, &plan);
    assert_int_equal(plan.steps, 1);
    assert_false(plan.gap);
  }
  clip_free(clip);
}

// Whatever the rate, stamps within a quarter of a period of their places make the same poses, to
// the bit.
static void jitter_makes_the_same_poses_at_any_rate(void **state) {
  (void)state;
  struct random_state random;
  random_init(&random, 2);
  for (int round = 0; round < 12; round++) {
    double fps = 10 + 190 * random_uniform(&random);
    struct clip *clip = running(fps);
    struct retimer regular, jittery;
    retimer_init(&regular, fps, RATE, false);
    retimer_init(&jittery, fps, RATE, false);
    for (size_t t = 0; t < clip->frames; t++) {
      struct retimer_plan one, other;
      double stamp = ((double)t + (random_uniform(&random) - 0.5) * 0.48) / fps;
      push(&regular, clip, t, (double)t / fps, &one);
      push(&jittery, clip, t, stamp, &other);
      assert_int_equal(one.steps, other.steps);
      assert_int_equal(one.restart, other.restart);
      assert_false(other.gap);
      assert_true(one.mix == other.mix);
      for (uint32_t step = 0; step < one.steps; step++) {
        float pose[2][CLIP_POSE_SIZE], trans[2][3];
        retimer_frame(&regular, step, pose[0], trans[0]);
        retimer_frame(&jittery, step, pose[1], trans[1]);
        assert_memory_equal(pose[0], pose[1], sizeof pose[0]);
        assert_memory_equal(trans[0], trans[1], sizeof trans[0]);
      }
    }
    clip_free(clip);
  }
}

// Clocks that tick once in several poses give some timestamps twice. Model time goes on with true
// time nevertheless.
static void coarse_clocks_keep_time(void **state) {
  (void)state;
  static const struct {
    double fps, tick;
  } clocks[] = {{60, 1 / 64.0},  {72, 1 / 64.0},  {90, 1 / 64.0},  {100, 1 / 64.0},
                {120, 1 / 64.0}, {144, 1 / 64.0}, {240, 1 / 64.0}, {75, 0.015},
                {1000, 0.01},    {1000, 0.001},   {24, 0.1},       {50, 0.04}};
  static const float pose[CLIP_POSE_SIZE], trans[3];
  for (size_t c = 0; c < sizeof clocks / sizeof clocks[0]; c++) {
    struct retimer retimer;
    double fps = clocks[c].fps, tick = clocks[c].tick, most = 0;
    uint64_t steps = 0;
    retimer_init(&retimer, fps, RATE, false);
    for (uint32_t t = 0; t < 60 * fps; t++) {
      struct retimer_plan plan;
      retimer_push(&retimer, pose, trans, floor(t / fps / tick) * tick, &plan);
      assert_false(plan.gap);
      steps += plan.steps;
      most = fmax(most, fabs(((double)(steps - 1) + retimer.phase) / RATE - t / fps));
    }
    assert_true(most < 2 * fmax(tick, 1 / fps));
  }
}

static void lost_poses_are_filled_in(void **state) {
  (void)state;
  struct clip *clip = running(60);
  struct retimer retimer;
  retimer_init(&retimer, 60, RATE, false);
  size_t stepped = 0;
  for (size_t t = 0; t < clip->frames; t++) {
    if (t % 20 >= 15) // five of twenty are lost
      continue;
    struct retimer_plan plan;
    push(&retimer, clip, t, (double)t / 60, &plan);
    assert_int_equal(plan.steps, t % 20 == 0 && t ? 6 : 1);
    assert_false(plan.gap);
    for (uint32_t step = 0; step < plan.steps; step++, stepped++) {
      float pose[CLIP_POSE_SIZE], trans[3];
      retimer_frame(&retimer, step, pose, trans);
      assert_true(distance(pose, clip->pose + stepped * CLIP_POSE_SIZE) < 0.6);
    }
    assert_int_equal(stepped, t + 1);
  }
  clip_free(clip);
}

static void a_break_takes_the_motion_up_anew(void **state) {
  (void)state;
  struct clip *clip = running(60);
  struct retimer retimer;
  retimer_init(&retimer, 60, RATE, false);
  static const struct {
    double stamp;
    bool gap;
  } stamps[] = {{5, false},     {5 + 1.0 / 60, false}, {5.4, true}, {5.4 + 1.0 / 60, false},
                {4, true},      {4 + 1.0 / 60, false}, {4, true},   {1e300, true},
                {-1e300, true}, {-1e300, false}};
  for (size_t t = 0; t < sizeof stamps / sizeof stamps[0]; t++) {
    struct retimer_plan plan;
    push(&retimer, clip, t, stamps[t].stamp, &plan);
    assert_int_equal(plan.gap, stamps[t].gap);
    assert_int_equal(plan.restart, t == 0 || stamps[t].gap);
    assert_int_equal(plan.steps, 1);
    float pose[CLIP_POSE_SIZE], trans[3];
    retimer_frame(&retimer, 0, pose, trans);
    assert_memory_equal(pose, clip->pose + t * CLIP_POSE_SIZE, sizeof pose);
  }
  clip_free(clip);
}

static void timestamps_that_stand_still_are_one_period_apart(void **state) {
  (void)state;
  struct clip *clip = running(30);
  struct retimer retimer;
  retimer_init(&retimer, 30, RATE, false);
  for (size_t t = 0; t < clip->frames; t++) {
    struct retimer_plan plan;
    push(&retimer, clip, t, 0, &plan);
    assert_int_equal(plan.steps, t ? 2 : 1);
    assert_false(plan.gap);
  }
  clip_free(clip);
}

static void timestamps_that_stood_still_may_move_on(void **state) {
  (void)state;
  static const float pose[CLIP_POSE_SIZE], trans[3];
  struct retimer retimer;
  retimer_init(&retimer, 60, RATE, false);
  for (size_t t = 0; t < 240; t++) {
    struct retimer_plan plan;
    retimer_push(&retimer, pose, trans, t < 120 ? 0 : (double)(t - 119) / 60, &plan);
    assert_int_equal(plan.steps, 1);
    assert_false(plan.gap);
  }
  struct retimer_plan plan; // from then on they count again
  retimer_push(&retimer, pose, trans, (240 - 119 + 4) / 60.0, &plan);
  assert_int_equal(plan.steps, 5);
}

// Between two poses, to rounding: no further from either than they are from each other.
static void assert_between(const float *a, const float *b, const float *pose) {
  double apart = distance(a, b);
  assert_true(distance(a, pose) <= apart + 1e-5 && distance(b, pose) <= apart + 1e-5);
}

static double any_stamp(struct random_state *random, double now, double period) {
  static const double odd[] = {0, -1e308, 1e308, 1e-320, 1e17, -5};
  double kind = random_uniform(random), some = random_uniform(random);
  if (kind < 0.7)
    return now + period * (0.5 + some);
  if (kind < 0.8)
    return now;
  if (kind < 0.9)
    return now + some;
  if (kind < 0.97)
    return now - some * period;
  return odd[(size_t)(some * 6)];
}

// What must hold whatever a client says of its times.
static void any_timestamps_are_survived(void **state) {
  (void)state;
  struct clip *clip = running(30);
  struct random_state random;
  random_init(&random, 3);
  for (int round = 0; round < 60; round++) {
    double fps = pow(1000, random_uniform(&random)), now = 0;
    double longest = fmax(RETIMER_GAP_SECONDS, 1.5 / fps);
    struct retimer retimer;
    retimer_init(&retimer, fps, RATE, round % 2);
    for (int t = 0; t < 200; t++) {
      size_t frame = (size_t)(random_uniform(&random) * (double)clip->frames);
      struct retimer_plan plan;
      now = any_stamp(&random, now, 1 / fps);
      push(&retimer, clip, frame, now, &plan);
      assert_true(plan.steps <= RATE * (2 * longest + 1 / fps) + 1);
      assert_true(plan.mix >= 0 && plan.mix <= 1);
      assert_true(retimer.phase >= 0 && retimer.phase < 1);
      assert_true(!plan.restart || plan.steps == 1);
      assert_true(t == 0 ? plan.restart && !plan.gap : plan.restart == plan.gap);
      for (uint32_t step = 0; step < plan.steps; step++) {
        float pose[CLIP_POSE_SIZE], trans[3];
        retimer_frame(&retimer, step, pose, trans);
        if (!plan.restart)
          assert_between(retimer.pose[0], retimer.pose[1], pose);
      }
    }
  }
  clip_free(clip);
}

static void a_pose_too_early_replaces_the_last(void **state) {
  (void)state;
  struct clip *clip = running(60);
  struct retimer retimer;
  struct retimer_plan plan;
  retimer_init(&retimer, 60, RATE, false);
  push(&retimer, clip, 0, 0, &plan);
  push(&retimer, clip, 1, 1.0 / 60, &plan);
  push(&retimer, clip, 2, 1.2 / 60, &plan);
  assert_int_equal(plan.steps, 0);
  assert_false(plan.restart);
  push(&retimer, clip, 3, 2.0 / 60, &plan);
  assert_int_equal(plan.steps, 1);
  clip_free(clip);
}

static void a_flip_is_held_and_a_lasting_turn_accepted(void **state) {
  (void)state;
  struct clip *clip = running(60);
  float *flipped = clip->pose + 30 * CLIP_POSE_SIZE + 3 * 16;
  flipped[1] += 3;
  for (size_t t = 60; t < clip->frames; t++) // from here on half a turn away
    clip->pose[t * CLIP_POSE_SIZE + 3 * 20] += 3;
  struct retimer retimer;
  retimer_init(&retimer, 60, RATE, true);
  uint32_t held = 0;
  for (size_t t = 0; t < clip->frames; t++) {
    struct retimer_plan plan;
    float pose[CLIP_POSE_SIZE], trans[3];
    push(&retimer, clip, t, (double)t / 60, &plan);
    retimer_frame(&retimer, 0, pose, trans);
    held += plan.held;
    if (t == 30)
      assert_memory_equal(pose + 48, clip->pose + 29 * CLIP_POSE_SIZE + 48, 3 * sizeof *pose);
    else if (t < 60 || t > 68)
      assert_memory_equal(pose, clip->pose + t * CLIP_POSE_SIZE, sizeof pose);
  }
  assert_true(held >= 7 && held <= 9);
  clip_free(clip);
}

static void a_copy_goes_on_as_the_original(void **state) {
  (void)state;
  struct clip *clip = running(50);
  struct retimer retimer, copy;
  retimer_init(&retimer, 50, RATE, true);
  for (size_t t = 0; t < clip->frames; t++) {
    struct retimer_plan plan, again;
    if (t == 40)
      copy = retimer;
    push(&retimer, clip, t, (double)t / 50, &plan);
    if (t < 40)
      continue;
    push(&copy, clip, t, (double)t / 50, &again);
    assert_int_equal(plan.steps, again.steps);
    assert_memory_equal(&retimer, &copy, sizeof copy);
  }
  clip_free(clip);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_models_own_rate_passes_bit_for_bit),
      cmocka_unit_test(other_rates_meet_the_grid),
      cmocka_unit_test(rotations_are_those_of_a_clip_resampled),
      cmocka_unit_test(a_rate_next_to_the_models_is_the_models),
      cmocka_unit_test(jitter_and_drift_change_nothing),
      cmocka_unit_test(jitter_makes_the_same_poses_at_any_rate),
      cmocka_unit_test(coarse_clocks_keep_time),
      cmocka_unit_test(lost_poses_are_filled_in),
      cmocka_unit_test(a_break_takes_the_motion_up_anew),
      cmocka_unit_test(timestamps_that_stand_still_are_one_period_apart),
      cmocka_unit_test(timestamps_that_stood_still_may_move_on),
      cmocka_unit_test(any_timestamps_are_survived),
      cmocka_unit_test(a_pose_too_early_replaces_the_last),
      cmocka_unit_test(a_flip_is_held_and_a_lasting_turn_accepted),
      cmocka_unit_test(a_copy_goes_on_as_the_original),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
