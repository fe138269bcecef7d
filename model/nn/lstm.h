// SPDX-License-Identifier: Apache-2.0
// One LSTM layer, forward, for serving (Hochreiter and Schmidhuber 1997, in the form and gate order
// of PyTorch's nn.LSTM):
//   i, f, o = sigmoid(W x + U h + b)   g = tanh(W x + U h + b)
//   c' = f c + i g                     h' = o tanh(c')
// The two products are one, of [x | h] by [W | U], and the gates of sixteen units are adjacent in
// its result, so that gates and state are updated while the sums are in the first-level cache.
#ifndef DSNET_NN_LSTM_H
#define DSNET_NN_LSTM_H

#include <stddef.h>

#include "nn/gemm.h"

// Floats of working memory a row.
#define LSTM_SCRATCH GEMM_PART

struct lstm_layer {
  size_t inputs, hidden;
  struct gemm_weights weights; // storage is the caller's
};

// Floats of storage that lstm_pack takes.
size_t lstm_packed_size(enum simd_level level, size_t inputs, size_t hidden);

// weight_ih [4H][inputs], weight_hh [4H][H], bias_ih and bias_hh [4H], gates i, f, g, o. `storage`
// (aligned to MEMORY_ALIGNMENT) is kept by the caller as long as the layer.
void lstm_pack(struct lstm_layer *layer, enum simd_level level, size_t inputs, size_t hidden,
               const float *weight_ih, const float *weight_hh, const float *bias_ih,
               const float *bias_hh, float *storage);

// Advances `rows` sequences by one step. x [rows][inputs + H] is each row's input followed by its
// h; c[r] [H] is advanced in place and the new h is written to h[r] [H] (which must not overlap x).
// `scratch` points to LSTM_SCRATCH floats a row.
void lstm_step(const struct lstm_layer *layer, size_t rows, const float *x, size_t x_stride,
               float *const *c, float *const *h, float *const *scratch);

// The same for one sequence over a stretch of time. The products of the inputs do not depend on the
// steps before, so they are made for all steps at once; what is left for each step is the product
// of h. Results are bitwise those of lstm_step.
//
// Floats of the gates of one step.
size_t lstm_gates_size(const struct lstm_layer *layer);
// gates[t] = W x[t] + b, of `steps` inputs x at a distance of x_stride floats.
void lstm_project(const struct lstm_layer *layer, size_t steps, const float *x, size_t x_stride,
                  float *const *gates);
// One step from the gates that lstm_project made, which are used up. `before` is the previous h
// [H]; c [H] is advanced in place, the new h goes to `h` [H], which must not be `before`.
void lstm_advance(const struct lstm_layer *layer, float *gates, const float *before, float *c,
                  float *h);

#endif
