// SPDX-License-Identifier: Apache-2.0
#include "nn/gemm.h"

#include <string.h>

#include "nn/kernel.h"

// Packed weights that are used again for the next block of rows should still be in the second-level
// cache; 256 KiB is half or less of it on the machines of the last ten years.
#define CACHE_FLOATS ((size_t)256 * 1024 / sizeof(float))

static const struct kernel *find_kernel(enum simd_level level) {
  switch (level) {
#if defined(__x86_64__)
  case SIMD_AVX2:
    return &kernel_avx2;
  case SIMD_AVX512:
    return &kernel_avx512;
#endif
  default:
    return &kernel_plain;
  }
}

static size_t divide_up(size_t a, size_t b) {
  return (a + b - 1) / b;
}

static size_t minimum(size_t a, size_t b) {
  return a < b ? a : b;
}

size_t gemm_packed_size(enum simd_level level, size_t outputs, size_t inputs) {
  size_t width = find_kernel(level)->width;
  return divide_up(outputs, width) * width * (inputs + 1);
}

void gemm_pack_begin(struct gemm_weights *weights, enum simd_level level, size_t outputs,
                     size_t inputs, float *storage) {
  size_t width = find_kernel(level)->width;
  memset(storage, 0, gemm_packed_size(level, outputs, inputs) * sizeof *storage);
  *weights = (struct gemm_weights){
      .level = level,
      .outputs = outputs,
      .inputs = inputs,
      .panels = storage,
      .bias = storage + divide_up(outputs, width) * width * inputs,
  };
}

void gemm_pack_row(struct gemm_weights *weights, size_t output, size_t first, const float *values,
                   size_t count) {
  size_t width = find_kernel(weights->level)->width;
  float *to = weights->panels + output / width * width * weights->inputs + output % width;
  for (size_t i = 0; i < count; i++)
    to[(first + i) * width] = values[i];
}

void gemm_pack_bias(struct gemm_weights *weights, size_t output, float bias) {
  weights->bias[output] = bias;
}

// A last panel that is not full: the kernel writes whole panels, so it writes beside the result.
static void multiply_ragged(const struct kernel *kernel, const struct kernel_block *block,
                            size_t columns) {
  float tile[KERNEL_ROWS_MAX * KERNEL_WIDTH_MAX] = {0};
  float *rows[KERNEL_ROWS_MAX];
  for (size_t r = 0; r < block->rows; r++)
    rows[r] = tile + r * kernel->width;
  struct kernel_block aside = *block;
  aside.y = rows;
  aside.column = 0;
  for (size_t r = 0; r < block->rows && block->onward; r++)
    memcpy(rows[r], block->y[r] + block->column, columns * sizeof(float));
  kernel->multiply(&aside);
  for (size_t r = 0; r < block->rows; r++)
    memcpy(block->y[r] + block->column, rows[r], columns * sizeof(float));
}

// All rows by a run of panels that fits the cache. Blocks of rows are made as even as they can be:
// a block of few rows leaves most of the multipliers idle.
static void multiply_tile(const struct kernel *kernel, struct kernel_block block, size_t rows,
                          size_t columns) {
  size_t blocks = divide_up(rows, kernel->rows), full = columns / kernel->width;
  const float *panels = block.panels, *bias = block.bias, *x = block.x;
  float *const *y = block.y;
  size_t column = block.column;
  for (size_t b = 0; b < blocks; b++) {
    size_t first = b * rows / blocks;
    block.rows = (b + 1) * rows / blocks - first;
    block.x = x + first * block.x_stride;
    block.y = y + first;
    block.panels = panels;
    block.bias = bias;
    block.column = column;
    block.count = full;
    if (full)
      kernel->multiply(&block);
    if (full * kernel->width == columns)
      continue;
    block.panels += full * block.panel_floats;
    block.bias += full * kernel->width;
    block.column += full * kernel->width;
    block.count = 1;
    multiply_ragged(kernel, &block, columns - full * kernel->width);
  }
}

void gemm_apply_range(const struct gemm_weights *weights, const struct gemm_range *range,
                      size_t rows, const float *x, size_t x_stride, float *const *y) {
  const struct kernel *kernel = find_kernel(weights->level);
  size_t panel = kernel->width * range->inputs;
  size_t tile = panel < CACHE_FLOATS ? CACHE_FLOATS / panel * kernel->width : kernel->width;
  for (size_t done = 0; done < range->outputs; done += tile) {
    size_t at = range->output + done;
    struct kernel_block block = {
        .panels = weights->panels + at * weights->inputs + range->input * kernel->width,
        .panel_floats = kernel->width * weights->inputs,
        .bias = weights->bias + at,
        .onward = range->onward,
        .inputs = range->inputs,
        .x = x,
        .x_stride = x_stride,
        .y = y,
        .column = done,
    };
    multiply_tile(kernel, block, rows, minimum(tile, range->outputs - done));
  }
}

void gemm_apply_part(const struct gemm_weights *weights, size_t first, size_t count, size_t rows,
                     const float *x, size_t x_stride, float *const *y) {
  const struct gemm_range range = {.output = first, .outputs = count, .inputs = weights->inputs};
  gemm_apply_range(weights, &range, rows, x, x_stride, y);
}

void gemm_apply(const struct gemm_weights *weights, size_t rows, const float *x, size_t x_stride,
                float *const *y) {
  gemm_apply_part(weights, 0, weights->outputs, rows, x, x_stride, y);
}
