// SPDX-License-Identifier: Apache-2.0
// General products, by BLAS, and the reference. In a file of their own so that a program that only
// applies packed weights (the server) does not depend on BLAS at run time.
#include <cblas.h>
#include <string.h>

#include "nn/gemm.h"

void gemm_multiply(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, float alpha,
                   const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c,
                   size_t ldc) {
  cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
              transpose_b ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, alpha, a,
              (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}

void gemm_reference(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, float alpha,
                    const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c,
                    size_t ldc) {
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = 0;
      for (size_t l = 0; l < k; l++)
        sum += (double)(transpose_a ? a[l * lda + i] : a[i * lda + l]) *
               (transpose_b ? b[j * ldb + l] : b[l * ldb + j]);
      c[i * ldc + j] = (float)(alpha * sum + (beta == 0 ? 0 : beta * (double)c[i * ldc + j]));
    }
}

void gemm_blas_threads(int count) {
  openblas_set_num_threads(count);
}
