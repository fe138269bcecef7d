// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool memory_multiply(size_t a, size_t b, size_t *product) {
  return !__builtin_mul_overflow(a, b, product);
}

void *memory_alloc(size_t count, size_t size) {
  size_t bytes;
  if (!memory_multiply(count, size, &bytes) || bytes > SIZE_MAX / 2)
    return NULL;
  size_t rounded = (bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
  if (rounded == 0)
    rounded = MEMORY_ALIGNMENT;
  void *block = aligned_alloc(MEMORY_ALIGNMENT, rounded);
  if (block)
    memset(block, 0, rounded);
  return block;
}
