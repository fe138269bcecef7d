// SPDX-License-Identifier: Apache-2.0
// eval/metrics.c: values by hand.
#include "eval/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { V = 100 };

// The truth is 3 mm along x everywhere; vertices 0 to 4 are predicted 4 mm off in y, the others
// right, and every other frame is entirely right.
static void errors_add_up(void **state) {
  (void)state;
  struct metrics *m = calloc(1, sizeof *m);
  float truth[3 * V] = {0}, predicted[3 * V], last[3 * V];
  uint8_t regions[V];
  for (int v = 0; v < V; v++) {
    truth[3 * v] = 0.003f;
    regions[v] = v < 10 ? BODY_REGION_BELLY : BODY_REGION_HEAD;
  }
  for (int frame = 0; frame < 4; frame++) {
    for (int i = 0; i < 3 * V; i++)
      predicted[i] = truth[i] + (frame % 2 == 0 && i % 3 == 1 && i < 15 ? 0.004f : 0);
    metrics_add(m, predicted, truth, V, regions, frame == 0, last);
  }
  assert_true(fabs(metrics_mean_mm(m) - 4 * 0.05 / 2) < 1e-6);
  assert_true(fabs(metrics_rmse_mm(m) - 4 * sqrt(0.05 / 2)) < 1e-5);
  // The worst twentieth of 400 is 20 vertex frames, half of which are off by 4 mm.
  assert_true(fabs(metrics_worst_mm(m) - 2) < METRICS_BIN_MM);
  assert_true(fabs(metrics_velocity_mms(m, 60) - 60 * 4 * sqrt(0.05)) < 1e-3);
  assert_true(fabs(metrics_explained(m) - (1 - 16 * 0.05 / 2 / 9)) < 1e-6);
  assert_true(fabs(metrics_region_explained(m, BODY_REGION_BELLY) - (1 - 16 * 0.5 / 2 / 9)) < 1e-6);
  assert_true(metrics_region_explained(m, BODY_REGION_HEAD) == 1);
  free(m);
}

static void predicting_nothing_explains_nothing(void **state) {
  (void)state;
  struct metrics *m = calloc(1, sizeof *m);
  float truth[3 * V] = {0}, zero[3 * V] = {0}, last[3 * V];
  uint8_t regions[V] = {0};
  assert_true(metrics_explained(m) == 0 && metrics_mean_mm(m) == 0); // no frame yet
  truth[7] = 10;                                                     // an error beyond the last bin
  metrics_add(m, zero, truth, V, regions, 1, last);
  assert_true(metrics_explained(m) == 0);
  assert_true(metrics_velocity_mms(m, 60) == 0);
  assert_true(fabs(metrics_mean_mm(m) - 10000.0 / V) < 1e-6);
  free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errors_add_up),
      cmocka_unit_test(predicting_nothing_explains_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
