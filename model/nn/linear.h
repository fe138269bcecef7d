// SPDX-License-Identifier: Apache-2.0
// A linear layer with constant weights, as PyTorch's nn.Linear: y = W x + b.
#ifndef DSNET_NN_LINEAR_H
#define DSNET_NN_LINEAR_H

#include <stddef.h>

#include "nn/gemm.h"

// Packs weight [outputs][inputs] and bias [outputs] into `storage`: gemm_packed_size floats,
// aligned to MEMORY_ALIGNMENT, kept by the caller as long as `layer`. Apply with gemm_apply.
void linear_pack(struct gemm_weights *layer, enum simd_level level, size_t outputs, size_t inputs,
                 const float *weight, const float *bias, float *storage);

#endif
