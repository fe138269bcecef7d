// SPDX-License-Identifier: Apache-2.0
// motion/features: motions whose velocities and accelerations are known.
#include "motion/features.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "motion/rotation.h"

#define JOINTS 22
enum { POSE = 0, VELOCITY = 66, ACCELERATION = 132, ROOT_V = 198, ROOT_A = 201, BETAS = 204 };
#define MEMORY_MAX 1000

static const struct feature_set *paper;

static int find_paper(void **state) {
  (void)state;
  paper = feature_set_find("paper");
  return paper && paper->width == 214 && paper->memory <= MEMORY_MAX ? 0 : -1;
}

// One frame of 22 joints that all have the rotation vector of `q` nearest to 0, as captured data
// has it.
static void fill_pose(const double q[4], float pose[66]) {
  double vector[3];
  quaternion_to_vector(q, vector);
  for (int i = 0; i < 66; i++)
    pose[i] = (float)vector[i % 3];
}

static double largest_error(const float *values, size_t count, const double expected[3]) {
  double worst = 0;
  for (size_t i = 0; i < count; i++)
    worst = fmax(worst, fabs((double)values[i] - expected[i % 3]));
  return worst;
}

// A turn at constant speed about any axis from any start. The rotation vectors pass through pi,
// where they jump to the opposite side; velocity must not notice.
static void constant_angular_velocity_is_measured_about_any_axis_through_pi(void **state) {
  (void)state;
  struct random_state random;
  random_init(&random, 1);
  static const float still[3] = {0, 0, 1}, betas[10] = {0};
  static const double nothing[3] = {0};
  int jumps = 0;
  for (int k = 0; k < 30; k++) {
    float memory[MEMORY_MAX] = {0}, out[214], pose[66], previous[66] = {0};
    double omega[3], start[3], q[4], step_vector[3], step[4];
    for (int i = 0; i < 3; i++) {
      omega[i] = 4 * random_normal(&random);
      start[i] = k % 3 ? random_normal(&random) : 0; // else the axis of the turn itself
      step_vector[i] = omega[i] / 60;
    }
    quaternion_from_vector(start, q);
    quaternion_from_vector(step_vector, step);
    for (int frame = 0; frame < 180; frame++) {
      fill_pose(q, pose);
      paper->step(60, pose, still, betas, memory, out);
      assert_memory_equal(out + POSE, pose, sizeof pose);
      const double *v = frame < 1 ? nothing : omega;
      // Poses are floats of up to pi: half an ulp is 1.2e-7, times 60 and 3600, in three terms.
      assert_true(largest_error(out + VELOCITY, 66, v) < 60 * 8e-7);
      assert_true(largest_error(out + ACCELERATION, 66, nothing) < 3600 * 1.6e-6);
      if (frame > 0 && fabsf(pose[0] - previous[0]) + fabsf(pose[1] - previous[1]) > 2)
        jumps++;
      memcpy(previous, pose, sizeof pose);
      quaternion_multiply(q, step, q); // the step is in the joint's own frame
    }
  }
  assert_true(jumps > 30); // the test did pass through pi
}

// Speed that grows by alpha / 60 a frame about a fixed axis.
static void constant_angular_acceleration_is_measured(void **state) {
  (void)state;
  const double alpha[3] = {3, -5, 2};
  float memory[MEMORY_MAX] = {0}, out[214], pose[66];
  const float still[3] = {0}, betas[10] = {0};
  double q[4] = {1, 0, 0, 0};
  for (int frame = 0; frame < 120; frame++) {
    fill_pose(q, pose);
    paper->step(60, pose, still, betas, memory, out);
    if (frame >= 2)
      assert_true(largest_error(out + ACCELERATION, 66, alpha) < 3600 * 1.6e-6);
    double step_vector[3], step[4];
    for (int i = 0; i < 3; i++)
      step_vector[i] = alpha[i] * frame / 3600;
    quaternion_from_vector(step_vector, step);
    quaternion_multiply(q, step, q);
  }
}

static void the_first_frames_have_no_velocity_and_no_acceleration(void **state) {
  (void)state;
  float memory[MEMORY_MAX] = {0}, out[214], pose[66];
  const float betas[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  for (int frame = 0; frame < 3; frame++) {
    const float trans[3] = {(float)(frame * frame), 0, 0};
    for (int i = 0; i < 66; i++)
      pose[i] = 0.01f * (float)(frame * frame) * (float)(i % 3 == 1);
    paper->step(60, pose, trans, betas, memory, out);
    assert_int_equal(out[ROOT_V] != 0, frame >= 1);
    assert_int_equal(out[VELOCITY + 1] != 0, frame >= 1);
    assert_int_equal(out[ROOT_A] != 0, frame >= 2);
    assert_int_equal(out[ACCELERATION + 1] != 0, frame >= 2);
    assert_memory_equal(out + BETAS, betas, sizeof betas);
  }
}

static void free_fall_accelerates_by_g(void **state) {
  (void)state;
  float memory[MEMORY_MAX] = {0}, out[214];
  const float pose[66] = {1, 2, 3}, betas[10] = {0};
  const double fall[3] = {0, 0, -9.81};
  for (int frame = 0; frame < 60; frame++) {
    double t = frame / 60.0;
    const float trans[3] = {(float)(2 * t), 0.5f, (float)(3 - 4.905 * t * t)};
    paper->step(60, pose, trans, betas, memory, out);
    if (frame >= 2) {
      // Positions up to 3 m are rounded to 1.2e-7.
      assert_true(largest_error(out + ROOT_A, 3, fall) < 3600 * 5e-7);
      const double v[3] = {2, 0, -9.81 * (t - 0.5 / 60)}; // at the middle of the step
      assert_true(largest_error(out + ROOT_V, 3, v) < 60 * 3e-7);
    }
    for (int i = VELOCITY; i < ROOT_V; i++)
      assert_true(out[i] == 0);
  }
}

static void uniform_motion_has_no_acceleration(void **state) {
  (void)state;
  // Steps that floats hold exactly: then nothing at all may be left.
  float memory[MEMORY_MAX] = {0}, out[214];
  const float pose[66] = {0.1f, -0.2f, 3}, betas[10] = {0};
  for (int frame = 0; frame < 50; frame++) {
    const float trans[3] = {(float)frame / 64, -(float)frame / 32, 1000};
    paper->step(60, pose, trans, betas, memory, out);
    if (frame >= 1)
      assert_true(out[ROOT_V] == 60.0f / 64 && out[ROOT_V + 1] == -60.0f / 32 &&
                  out[ROOT_V + 2] == 0);
    for (int i = 0; i < 3; i++)
      assert_true(out[ROOT_A + i] == 0);
    for (int i = VELOCITY; i < ROOT_V; i++)
      assert_true(out[i] == 0);
  }
}

// A glitch of capture, half a turn between two frames, gives pi * 60 and nothing worse.
static void a_flip_by_pi_stays_finite(void **state) {
  (void)state;
  float memory[MEMORY_MAX] = {0}, out[214];
  const float still[3] = {0}, betas[10] = {0};
  for (int frame = 0; frame < 6; frame++) {
    float pose[66];
    for (int i = 0; i < 66; i++)
      pose[i] = frame % 2 && i % 3 == 0 ? 3.14159274f : 0;
    paper->step(60, pose, still, betas, memory, out);
    for (int i = 0; i < 214; i++)
      assert_true(isfinite(out[i]));
    if (frame)
      for (int i = 0; i < 66; i += 3)
        assert_true(fabsf(fabsf(out[VELOCITY + i]) - 60 * 3.14159274f) < 1e-3f);
  }
}

// The rate scales velocity once and acceleration twice.
static void the_rate_is_what_makes_the_units(void **state) {
  (void)state;
  float slow[MEMORY_MAX] = {0}, fast[MEMORY_MAX] = {0}, a[214], b[214];
  const float betas[10] = {0};
  for (int frame = 0; frame < 3; frame++) {
    float pose[66];
    const float trans[3] = {0, 0, (float)(frame * frame)};
    for (int i = 0; i < 66; i++)
      pose[i] = 0.1f * (float)(frame * frame) * (float)(i % 3 == 2);
    paper->step(32, pose, trans, betas, slow, a);
    paper->step(128, pose, trans, betas, fast, b);
  }
  for (int i = 0; i < 66; i++)
    assert_true(b[VELOCITY + i] == 4 * a[VELOCITY + i] &&
                b[ACCELERATION + i] == 16 * a[ACCELERATION + i]);
  assert_true(b[ROOT_V + 2] == 4 * a[ROOT_V + 2] && b[ROOT_A + 2] == 16 * a[ROOT_A + 2]);
}

// A session that is stopped, stored and resumed anywhere in a clip goes on bit for bit.
static void a_copied_memory_continues_exactly(void **state) {
  (void)state;
  struct random_state random;
  random_init(&random, 7);
  static float poses[40][66], trans[40][3], whole[40][214];
  const float betas[10] = {0.5f};
  for (int frame = 0; frame < 40; frame++) {
    for (int i = 0; i < 66; i++)
      poses[frame][i] = (float)random_normal(&random);
    for (int i = 0; i < 3; i++)
      trans[frame][i] = (float)random_normal(&random);
  }
  float memory[MEMORY_MAX] = {0};
  for (int frame = 0; frame < 40; frame++)
    paper->step(60, poses[frame], trans[frame], betas, memory, whole[frame]);
  for (int stop = 0; stop < 40; stop++) {
    float first[MEMORY_MAX] = {0}, second[MEMORY_MAX], out[214];
    for (int frame = 0; frame < stop; frame++)
      paper->step(60, poses[frame], trans[frame], betas, first, out);
    memcpy(second, first, paper->memory * sizeof(float));
    for (int frame = stop; frame < 40; frame++) {
      paper->step(60, poses[frame], trans[frame], betas, second, out);
      assert_memory_equal(out, whole[frame], sizeof out);
    }
  }
}

static void the_table_lists_every_set_by_its_name(void **state) {
  (void)state;
  size_t count = 0;
  for (const struct feature_set *set; (set = feature_set_at(count)); count++) {
    assert_ptr_equal(feature_set_find(set->name), set);
    assert_true(set->width > 0 && set->width <= FEATURES_WIDTH_MAX);
  }
  assert_true(count >= 1);
  assert_null(feature_set_find("no such set"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(constant_angular_velocity_is_measured_about_any_axis_through_pi),
      cmocka_unit_test(constant_angular_acceleration_is_measured),
      cmocka_unit_test(the_first_frames_have_no_velocity_and_no_acceleration),
      cmocka_unit_test(free_fall_accelerates_by_g),
      cmocka_unit_test(uniform_motion_has_no_acceleration),
      cmocka_unit_test(a_flip_by_pi_stays_finite),
      cmocka_unit_test(the_rate_is_what_makes_the_units),
      cmocka_unit_test(a_copied_memory_continues_exactly),
      cmocka_unit_test(the_table_lists_every_set_by_its_name),
  };
  return cmocka_run_group_tests(tests, find_paper, NULL);
}
