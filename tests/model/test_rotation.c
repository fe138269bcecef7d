// SPDX-License-Identifier: Apache-2.0
// motion/rotation.c: exponential and logarithm at every angle about every axis, 0 and pi included.
#include "motion/rotation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

#define PI 3.14159265358979323846

static double distance(const double *a, const double *b, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sqrt(sum);
}

static void random_axis(struct random_state *random, double axis[3]) {
  double norm = 0;
  for (int i = 0; i < 3; i++) {
    axis[i] = random_normal(random);
    norm += axis[i] * axis[i];
  }
  for (int i = 0; i < 3; i++)
    axis[i] /= sqrt(norm);
}

static void scale(const double axis[3], double angle, double vector[3]) {
  for (int i = 0; i < 3; i++)
    vector[i] = axis[i] * angle;
}

// Angles from denormals to the last one before pi.
static const double angles[] = {0,    1e-310,    1e-160,    1e-20,      1e-9,      0.9e-8,
                                1e-8, 1.1e-8,    1e-7,      1e-3,       1,         PI / 2,
                                3,    PI - 1e-3, PI - 1e-8, PI - 1e-12, PI - 1e-15};

static void the_logarithm_undoes_the_exponential_at_every_angle(void **state) {
  (void)state;
  struct random_state random;
  random_init(&random, 1);
  for (size_t a = 0; a < sizeof angles / sizeof angles[0]; a++)
    for (int k = 0; k < 100; k++) {
      double axis[3], vector[3], q[4], back[3], negative[4];
      random_axis(&random, axis);
      scale(axis, angles[a], vector);
      quaternion_from_vector(vector, q);
      quaternion_to_vector(q, back);
      assert_true(distance(vector, back, 3) <= 1e-15 * (1 + angles[a]));
      // The same to relative precision: small angles keep their digits.
      assert_true(distance(vector, back, 3) <= 4e-15 * angles[a] + 1e-320);
      for (int i = 0; i < 4; i++)
        negative[i] = -q[i];
      quaternion_to_vector(negative, back);
      assert_true(distance(vector, back, 3) <= 1e-15 * (1 + angles[a]));
    }
}

static void a_half_turn_gives_its_axis(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++)
    for (int sign = -1; sign <= 1; sign += 2) {
      double q[4] = {0}, vector[3];
      q[i + 1] = sign;
      quaternion_to_vector(q, vector);
      for (int j = 0; j < 3; j++)
        assert_true(fabs(vector[j] - (i == j ? sign * PI : 0)) < 1e-15);
    }
}

static void no_rotation_and_no_quaternion_give_no_angle(void **state) {
  (void)state;
  double vector[3];
  quaternion_to_vector((const double[]){1, 0, 0, 0}, vector);
  assert_true(vector[0] == 0 && vector[1] == 0 && vector[2] == 0);
  quaternion_to_vector((const double[]){-1, 0, 0, 0}, vector);
  assert_true(vector[0] == 0 && vector[1] == 0 && vector[2] == 0);
  quaternion_to_vector((const double[]){0, 0, 0, 0}, vector);
  assert_true(vector[0] == 0 && vector[1] == 0 && vector[2] == 0);
}

static void huge_vectors_stay_unit_rotations(void **state) {
  (void)state;
  static const double sizes[] = {7, 1e3, 1e6, 3e38};
  for (size_t i = 0; i < 4; i++) {
    double q[4];
    quaternion_from_vector((const double[]){sizes[i], -sizes[i], sizes[i] / 3}, q);
    assert_true(fabs(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1) < 1e-14);
  }
}

static void known_rotations_turn_known_vectors(void **state) {
  (void)state;
  double m[9];
  rotation_matrix((const double[]){0, 0, PI / 2}, m); // x -> y
  assert_true(fabs(m[0]) < 1e-15 && fabs(m[3] - 1) < 1e-15 && fabs(m[1] + 1) < 1e-15);
  rotation_matrix((const double[]){PI / 2, 0, 0}, m); // y -> z
  assert_true(fabs(m[7] - 1) < 1e-15 && fabs(m[5] + 1) < 1e-15 && m[0] == 1);
}

static void the_product_is_first_the_right_then_the_left(void **state) {
  (void)state;
  struct random_state random;
  random_init(&random, 2);
  for (int k = 0; k < 100; k++) {
    double u[3], v[3], a[4], b[4], ab[4], vector[3], A[9], B[9], AB[9];
    for (int i = 0; i < 3; i++) {
      u[i] = random_normal(&random);
      v[i] = random_normal(&random);
    }
    quaternion_from_vector(u, a);
    quaternion_from_vector(v, b);
    quaternion_multiply(a, b, ab);
    quaternion_to_vector(ab, vector);
    rotation_matrix(u, A);
    rotation_matrix(v, B);
    rotation_matrix(vector, AB);
    for (int r = 0; r < 3; r++)
      for (int c = 0; c < 3; c++)
        assert_true(fabs(A[3 * r] * B[c] + A[3 * r + 1] * B[3 + c] + A[3 * r + 2] * B[6 + c] -
                         AB[3 * r + c]) < 1e-14);
  }
}

static void slerp_turns_at_constant_speed_the_shorter_way(void **state) {
  (void)state;
  struct random_state random;
  random_init(&random, 3);
  static const double spans[] = {0, 1e-12, 1e-3, 1, 3, PI - 1e-9};
  for (size_t s = 0; s < sizeof spans / sizeof spans[0]; s++)
    for (int k = 0; k < 50; k++) {
      double start[3], axis[3], step[3], a[4], b[4], turn[4], got[4], expected[4];
      random_axis(&random, start);
      random_axis(&random, axis);
      double t = random_uniform(&random);
      scale(start, 2 * random_normal(&random), start);
      quaternion_from_vector(start, a);
      scale(axis, spans[s], step);
      quaternion_from_vector(step, turn);
      quaternion_multiply(a, turn, b);
      if (k % 2) // the same rotation by the other quaternion
        for (int i = 0; i < 4; i++)
          b[i] = -b[i];
      quaternion_slerp(a, b, t, got);
      scale(axis, t * spans[s], step);
      quaternion_from_vector(step, turn);
      quaternion_multiply(a, turn, expected);
      assert_true(distance(got, expected, 4) < 1e-14);
    }
}

static void the_nearest_vector_continues_a_path_through_pi(void **state) {
  (void)state;
  struct random_state random;
  random_init(&random, 4);
  for (int k = 0; k < 20; k++) {
    double axis[3], previous[3] = {0}, vector[3], q[4], near[3];
    random_axis(&random, axis);
    for (int i = 0; i <= 400; i++) { // two whole turns and back, through 0 on the way
      double angle = 0.05 * (i <= 200 ? i : 400 - i);
      scale(axis, angle, vector);
      quaternion_from_vector(vector, q);
      rotation_vector_near(q, previous, near);
      assert_true(distance(near, vector, 3) < 1e-12);
      for (int c = 0; c < 3; c++)
        previous[c] = near[c];
    }
  }
}

static void a_whole_turn_keeps_the_axis_of_its_reference(void **state) {
  (void)state;
  double near[3];
  const double reference[3] = {0, 6.2, 0};
  rotation_vector_near((const double[]){-1, 0, 0, 0}, reference, near);
  assert_true(fabs(near[1] - 2 * PI) < 1e-12 && near[0] == 0 && near[2] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_logarithm_undoes_the_exponential_at_every_angle),
      cmocka_unit_test(a_half_turn_gives_its_axis),
      cmocka_unit_test(no_rotation_and_no_quaternion_give_no_angle),
      cmocka_unit_test(huge_vectors_stay_unit_rotations),
      cmocka_unit_test(known_rotations_turn_known_vectors),
      cmocka_unit_test(the_product_is_first_the_right_then_the_left),
      cmocka_unit_test(slerp_turns_at_constant_speed_the_shorter_way),
      cmocka_unit_test(the_nearest_vector_continues_a_path_through_pi),
      cmocka_unit_test(a_whole_turn_keeps_the_axis_of_its_reference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
