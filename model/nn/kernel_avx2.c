// SPDX-License-Identifier: Apache-2.0
// The packed product for AVX2 and FMA: up to 6 rows x 16 outputs in twelve of the sixteen
// registers. Few rows take several panels at once instead, because a sum can only be added to every
// fourth cycle or so and eight independent ones keep both multipliers busy.
#include "nn/kernel.h"
#include "nn/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { LANES = 8, VECTORS = 2, WIDTH = LANES * VECTORS, ROWS = 6 };

// `rows` and `panels` are constants where this is inlined.
static inline __attribute__((always_inline)) SIMD_TARGET_AVX2 void
multiply_panels(const struct kernel_block *block, size_t first, const size_t rows,
                const size_t panels) {
  const size_t inputs = block->inputs, vectors = panels * VECTORS, stride = block->x_stride;
  const size_t apart = block->panel_floats;
  const float *panel = block->panels + first * apart;
  const float *x = block->x;
  __m256 sum[ROWS][4 * VECTORS];
  KERNEL_UNROLL
  for (size_t r = 0; r < rows; r++) {
    const float *from = block->onward ? block->y[r] + block->column : block->bias;
    KERNEL_UNROLL
    for (size_t j = 0; j < vectors; j++)
      sum[r][j] = _mm256_loadu_ps(from + first * WIDTH + j * LANES);
  }
  for (size_t i = 0; i < inputs; i++) {
    __m256 in[ROWS];
    if (panels > 1) {
      KERNEL_UNROLL
      for (size_t r = 0; r < rows; r++)
        in[r] = _mm256_broadcast_ss(x + r * stride + i);
      KERNEL_UNROLL
      for (size_t j = 0; j < vectors; j++) {
        __m256 w = _mm256_loadu_ps(panel + j / VECTORS * apart + i * WIDTH + j % VECTORS * LANES);
        KERNEL_UNROLL
        for (size_t r = 0; r < rows; r++)
          sum[r][j] = _mm256_fmadd_ps(in[r], w, sum[r][j]);
      }
    } else {
      __m256 w0 = _mm256_loadu_ps(panel + i * WIDTH);
      __m256 w1 = _mm256_loadu_ps(panel + i * WIDTH + LANES);
      KERNEL_UNROLL
      for (size_t r = 0; r < rows; r++) {
        in[0] = _mm256_broadcast_ss(x + r * stride + i);
        sum[r][0] = _mm256_fmadd_ps(in[0], w0, sum[r][0]);
        sum[r][1] = _mm256_fmadd_ps(in[0], w1, sum[r][1]);
      }
    }
  }
  KERNEL_UNROLL
  for (size_t r = 0; r < rows; r++) {
    float *y = block->y[r] + block->column + first * WIDTH;
    KERNEL_UNROLL
    for (size_t j = 0; j < vectors; j++)
      _mm256_storeu_ps(y + j * LANES, sum[r][j]);
  }
}

// ROWS_ rows, PANELS at once as far as they go, the rest one by one.
#define DEFINE_MULTIPLY(ROWS_, PANELS)                                                             \
  static SIMD_TARGET_AVX2 void multiply_##ROWS_(const struct kernel_block *block) {                \
    size_t p = 0;                                                                                  \
    for (; p + (PANELS) <= block->count; p += (PANELS))                                            \
      multiply_panels(block, p, ROWS_, PANELS);                                                    \
    for (; p < block->count; p++)                                                                  \
      multiply_panels(block, p, ROWS_, 1);                                                         \
  }
DEFINE_MULTIPLY(1, 4)
DEFINE_MULTIPLY(2, 2)
DEFINE_MULTIPLY(3, 2)
DEFINE_MULTIPLY(4, 1)
DEFINE_MULTIPLY(5, 1)
DEFINE_MULTIPLY(6, 1)

static void multiply(const struct kernel_block *block) {
  static void (*const by_rows[ROWS])(const struct kernel_block *) = {
      multiply_1, multiply_2, multiply_3, multiply_4, multiply_5, multiply_6};
  by_rows[block->rows - 1](block);
}

const struct kernel kernel_avx2 = {.width = WIDTH, .rows = ROWS, .multiply = multiply};
#endif
