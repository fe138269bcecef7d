// SPDX-License-Identifier: Apache-2.0
// nn/activation.c against the C library in double precision, on every level.
#include "nn/activation.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOLERANCE 1e-6

static double exact_sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static void check_values(enum simd_level level, const float *x, size_t count) {
  float *sigmoids = malloc(count * sizeof *x), *tanhs = malloc(count * sizeof *x);
  assert_true(sigmoids && tanhs);
  memcpy(sigmoids, x, count * sizeof *x);
  memcpy(tanhs, x, count * sizeof *x);
  activation_sigmoid(level, sigmoids, count);
  activation_tanh(level, tanhs, count);
  for (size_t i = 0; i < count; i++) {
    if (!(fabs(sigmoids[i] - exact_sigmoid((double)x[i])) <= TOLERANCE))
      fail_msg("%s: sigmoid(%.9g) is %.9g", simd_name(level), (double)x[i], (double)sigmoids[i]);
    if (!(fabs(tanhs[i] - tanh((double)x[i])) <= TOLERANCE))
      fail_msg("%s: tanh(%.9g) is %.9g", simd_name(level), (double)x[i], (double)tanhs[i]);
    assert_true(fabsf(tanhs[i]) <= 1 && sigmoids[i] >= 0 && sigmoids[i] <= 1);
  }
  free(sigmoids);
  free(tanhs);
}

static void both_are_accurate_over_the_whole_range(void **state) {
  (void)state;
  enum { COUNT = 400001 };
  float *x = malloc(COUNT * sizeof *x);
  assert_non_null(x);
  for (int i = 0; i < COUNT; i++)
    x[i] = (float)(i - COUNT / 2) * 5e-4f; // -100 to 100
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++)
    if (simd_available(level))
      check_values(level, x, COUNT);
  free(x);
}

static void tanh_keeps_its_relative_accuracy_near_zero(void **state) {
  (void)state;
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++)
    for (float x = 1; x > 1e-30f && simd_available(level); x *= 0.7f) {
      float y[2] = {x, -x};
      activation_tanh(level, y, 2);
      double exact = tanh((double)x);
      assert_true(fabs((double)y[0] - exact) <= 1e-6 * exact);
      assert_true(y[1] == -y[0] || fabs((double)y[1] + exact) <= 1e-6 * exact);
    }
}

static void extreme_numbers_saturate(void **state) {
  (void)state;
  static const float x[] = {0.f,    -0.f,    FLT_MIN,  -FLT_MIN, FLT_TRUE_MIN, 87.f,  -87.f,
                            88.8f,  -88.8f,  104.f,    -104.f,   1e4f,         -1e4f, 1e20f,
                            -1e20f, FLT_MAX, -FLT_MAX, INFINITY, -INFINITY};
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++)
    if (simd_available(level))
      check_values(level, x, sizeof x / sizeof x[0]);
}

// Vectors are sixteen wide; what is left over must give the same.
static void a_value_does_not_depend_on_its_place(void **state) {
  (void)state;
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++)
    for (size_t count = 1; count < 40 && simd_available(level); count++) {
      float values[41], expected = 0.37f;
      activation_tanh(level, &expected, 1);
      for (size_t i = 0; i <= count; i++)
        values[i] = 0.37f;
      activation_tanh(level, values, count);
      for (size_t i = 0; i < count; i++)
        assert_true(values[i] == expected);
      assert_true(values[count] == 0.37f);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_are_accurate_over_the_whole_range),
      cmocka_unit_test(tanh_keeps_its_relative_accuracy_near_zero),
      cmocka_unit_test(extreme_numbers_saturate),
      cmocka_unit_test(a_value_does_not_depend_on_its_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
