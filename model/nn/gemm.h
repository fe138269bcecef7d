// SPDX-License-Identifier: Apache-2.0
// The one seam through which every matrix product passes.
//
// Serving multiplies ever new inputs by the same weights, so the weights are packed once into
// panels (gemm_pack_*) and applied to any number of rows (gemm_apply). General products, whose
// operands both change, go to BLAS (gemm_multiply). gemm_reference is what tests compare with.
//
// Packed layout, after Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix
// Multiplication": outputs in panels of the kernel's width w, each panel [inputs][w], so that the
// kernel streams through memory while it holds a block of rows x w sums in registers.
//
// Each sum starts from the bias and adds its terms in the order of the inputs, one rounding a term,
// whatever the block it is in. A row's result is therefore bitwise the same in every batch, and the
// same on all levels that have fused multiply-add.
#ifndef DSNET_NN_GEMM_H
#define DSNET_NN_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "nn/simd.h"

// Parts of a product (gemm_apply_part) begin at multiples of this many outputs: a multiple of every
// kernel's panel width.
#define GEMM_PART 64

// Weights [outputs][inputs] and bias [outputs] in packed form. The storage is the caller's; const
// after packing, shared by all threads.
struct gemm_weights {
  enum simd_level level;
  size_t outputs, inputs;
  float *panels; // [ceil(outputs / w)][inputs][w], surplus outputs 0
  float *bias;   // [ceil(outputs / w)][w]
};

// Floats of storage that gemm_pack_begin takes.
size_t gemm_packed_size(enum simd_level level, size_t outputs, size_t inputs);

// Starts from all zeros in `storage` (gemm_packed_size floats, aligned to MEMORY_ALIGNMENT, kept by
// the caller as long as the weights).
void gemm_pack_begin(struct gemm_weights *weights, enum simd_level level, size_t outputs,
                     size_t inputs, float *storage);
// Sets inputs first .. first + count - 1 of one output.
void gemm_pack_row(struct gemm_weights *weights, size_t output, size_t first, const float *values,
                   size_t count);
void gemm_pack_bias(struct gemm_weights *weights, size_t output, float bias);

// y[r][o] = bias[o] + sum_i weight[o][i] * x[r][i]. x [rows] at a distance of x_stride floats; each
// row of the result has a place of its own (y[r] needs no alignment), so that a frame can be
// written straight into the buffer it is sent from. The results must not overlap x.
void gemm_apply(const struct gemm_weights *weights, size_t rows, const float *x, size_t x_stride,
                float *const *y);
// Only outputs first .. first + count - 1, `first` a multiple of GEMM_PART; y[r] is where output
// `first` goes.
void gemm_apply_part(const struct gemm_weights *weights, size_t first, size_t count, size_t rows,
                     const float *x, size_t x_stride, float *const *y);

// A product in instalments: some of the inputs at a time. With the bias first and the inputs in
// their order, the result is bitwise that of the whole product.
struct gemm_range {
  size_t output, outputs; // the first, a multiple of GEMM_PART, and how many
  size_t input, inputs;
  bool onward; // the sums go on from what y holds; otherwise they start from the bias
};
// x holds the inputs of the range alone.
void gemm_apply_range(const struct gemm_weights *weights, const struct gemm_range *range,
                      size_t rows, const float *x, size_t x_stride, float *const *y);

// c [m][n] = alpha op(a) op(b) + beta c, row-major, leading dimensions in floats; op(a) is [m][k],
// a is stored [k][m] when transposed (op(b) likewise). With beta 0, c is only written. By BLAS, on
// as many threads as it is set to (gemm_blas_threads). Weights that serve several products in a row
// are better packed: BLAS packs them anew in each.
//
// Nothing that serves a model calls this. OpenBLAS 0.3.21 (Debian 12) does not know processors
// younger than itself: it takes an AMD Zen 5 for Intel's Cooper Lake and runs AVX-512 kernels that
// its users have reported to crash there (OpenBLAS issue 5243). OPENBLAS_CORETYPE=Haswell in the
// environment chooses the AVX2 kernels; it is read before main() begins, so a program cannot set it
// for itself.
void gemm_multiply(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, float alpha,
                   const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c,
                   size_t ldc);
// The same by three loops in double precision.
void gemm_reference(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, float alpha,
                    const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c,
                    size_t ldc);

// Threads BLAS may use for one product, for the whole process. Its own default is one a core.
void gemm_blas_threads(int count);

#endif
