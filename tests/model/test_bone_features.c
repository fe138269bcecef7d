// SPDX-License-Identifier: Apache-2.0
// motion/features_inertial.c and features_springs.c: motions with known answers, independence of
// heading and place, bounded answers to glitches.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "motion/features.h"
#include "motion/rotation.h"

#define FPS 60.0

static const char *const names[] = {"inertial", "springs"};
static const float betas[FEATURES_BETAS] = {1, -2};

// A set with its memory and its last output.
struct run {
  const struct feature_set *set;
  float *memory, *out;
};

static struct run run_new(const char *name) {
  const struct feature_set *set = feature_set_find(name);
  assert_non_null(set);
  assert_true(set->width <= FEATURES_WIDTH_MAX);
  return (struct run){set, calloc(set->memory, sizeof(float)), calloc(set->width, sizeof(float))};
}

static void run_step(struct run *run, const float *pose, const float *trans) {
  run->set->step(FPS, pose, trans, betas, run->memory, run->out);
}

static void run_free(struct run *run) {
  free(run->memory);
  free(run->out);
}

// A standing body: the rest pose is y-up, the world z-up.
static void stand(float pose[66], float trans[3]) {
  memset(pose, 0, 66 * sizeof *pose);
  memset(trans, 0, 3 * sizeof *trans);
  pose[0] = (float)M_PI_2;
}

static void at_rest_every_bone_feels_gravity_alone(void **state) {
  (void)state;
  for (int n = 0; n < 2; n++) {
    struct run run = run_new(names[n]);
    float pose[66], trans[3];
    stand(pose, trans);
    for (int t = 0; t < 5; t++)
      run_step(&run, pose, trans);
    for (int bone = 0; bone < 22; bone++) {
      const float *f = run.out + 9 * bone;
      assert_true(fabsf(f[0]) < 1e-4f && fabsf(f[1] - 9.81f) < 1e-4f && fabsf(f[2]) < 1e-4f);
      for (int i = 3; i < 9; i++)
        assert_true(f[i] == 0);
    }
    assert_memory_equal(run.out + run.set->width - FEATURES_BETAS, betas, sizeof betas);
    for (size_t i = 198; i < run.set->width - FEATURES_BETAS; i++)
      assert_true(run.out[i] == 0);
    run_free(&run);
  }
}

static void in_free_fall_no_bone_feels_anything(void **state) {
  (void)state;
  struct run run = run_new("inertial");
  float pose[66], trans[3];
  stand(pose, trans);
  pose[3 * 16 + 2] = 0.7f; // a bent arm
  for (int t = 0; t < 20; t++) {
    double s = t / FPS;
    trans[0] = (float)(2 * s);
    trans[2] = (float)(3 * s - 0.5 * 9.81 * s * s);
    run_step(&run, pose, trans);
  }
  for (int bone = 0; bone < 22; bone++)
    for (int i = 0; i < 3; i++)
      assert_true(fabsf(run.out[9 * bone + i]) < 2e-3f);
  run_free(&run);
}

static void a_turning_body_has_its_angular_velocity_and_centripetal_acceleration(void **state) {
  (void)state;
  const double omega = 3; // about the vertical, through the pelvis
  struct run run = run_new("inertial");
  float pose[66], trans[3];
  for (int t = 0; t < 10; t++) {
    double upright[4], turn[4], vector[3] = {M_PI_2, 0, 0}, axis[3] = {0, 0, omega * t / FPS};
    stand(pose, trans);
    quaternion_from_vector(vector, upright);
    quaternion_from_vector(axis, turn);
    quaternion_multiply(turn, upright, upright);
    quaternion_to_vector(upright, vector);
    for (int i = 0; i < 3; i++)
      pose[i] = (float)vector[i];
    run_step(&run, pose, trans);
  }
  for (int bone = 0; bone < 22; bone++) {
    assert_true(fabsf(run.out[9 * bone + 4] - (float)omega) < 1e-3f); // the bones' y is up
    assert_true(fabsf(run.out[9 * bone + 6]) < 0.05f);
  }
  // Left wrist: towards the axis, omega^2 times its distance. Backward differences lag by a frame.
  const float *wrist = run.out + 9 * 20;
  double distance = 0.08 + 0.12 + 0.26 + 0.25;
  assert_true(fabs(wrist[0] + omega * omega * distance) < 0.05);
  run_free(&run);
}

// A lively random motion, seen again turned about the vertical and moved.
static void heading_and_place_do_not_matter(void **state) {
  (void)state;
  for (int n = 0; n < 2; n++) {
    struct run here = run_new(names[n]), there = run_new(names[n]);
    double turn[4], about[3] = {0, 0, 2.1};
    quaternion_from_vector(about, turn);
    for (int t = 0; t < 60; t++) {
      float pose[66], trans[3], turned[66], moved[3];
      stand(pose, trans);
      for (int i = 0; i < 66; i++)
        pose[i] += 0.5f * sinf(0.1f * (float)t * (1 + 0.05f * (float)i) + (float)i);
      for (int i = 0; i < 3; i++)
        trans[i] = 0.2f * sinf(0.2f * (float)t + (float)i);
      memcpy(turned, pose, sizeof turned);
      double root[3] = {pose[0], pose[1], pose[2]}, q[4];
      quaternion_from_vector(root, q);
      quaternion_multiply(turn, q, q);
      quaternion_to_vector(q, root);
      for (int i = 0; i < 3; i++)
        turned[i] = (float)root[i];
      moved[0] = cosf(2.1f) * trans[0] - sinf(2.1f) * trans[1] + 2;
      moved[1] = sinf(2.1f) * trans[0] + cosf(2.1f) * trans[1] - 1;
      moved[2] = trans[2] + 0.5f;
      run_step(&here, pose, trans);
      run_step(&there, turned, moved);
      for (size_t i = 0; i < here.set->width; i++)
        assert_true(fabsf(here.out[i] - there.out[i]) < 0.03f);
    }
    run_free(&here);
    run_free(&there);
  }
}

// Shaken up and down at 5 Hz, the springs of 5 Hz ring with amplitude a / (2 zeta w^2), which is
// a / 0.4 in the units of the output.
static void springs_resonate_at_their_frequency(void **state) {
  (void)state;
  struct run run = run_new("springs");
  float pose[66], trans[3], most[3] = {0};
  const double w = 2 * M_PI * 5, amplitude = 0.01;
  for (int t = 0; t < 240; t++) {
    stand(pose, trans);
    trans[2] = (float)(amplitude * sin(w * t / FPS));
    run_step(&run, pose, trans);
    if (t >= 180)
      for (int f = 0; f < 3; f++) {
        float y = fabsf(run.out[198 + f * 14 * 12 + 1]);
        most[f] = y > most[f] ? y : most[f];
      }
  }
  double expected = amplitude * w * w / 0.4;
  assert_true(fabs(most[1] / expected - 1) < 0.1); // the input is held over a frame
  assert_true(most[0] < 0.6f * most[1] && most[2] < 0.8f * most[1]);
  run_free(&run);
}

static void a_glitch_gives_bounded_features(void **state) {
  (void)state;
  for (int n = 0; n < 2; n++) {
    struct run run = run_new(names[n]);
    struct random_state random;
    random_init(&random, 4);
    for (int t = 0; t < 400; t++) {
      float pose[66], trans[3];
      for (int i = 0; i < 66; i++)
        pose[i] = (float)(3 * random_normal(&random));
      for (int i = 0; i < 3; i++)
        trans[i] = (float)(1e4 * random_normal(&random));
      run_step(&run, pose, trans);
      for (size_t i = 0; i < run.set->width; i++)
        assert_true(fabsf(run.out[i]) < 2e4f);
    }
    run_free(&run);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(at_rest_every_bone_feels_gravity_alone),
      cmocka_unit_test(in_free_fall_no_bone_feels_anything),
      cmocka_unit_test(a_turning_body_has_its_angular_velocity_and_centripetal_acceleration),
      cmocka_unit_test(heading_and_place_do_not_matter),
      cmocka_unit_test(springs_resonate_at_their_frequency),
      cmocka_unit_test(a_glitch_gives_bounded_features),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
