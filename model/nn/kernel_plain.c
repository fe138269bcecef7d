// SPDX-License-Identifier: Apache-2.0
// The packed product in plain C, for processors without a kernel of their own.
#include "nn/kernel.h"

enum { WIDTH = 16, ROWS = 4 };

// One row and one panel. WIDTH independent sums: any compiler makes what vectors it has of them.
static void multiply_row(const float *panel, const float *bias, size_t inputs, const float *x,
                         float *y) {
  float sum[WIDTH];
  for (size_t j = 0; j < WIDTH; j++)
    sum[j] = bias[j];
  for (size_t i = 0; i < inputs; i++)
    for (size_t j = 0; j < WIDTH; j++)
      sum[j] += panel[i * WIDTH + j] * x[i];
  for (size_t j = 0; j < WIDTH; j++)
    y[j] = sum[j];
}

static void multiply(const struct kernel_block *block) {
  for (size_t p = 0; p < block->count; p++)
    for (size_t r = 0; r < block->rows; r++)
      multiply_row(block->panels + p * block->inputs * WIDTH, block->bias + p * WIDTH,
                   block->inputs, block->x + r * block->x_stride,
                   block->y[r] + block->column + p * WIDTH);
}

const struct kernel kernel_plain = {.width = WIDTH, .rows = ROWS, .multiply = multiply};
