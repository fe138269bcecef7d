// SPDX-License-Identifier: Apache-2.0
// eval/splits.c: every combination of rules, and the answer to malformed files.
#include "eval/splits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void rules_decide_by_shape_and_motion(void **state) {
  (void)state;
  struct splits *splits;
  assert_int_equal(splits_parse(&splits,
                                "# held out\nsubject s03?\n\nmotion jump*  # all jumps\r\n"
                                "validation s00?_walk\n",
                                "test", NULL),
                   0);
  assert_int_equal(splits_of(splits, "s001", "run"), SPLIT_TRAIN);
  assert_int_equal(splits_of(splits, "s001", "walk"), SPLIT_VALIDATION);
  assert_int_equal(splits_of(splits, "s011", "walk"), SPLIT_TRAIN);
  assert_int_equal(splits_of(splits, "s001", "jump_high"), SPLIT_UNSEEN_MOTION);
  assert_int_equal(splits_of(splits, "s031", "walk"), SPLIT_UNSEEN_SHAPE);
  assert_int_equal(splits_of(splits, "s031", "jump"), SPLIT_UNSEEN_BOTH);
  splits_free(splits);
}

static void malformed_lines_are_named(void **state) {
  (void)state;
  static const char *const bad[] = {"subject", "motion a b", "\nshape s1", "subjects s1"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct splits *splits;
    struct dsnet_error e = {0};
    assert_int_equal(splits_parse(&splits, bad[i], "test", &e), DSNET_EFORMAT);
    assert_non_null(strstr(e.text, i == 2 ? "line 2" : "line 1"));
    assert_null(splits);
  }
  struct splits *splits;
  assert_true(splits_load(&splits, "/nowhere/splits", NULL) < 0);
}

// What the recipe holds out, so that a change of the file is a decision.
static void the_fixed_splits_hold_out_six_shapes_and_seven_motions(void **state) {
  (void)state;
  struct splits *splits;
  assert_int_equal(splits_load(&splits, DSNET_SOURCE_DIR "/model/train/splits.txt", NULL), 0);
  static const char *const held[] = {"01_03", "01_12", "02_03",    "02_06",
                                     "02_09", "03_04", "jacks-r07"};
  for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) {
    assert_int_equal(splits_of(splits, "s004", held[i]), SPLIT_UNSEEN_MOTION);
    assert_int_equal(splits_of(splits, "s095", held[i]), SPLIT_UNSEEN_BOTH);
  }
  assert_int_equal(splits_of(splits, "s090", "01_01"), SPLIT_UNSEEN_SHAPE);
  assert_int_equal(splits_of(splits, "s089", "01_01-x0"), SPLIT_TRAIN);
  splits_free(splits);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rules_decide_by_shape_and_motion),
      cmocka_unit_test(malformed_lines_are_named),
      cmocka_unit_test(the_fixed_splits_hold_out_six_shapes_and_seven_motions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
