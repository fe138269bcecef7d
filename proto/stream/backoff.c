// SPDX-License-Identifier: Apache-2.0
#include "stream/backoff.h"

uint64_t backoff_delay(unsigned failures, uint64_t random) {
  if (failures == 0)
    return random % BACKOFF_BASE;
  uint64_t delay = BACKOFF_BASE;
  while (failures-- && delay < BACKOFF_MOST)
    delay *= 2;
  if (delay > BACKOFF_MOST)
    delay = BACKOFF_MOST;
  return delay / 2 + random % (delay / 2);
}
