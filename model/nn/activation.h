// SPDX-License-Identifier: Apache-2.0
// The logistic function and tanh of arrays, to 1e-6 absolute. A number never gives NaN: they
// saturate, infinities included.
#ifndef DSNET_NN_ACTIVATION_H
#define DSNET_NN_ACTIVATION_H

#include <stddef.h>

#include "nn/simd.h"

// values[i] = 1 / (1 + e^-values[i]), in place.
void activation_sigmoid(enum simd_level level, float *values, size_t count);
// values[i] = tanh(values[i]), in place.
void activation_tanh(enum simd_level level, float *values, size_t count);

#endif
