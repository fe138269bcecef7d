// SPDX-License-Identifier: Apache-2.0
// stream/histogram.c: percentiles against the sorted values themselves.
#include "stream/histogram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct histogram histogram;

static int clear(void **state) {
  (void)state;
  histogram = (struct histogram){0};
  return 0;
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static const double percents[] = {0, 1, 25, 50, 90, 99, 99.9, 99.99, 100};

static void check_against_sorted(uint64_t *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    histogram_record(&histogram, values[i]);
  qsort(values, count, sizeof *values, ascending);
  for (size_t p = 0; p < sizeof percents / sizeof percents[0]; p++) {
    size_t rank = (size_t)ceil(percents[p] / 100 * (double)count);
    uint64_t exact = values[rank ? rank - 1 : 0];
    uint64_t got = histogram_percentile(&histogram, percents[p]);
    if (got < exact || (double)(got - exact) > (double)exact / HISTOGRAM_STEPS)
      fail_msg("p%g of %zu is %llu, sorted data say %llu", percents[p], count,
               (unsigned long long)got, (unsigned long long)exact);
  }
  assert_true(histogram.max == values[count - 1]);
  assert_true(histogram.count == count);
}

static void percentiles_equal_those_of_sorted_data(void **state) {
  (void)state;
  enum { COUNT = 20000 };
  uint64_t *values = malloc(COUNT * sizeof *values);
  assert_non_null(values);
  uint64_t seed = 88172645463325252u; // xorshift64
  for (size_t i = 0; i < COUNT; i++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    values[i] = seed >> (seed & 63); // every magnitude
  }
  check_against_sorted(values, COUNT);
  free(values);
}

static void small_counts_have_exact_ranks(void **state) {
  (void)state;
  for (size_t count = 1; count <= 12; count++) {
    uint64_t values[12];
    for (size_t i = 0; i < count; i++)
      values[i] = 10 * (count - i);
    clear(NULL);
    check_against_sorted(values, count); // values under 256 are exact
  }
}

static void the_largest_value_has_a_bucket(void **state) {
  (void)state;
  uint64_t values[] = {UINT64_MAX, 0, 255, 256, 257, (uint64_t)1 << 63};
  check_against_sorted(values, sizeof values / sizeof values[0]);
}

static void an_empty_histogram_says_zero(void **state) {
  (void)state;
  assert_int_equal(histogram_percentile(&histogram, 50), 0);
  assert_true(histogram_mean(&histogram) == 0);
}

static void the_mean_is_that_of_the_values(void **state) {
  (void)state;
  histogram_record(&histogram, 1000);
  histogram_record(&histogram, 2001);
  assert_true(histogram_mean(&histogram) == 1500.5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(percentiles_equal_those_of_sorted_data, clear),
      cmocka_unit_test_setup(small_counts_have_exact_ranks, clear),
      cmocka_unit_test_setup(the_largest_value_has_a_bucket, clear),
      cmocka_unit_test_setup(an_empty_histogram_says_zero, clear),
      cmocka_unit_test_setup(the_mean_is_that_of_the_values, clear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
