// SPDX-License-Identifier: Apache-2.0
// How long to wait before the next try: exponential back-off with jitter, so that clients which a
// server lost together do not come back together (Brooker, "Exponential Backoff and Jitter").
#ifndef DSNET_STREAM_BACKOFF_H
#define DSNET_STREAM_BACKOFF_H

#include <stdint.h>

#define BACKOFF_BASE 100000000ull   // ns
#define BACKOFF_MOST 10000000000ull // ns

// Nanoseconds to wait after `failures` tries in a row that failed: evenly drawn from 0 to
// BACKOFF_BASE after none (a stream was lost that had been running), else from the upper half of
// BACKOFF_BASE * 2^failures, which grows to BACKOFF_MOST at most. `random` is evenly distributed.
uint64_t backoff_delay(unsigned failures, uint64_t random);

#endif
