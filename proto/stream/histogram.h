// SPDX-License-Identifier: Apache-2.0
// A histogram of durations with a bounded relative error and a fixed size, after the idea of HDR
// histograms (Tene): each power of two is cut into HISTOGRAM_STEPS equal buckets, so a value is
// known to 1 / HISTOGRAM_STEPS of itself and recording is a shift and an increment.
//
// Plain data, all zeros is empty; no allocation; one thread at a time.
#ifndef DSNET_STREAM_HISTOGRAM_H
#define DSNET_STREAM_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEPS   128 // a percentile is at most 0.8% above the true one
#define HISTOGRAM_BUCKETS (58 * HISTOGRAM_STEPS)

struct histogram {
  uint64_t count, max;
  double sum;
  uint64_t buckets[HISTOGRAM_BUCKETS];
};

// Adds one value, in any unit; nanoseconds here.
void histogram_record(struct histogram *histogram, uint64_t value);

// The smallest value v such that at least `percent` (0 to 100) of the values are <= v, to a
// bucket's upper edge and never above the largest value recorded. 0 when empty.
uint64_t histogram_percentile(const struct histogram *histogram, double percent);

// 0 when empty.
double histogram_mean(const struct histogram *histogram);

#endif
