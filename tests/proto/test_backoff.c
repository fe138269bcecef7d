// SPDX-License-Identifier: Apache-2.0
// stream/backoff.c: delays stay within their bounds, grow, and use all of the room they are given.
#include "stream/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint64_t draws[] = {0, 1, 49999999, 50000000, 99999999, UINT64_MAX / 2, UINT64_MAX};

static void check(unsigned failures, uint64_t from, uint64_t to) {
  for (size_t i = 0; i < sizeof draws / sizeof draws[0]; i++) {
    uint64_t delay = backoff_delay(failures, draws[i]);
    assert_true(delay >= from && delay < to);
  }
  assert_int_equal(backoff_delay(failures, 0), from);
  assert_int_equal(backoff_delay(failures, to - from - 1), to - 1);
}

static void the_first_try_comes_soon(void **state) {
  (void)state;
  check(0, 0, BACKOFF_BASE);
}

static void every_failure_doubles_the_wait(void **state) {
  (void)state;
  for (unsigned failures = 1; failures <= 6; failures++)
    check(failures, (BACKOFF_BASE << failures) / 2, BACKOFF_BASE << failures);
}

static void the_wait_has_a_limit(void **state) {
  (void)state;
  check(7, BACKOFF_MOST / 2, BACKOFF_MOST);
  check(UINT32_MAX, BACKOFF_MOST / 2, BACKOFF_MOST);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_try_comes_soon),
      cmocka_unit_test(every_failure_doubles_the_wait),
      cmocka_unit_test(the_wait_has_a_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
