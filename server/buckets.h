// SPDX-License-Identifier: Apache-2.0
// A histogram as Prometheus has them: counts of observations by fixed bounds, and their sum.
#ifndef DSNET_SERVER_BUCKETS_H
#define DSNET_SERVER_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#define BUCKETS 12

// Ascending upper bounds; the last bucket has none.
typedef const double buckets_bounds[BUCKETS - 1];

struct buckets {
  uint64_t counts[BUCKETS]; // of observations above the bound before and at most the bucket's own
  double sum;
};

void buckets_add(struct buckets *buckets, buckets_bounds bounds, double value);
void buckets_merge(struct buckets *buckets, const struct buckets *other);

#endif
