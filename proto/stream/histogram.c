// SPDX-License-Identifier: Apache-2.0
#include "stream/histogram.h"

#include <math.h>

// Values under two rows of steps have a bucket each; above, row r holds [STEPS, 2 STEPS) << r.
static unsigned row_of(uint64_t value) {
  return value < 2 * HISTOGRAM_STEPS ? 0 : 63 - (unsigned)__builtin_clzll(value) - 7;
}

static unsigned bucket_of(uint64_t value) {
  unsigned row = row_of(value);
  return row * HISTOGRAM_STEPS + (unsigned)(value >> row);
}

static uint64_t upper_edge(unsigned bucket) {
  if (bucket < 2 * HISTOGRAM_STEPS)
    return bucket;
  unsigned row = bucket / HISTOGRAM_STEPS - 1;
  uint64_t step = bucket - row * HISTOGRAM_STEPS;
  return (step << row) + (((uint64_t)1 << row) - 1);
}

_Static_assert(HISTOGRAM_STEPS == 1 << 7, "row_of shifts by seven bits");
_Static_assert(HISTOGRAM_BUCKETS == (63 - 7) * HISTOGRAM_STEPS + 2 * HISTOGRAM_STEPS,
               "the last row is that of 2^63");

void histogram_record(struct histogram *histogram, uint64_t value) {
  histogram->buckets[bucket_of(value)]++;
  histogram->count++;
  histogram->sum += (double)value;
  if (value > histogram->max)
    histogram->max = value;
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent) {
  double wanted = ceil(percent / 100 * (double)histogram->count);
  uint64_t rank = wanted < 1 ? 1 : (uint64_t)wanted, seen = 0;
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
    seen += histogram->buckets[i];
    if (seen >= rank) {
      uint64_t edge = upper_edge(i);
      return edge < histogram->max ? edge : histogram->max;
    }
  }
  return histogram->max;
}

double histogram_mean(const struct histogram *histogram) {
  return histogram->count ? histogram->sum / (double)histogram->count : 0;
}
