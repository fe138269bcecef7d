// SPDX-License-Identifier: Apache-2.0
// load.c: when streams are refused and when they are taken again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "load.h"

// A second with so many results, of which so many are late.
static void second(struct load *load, uint64_t *now, uint32_t frames, uint32_t late) {
  for (uint32_t i = 0; i < frames; i++)
    load_add(load, i < late);
  load_turn(load, *now += 500); // not yet
  load_turn(load, *now += 500);
}

static void it_refuses_above_the_limit_and_until_all_is_calm(void **state) {
  (void)state;
  struct load load;
  uint64_t now = 7000;
  load_init(&load, 0.05, now);
  second(&load, &now, 1000, 50);
  assert_false(load.overloaded);
  second(&load, &now, 1000, 51);
  assert_true(load.overloaded);
  for (int i = 0; i < LOAD_CALM - 1; i++)
    second(&load, &now, 1000, 10);
  assert_true(load.overloaded);
  second(&load, &now, 1000, 60); // begins anew
  for (int i = 0; i < LOAD_CALM - 1; i++) {
    second(&load, &now, 1000, 0);
    assert_true(load.overloaded);
  }
  second(&load, &now, 0, 0); // nobody left is calm too
  assert_false(load.overloaded);
}

static void in_between_nothing_changes(void **state) {
  (void)state;
  struct load load;
  uint64_t now = 0;
  load_init(&load, 0.1, now);
  second(&load, &now, 100, 20);
  for (int i = 0; i < 20; i++) {
    second(&load, &now, 100, 6);
    assert_true(load.overloaded);
  }
}

static void few_results_prove_nothing(void **state) {
  (void)state;
  struct load load;
  uint64_t now = 0;
  load_init(&load, 0.05, now);
  second(&load, &now, LOAD_FRAMES_MIN - 1, LOAD_FRAMES_MIN - 1);
  assert_false(load.overloaded);
  load_init(&load, 1, now);
  second(&load, &now, 1000, 1000);
  assert_false(load.overloaded);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_refuses_above_the_limit_and_until_all_is_calm),
      cmocka_unit_test(in_between_nothing_changes),
      cmocka_unit_test(few_results_prove_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
