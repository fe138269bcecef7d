// SPDX-License-Identifier: Apache-2.0
// train/adam.c: the first updates by hand, PyTorch's trajectory, convergence, clipping, schedule.
#include "train/adam.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// With bias correction the first step is the rate itself, whatever the gradient's size.
static void the_first_step_is_the_rate(void **state) {
  (void)state;
  float m[3] = {0}, v[3] = {0}, weights[3] = {1, 1, 1};
  const float gradients[3] = {1e-3f, -50, 0};
  struct adam adam;
  adam_init(&adam, 3, m, v);
  adam_update(&adam, 0.01, gradients, weights);
  assert_true(fabsf(weights[0] - 0.99f) < 1e-6f);
  assert_true(fabsf(weights[1] - 1.01f) < 1e-6f);
  assert_true(weights[2] == 1);
}

// torch.optim.Adam(lr=0.1) on 0.5 * (3 w0^2 + 0.2 w1^2) from (1, -2), after 1, 2 and 25 steps.
static void the_trajectory_is_pytorchs(void **state) {
  (void)state;
  static const double expected[3][2] = {
      {0.9000000, -1.9000000}, {0.8004122, -1.8001665}, {-0.1805543, 0.0467370}};
  float m[2] = {0}, v[2] = {0}, w[2] = {1, -2};
  struct adam adam;
  adam_init(&adam, 2, m, v);
  for (int step = 1, row = 0; step <= 25; step++) {
    float gradients[2] = {3 * w[0], 0.2f * w[1]};
    adam_update(&adam, 0.1, gradients, w);
    if (step == 1 || step == 2 || step == 25) {
      if (fabs(w[0] - expected[row][0]) > 2e-6)
        fail_msg("step %d: %.8g, expected %.8g", step, (double)w[0], expected[row][0]);
      assert_true(fabs(w[1] - expected[row][1]) < 2e-6);
      row++;
    }
  }
}

static void decay_shrinks_weights_without_gradient(void **state) {
  (void)state;
  float m[1] = {0}, v[1] = {0}, w[1] = {2}, g[1] = {0};
  struct adam adam;
  adam_init(&adam, 1, m, v);
  adam.decay = 0.1;
  adam_update(&adam, 0.5, g, w);
  assert_true(fabsf(w[0] - 1.9f) < 1e-6f);
}

static void clipping_keeps_direction_and_reports_the_norm(void **state) {
  (void)state;
  float g[2] = {3, -4};
  assert_true(gradient_clip(g, 2, 10) == 5);
  assert_true(g[0] == 3);
  assert_true(gradient_clip(g, 2, 1) == 5);
  assert_true(fabsf(g[0] - 0.6f) < 1e-6f && fabsf(g[1] + 0.8f) < 1e-6f);
}

static void the_rate_warms_up_and_falls(void **state) {
  (void)state;
  assert_true(fabs(schedule_rate(1, 0.1, 10, 0, 110) - 0.1) < 1e-12);
  assert_true(fabs(schedule_rate(1, 0.1, 10, 9, 110) - 1) < 1e-12);
  assert_true(fabs(schedule_rate(1, 0.1, 10, 60, 110) - 0.55) < 1e-12);
  assert_true(fabs(schedule_rate(1, 0.1, 10, 110, 110) - 0.1) < 1e-12);
  assert_true(fabs(schedule_rate(1, 0.1, 10, 500, 110) - 0.1) < 1e-12);
  for (uint64_t step = 10; step < 110; step++)
    assert_true(schedule_rate(1, 0.1, 10, step + 1, 110) < schedule_rate(1, 0.1, 10, step, 110));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_step_is_the_rate),
      cmocka_unit_test(the_trajectory_is_pytorchs),
      cmocka_unit_test(decay_shrinks_weights_without_gradient),
      cmocka_unit_test(clipping_keeps_direction_and_reports_the_norm),
      cmocka_unit_test(the_rate_warms_up_and_falls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
