// SPDX-License-Identifier: Apache-2.0
#include "buckets.h"

void buckets_add(struct buckets *buckets, buckets_bounds bounds, double value) {
  size_t i = 0;
  while (i < BUCKETS - 1 && value > bounds[i])
    i++;
  buckets->counts[i]++;
  buckets->sum += value;
}

void buckets_merge(struct buckets *buckets, const struct buckets *other) {
  for (size_t i = 0; i < BUCKETS; i++)
    buckets->counts[i] += other->counts[i];
  buckets->sum += other->sum;
}
