// SPDX-License-Identifier: Apache-2.0
#include "nn/linear.h"

void linear_pack(struct gemm_weights *layer, enum simd_level level, size_t outputs, size_t inputs,
                 const float *weight, const float *bias, float *storage) {
  gemm_pack_begin(layer, level, outputs, inputs, storage);
  for (size_t o = 0; o < outputs; o++) {
    gemm_pack_row(layer, o, 0, weight + o * inputs, inputs);
    gemm_pack_bias(layer, o, bias[o]);
  }
}
