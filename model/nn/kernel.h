// SPDX-License-Identifier: Apache-2.0
// What a packed-product kernel is (internal to this folder): it multiplies a block of at most
// `rows` rows by a run of packed panels. gemm.c cuts a product into such blocks.
#ifndef DSNET_NN_KERNEL_H
#define DSNET_NN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#define KERNEL_WIDTH_MAX 64
#define KERNEL_ROWS_MAX  16

struct kernel_block {
  const float *panels; // [count], each [inputs][width]
  size_t panel_floats; // from one panel to the next
  const float *bias;   // [count][width]
  bool onward;         // sums start from what y holds instead
  size_t inputs, count;
  size_t rows; // 1 .. kernel's rows
  const float *x;
  size_t x_stride;
  float *const *y; // y[r] + column is where row r's first result goes
  size_t column;
};

struct kernel {
  size_t width; // outputs of a panel; divides GEMM_PART
  size_t rows;  // most rows of a block
  void (*multiply)(const struct kernel_block *block);
};

extern const struct kernel kernel_plain;
#if defined(__x86_64__)
extern const struct kernel kernel_avx2;
extern const struct kernel kernel_avx512;
#endif

// Loops over the registers of a kernel have constant bounds and must be unrolled completely, or the
// sums would live in memory.
#if defined(__clang__)
#define KERNEL_UNROLL _Pragma("unroll")
#else
#define KERNEL_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
