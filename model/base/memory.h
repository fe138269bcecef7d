// SPDX-License-Identifier: Apache-2.0
// Allocation with the products checked, and cache-line aligned blocks for arrays of numbers.
#ifndef DSNET_BASE_MEMORY_H
#define DSNET_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#define MEMORY_ALIGNMENT 64

// *product = a * b; false on overflow, and then *product is untouched.
bool memory_multiply(size_t a, size_t b, size_t *product);

// A zeroed block of count * size bytes, aligned to MEMORY_ALIGNMENT; free() releases it. NULL when
// the product overflows or memory is out. A count or size of 0 gives a valid block of no bytes.
void *memory_alloc(size_t count, size_t size);

#endif
