// SPDX-License-Identifier: Apache-2.0
// io/half.c: exhaustively one way, and the other way at every rounding boundary.
#include "io/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static double exact_value(uint16_t half) {
  int exponent = half >> 10 & 31, fraction = half & 1023;
  double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  return half & 0x8000 ? -magnitude : magnitude;
}

static bool is_nan(uint16_t half) {
  return (half & 0x7fff) > 0x7c00;
}

static void every_half_has_its_value(void **state) {
  (void)state;
  for (uint32_t h = 0; h <= 0xffff; h++) {
    float value = half_to_float((uint16_t)h);
    if (is_nan((uint16_t)h))
      assert_true(isnan(value));
    else if ((h & 0x7fff) == 0x7c00)
      assert_true(isinf(value));
    else
      assert_true((double)value == exact_value((uint16_t)h));
    assert_int_equal(!!signbit(value), h >> 15);
  }
}

static void every_half_survives_the_round_trip(void **state) {
  (void)state;
  for (uint32_t h = 0; h <= 0xffff; h++) {
    uint16_t back = half_from_float(half_to_float((uint16_t)h));
    if (is_nan((uint16_t)h))
      assert_true(is_nan(back));
    else
      assert_int_equal(back, h);
  }
}

// Between neighbours a and b: the middle goes to the even one, anything beside it to the nearer.
static void rounding_is_to_nearest_even(void **state) {
  (void)state;
  for (uint32_t h = 0; h < 0x7bff; h++) {
    double middle = (exact_value((uint16_t)h) + exact_value((uint16_t)(h + 1))) / 2;
    float m = (float)middle; // exact: one bit more than a half has
    uint32_t even = h % 2 ? h + 1 : h;
    assert_int_equal(half_from_float(m), even);
    assert_int_equal(half_from_float(-m), even | 0x8000);
    assert_int_equal(half_from_float(nextafterf(m, 0)), h);
    assert_int_equal(half_from_float(nextafterf(m, INFINITY)), h + 1);
  }
}

static void too_large_becomes_infinity(void **state) {
  (void)state;
  assert_int_equal(half_from_float(nextafterf(65520, 0)), 0x7bff);
  assert_int_equal(half_from_float(65520), 0x7c00);
  assert_int_equal(half_from_float(-65520), 0xfc00);
  assert_int_equal(half_from_float(1e30f), 0x7c00);
  assert_int_equal(half_from_float(-INFINITY), 0xfc00);
  assert_true(is_nan(half_from_float(NAN)));
}

// Arrays take the processor's own instructions where there are any.
static void arrays_agree_with_single_values(void **state) {
  (void)state;
  enum { COUNT = 1003 };
  static float values[COUNT], back[COUNT];
  static unsigned char bytes[2 * COUNT + 1];
  if (!half_is_hardware())
    print_message("this processor has no F16C: one path only\n");
  for (uint32_t round = 0; round < 200; round++) {
    for (uint32_t i = 0; i < COUNT; i++) {
      uint32_t bits = (round * COUNT + i) * 2654435761u;
      memcpy(&values[i], &bits, sizeof bits);
    }
    half_encode(values, bytes + 1, COUNT);
    half_decode(bytes + 1, back, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
      uint16_t half;
      memcpy(&half, bytes + 1 + 2 * i, sizeof half);
      if (isnan(values[i])) {
        assert_true(is_nan(half) && isnan(back[i]));
        continue;
      }
      assert_int_equal(half, half_from_float(values[i]));
      assert_true(back[i] == half_to_float(half));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_half_has_its_value),
      cmocka_unit_test(every_half_survives_the_round_trip),
      cmocka_unit_test(rounding_is_to_nearest_even),
      cmocka_unit_test(too_large_becomes_infinity),
      cmocka_unit_test(arrays_agree_with_single_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
