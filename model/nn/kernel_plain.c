// SPDX-License-Identifier: Apache-2.0
// The packed product in plain C, for processors without a kernel of their own.
#include "nn/kernel.h"
#include "nn/lanes.h"

enum { WIDTH = LANES, ROWS = 4 };

// `rows` is a constant where this is inlined, so that the sums can live in registers.
static inline __attribute__((always_inline)) void multiply_rows(const struct kernel_block *block,
                                                                const size_t rows) {
  for (size_t p = 0; p < block->count; p++) {
    const float *panel = block->panels + p * block->panel_floats;
    lanes sum[ROWS], weights;
    for (size_t r = 0; r < rows; r++)
      lanes_load(&sum[r], (block->onward ? block->y[r] + block->column : block->bias) + p * WIDTH);
    for (size_t i = 0; i < block->inputs; i++) {
      lanes_load(&weights, panel + i * WIDTH);
      for (size_t r = 0; r < rows; r++)
        sum[r] += weights * block->x[r * block->x_stride + i];
    }
    for (size_t r = 0; r < rows; r++)
      lanes_store(&sum[r], block->y[r] + block->column + p * WIDTH);
  }
}

static void multiply(const struct kernel_block *block) {
  switch (block->rows) {
  case 1:
    multiply_rows(block, 1);
    break;
  case 2:
    multiply_rows(block, 2);
    break;
  case 3:
    multiply_rows(block, 3);
    break;
  default:
    multiply_rows(block, ROWS);
  }
}

const struct kernel kernel_plain = {.width = WIDTH, .rows = ROWS, .multiply = multiply};
