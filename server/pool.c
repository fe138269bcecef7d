// SPDX-License-Identifier: Apache-2.0
#include "pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

// The record and its payload are one block: [struct result, padded][headroom][payload].
#define RECORD_SIZE                                                                                \
  ((sizeof(struct result) + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT)
_Static_assert(RESULT_HEADROOM % MEMORY_ALIGNMENT == 0, "the payload must stay aligned");

void pool_init(struct pool *pool, size_t payload_size, size_t keep) {
  *pool = (struct pool){.payload_size = payload_size, .keep = keep};
}

static void drop_one(struct pool *pool) {
  struct result *result = pool->free;
  pool->free = result->next;
  pool->free_count--;
  pool->total--;
  free(result);
}

void pool_deinit(struct pool *pool) {
  while (pool->free)
    drop_one(pool);
  assert(pool->total == 0);
}

// The payload is left untouched: its pages are the thread's that first fills it, and a buffer that
// is promised and never needed costs none. Two hundred sessions that began at once were held up for
// a quarter of a second while the loop touched theirs.
static bool add_one(struct pool *pool) {
  size_t size = RECORD_SIZE + RESULT_HEADROOM + pool->payload_size;
  struct result *result = aligned_alloc(MEMORY_ALIGNMENT, (size + MEMORY_ALIGNMENT - 1) /
                                                              MEMORY_ALIGNMENT * MEMORY_ALIGNMENT);
  if (!result)
    return false;
  memset(result, 0, sizeof *result);
  result->payload_size = pool->payload_size;
  result->payload = (uint8_t *)result + RECORD_SIZE + RESULT_HEADROOM;
  result->next = pool->free;
  pool->free = result;
  pool->free_count++;
  pool->total++;
  return true;
}

bool pool_reserve(struct pool *pool) {
  if (pool->reserved == pool->total && !add_one(pool))
    return false;
  pool->reserved++;
  if (pool->peak < pool->reserved)
    pool->peak = pool->reserved;
  return true;
}

struct result *pool_take(struct pool *pool) {
  struct result *result = pool->free;
  assert(result);
  pool->free = result->next;
  pool->free_count--;
  result->next = NULL;
  return result;
}

void pool_unreserve(struct pool *pool) {
  assert(pool->reserved);
  pool->reserved--;
}

void pool_give(struct pool *pool, struct result *result) {
  result->track = NULL;
  result->next = pool->free;
  pool->free = result;
  pool->free_count++;
  pool_unreserve(pool);
}

void pool_trim(struct pool *pool) {
  size_t needed = pool->peak > pool->keep ? pool->peak : pool->keep;
  while (pool->free && pool->total > needed)
    drop_one(pool);
  pool->peak = pool->reserved;
}
