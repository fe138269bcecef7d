// SPDX-License-Identifier: Apache-2.0
// y-up to z-up: known turns, and the same turn computed with rotation matrices.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "orient.h"

// Rodrigues' formula: R = I + sin(a) K + (1 - cos(a)) K^2.
static void to_matrix(const float v[3], double m[3][3]) {
  double a = sqrt((double)v[0] * v[0] + (double)v[1] * v[1] + (double)v[2] * v[2]);
  double s = a > 0 ? sin(a) / a : 1, c = a > 0 ? (1 - cos(a)) / (a * a) : 0.5;
  double k[3][3] = {{0, -v[2], v[1]}, {v[2], 0, -v[0]}, {-v[1], v[0], 0}};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      double square = 0;
      for (int n = 0; n < 3; n++)
        square += k[i][n] * k[n][j];
      m[i][j] = (i == j) + s * k[i][j] + c * square;
    }
}

static void assert_turned(const float before[3], const float after[3]) {
  double m[3][3], n[3][3];
  to_matrix(before, m);
  to_matrix(after, n);
  for (int j = 0; j < 3; j++) { // n = Q m, with Q (x, y, z) = (x, -z, y)
    assert_true(fabs(n[0][j] - m[0][j]) < 1e-5);
    assert_true(fabs(n[1][j] + m[2][j]) < 1e-5);
    assert_true(fabs(n[2][j] - m[1][j]) < 1e-5);
  }
}

static void up_becomes_up(void **state) {
  (void)state;
  float pose[3] = {0, 0, 0}, trans[3] = {1, 2, 3};
  orient_y_up_to_z_up(pose, trans);
  assert_true(fabsf(pose[0] - 1.5707964f) < 1e-6f && pose[1] == 0 && pose[2] == 0);
  assert_true(trans[0] == 1 && trans[1] == -3 && trans[2] == 2);
}

static void any_rotation_is_turned_as_its_matrix_is(void **state) {
  (void)state;
  struct random_state random;
  random_init(&random, 7);
  for (int i = 0; i < 2000; i++) {
    float pose[3], before[3], trans[3] = {0, 0, 0};
    double length = i % 5 ? 3 : 1e-7; // tiny ones as well
    for (int k = 0; k < 3; k++)
      before[k] = pose[k] = (float)(length * random_normal(&random));
    orient_y_up_to_z_up(pose, trans);
    assert_turned(before, pose);
    assert_true(sqrtf(pose[0] * pose[0] + pose[1] * pose[1] + pose[2] * pose[2]) < 3.1416f);
  }
}

static void half_turns_stay_finite(void **state) {
  (void)state;
  static const float halves[][3] = {
      {3.14159265f, 0, 0},  {0, 3.14159265f, 0}, {0, 0, 3.14159265f},
      {-1.57079633f, 0, 0}, {4.71238898f, 0, 0}, {0, 6.28318531f, 0},
  };
  for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
    float pose[3] = {halves[i][0], halves[i][1], halves[i][2]}, trans[3] = {0, 0, 0};
    orient_y_up_to_z_up(pose, trans);
    for (int k = 0; k < 3; k++)
      assert_true(isfinite(pose[k]));
    assert_turned(halves[i], pose);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(up_becomes_up),
      cmocka_unit_test(any_rotation_is_turned_as_its_matrix_is),
      cmocka_unit_test(half_turns_stay_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
