// SPDX-License-Identifier: Apache-2.0
// train/loss.c: values by hand, the gradient against differences, and what is left out.
#include "train/loss.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

enum { T = 6, B = 3, Z = 2 };
static const float weights[Z] = {2, 0.5f};

static void a_constant_error_is_relative_to_the_energy(void **state) {
  (void)state;
  struct loss_config config = {.latent = Z, .weights = weights, .floor = 0.5};
  float target[T * Z], predicted[T * Z];
  for (size_t i = 0; i < T * Z; i++) {
    target[i] = 2;
    predicted[i] = 3;
  }
  struct loss_range range = {1, T};
  struct loss_sums sums = {0};
  loss_window(&config, 1, T, &range, predicted, target, NULL, &sums);
  // error 2.5 and energy 10 a frame, five frames
  assert_true(fabs(sums.loss - 12.5 / (50 + 2.5)) < 1e-12);
  assert_true(sums.streams == 1 && sums.frames == 5);
  assert_true(fabs(sums.error - 12.5) < 1e-9 && fabs(sums.energy - 50) < 1e-9);
  // A constant error has no velocity error.
  config.velocity = 3;
  config.velocity_floor = 1e-9;
  struct loss_sums with_velocity = {0};
  loss_window(&config, 1, T, &range, predicted, target, NULL, &with_velocity);
  assert_true(with_velocity.loss == sums.loss);
}

static void the_gradient_matches_differences(void **state) {
  (void)state;
  struct loss_config config = {
      .latent = Z, .weights = weights, .floor = 0.1, .velocity = 0.7, .velocity_floor = 0.2};
  const struct loss_range ranges[B] = {{0, T}, {2, 5}, {0, 0}};
  float target[T * B * Z], predicted[T * B * Z], gradient[T * B * Z];
  struct random_state random;
  random_init(&random, 5);
  for (size_t i = 0; i < T * B * Z; i++) {
    target[i] = (float)random_normal(&random);
    predicted[i] = (float)random_normal(&random);
  }
  struct loss_sums sums = {0};
  loss_window(&config, B, T, ranges, predicted, target, gradient, &sums);
  assert_true(sums.streams == 2 && sums.frames == T + 3);
  for (size_t i = 0; i < T * B * Z; i++) {
    struct loss_sums up = {0}, down = {0};
    float before = predicted[i];
    predicted[i] = before + 0.125f;
    loss_window(&config, B, T, ranges, predicted, target, NULL, &up);
    predicted[i] = before - 0.125f;
    loss_window(&config, B, T, ranges, predicted, target, NULL, &down);
    predicted[i] = before;
    // The loss is quadratic, so the difference is exact but for rounding.
    assert_true(fabs((up.loss - down.loss) / 0.25 - gradient[i]) < 1e-5);
    size_t stream = i / Z % B, frame = i / Z / B;
    if (stream == 2 || (stream == 1 && (frame < 2 || frame >= 5)))
      assert_true(gradient[i] == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_constant_error_is_relative_to_the_energy),
      cmocka_unit_test(the_gradient_matches_differences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
