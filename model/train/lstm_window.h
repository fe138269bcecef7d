// SPDX-License-Identifier: Apache-2.0
// One LSTM layer over a window of frames, forward and backward: back-propagation through time
// (Werbos 1990) for a batch of streams. With sigma the logistic function and * elementwise,
//
//   i, f, o = sigma(W_ih x_t + W_hh h_{t-1} + b)   g = tanh(...)   (Hochreiter and Schmidhuber
//   1997) c_t = f * c_{t-1} + i * g                      h_t = o * tanh(c_t)
//
// T frames, B streams, H hidden units, F inputs; time is the slowest axis, so that a frame of all
// streams is one matrix and a whole window is one tall matrix.
#ifndef DSNET_TRAIN_LSTM_WINDOW_H
#define DSNET_TRAIN_LSTM_WINDOW_H

#include <stddef.h>

#include "base/error.h"
#include "nn/gemm.h"

// What the forward pass keeps for the backward pass. Visible to train/ and its tests.
struct lstm_window {
  size_t inputs, hidden, streams, frames; // frames: the most a window may have
  float *gates;  // [T][B][4H]: after forward i, f, g, o; after backward the loss's gradient at them
  float *h;      // [T+1][B][H]: h[0] is the state the window starts from
  float *c;      // [T+1][B][H]
  float *tanh_c; // [T][B][H]
  float *dh;     // [B][H] gradient that comes from the next frame
  float *dc;     // [B][H]
  float *sums;   // [B][4H] what the state before adds to the gates
  float **rows;  // [T B] where the rows of a product go
  // The weights as the products of a window need them, packed once for all its frames: from inputs
  // to gates and back.
  struct gemm_weights ih, hh, ih_back, hh_back;
  float *packed_ih, *packed_hh, *packed_ih_back, *packed_hh_back;
};

// `back_to_inputs`: the backward pass will be asked for dx.
int lstm_window_init(struct lstm_window *window, size_t inputs, size_t hidden, size_t streams,
                     size_t frames, bool back_to_inputs, struct dsnet_error *error);
void lstm_window_deinit(struct lstm_window *window);

// From h[0] and c[0], which the caller has set, and x [frames][B][F].
void lstm_window_forward(struct lstm_window *window, const float *weight_ih, const float *weight_hh,
                         const float *bias, const float *x, size_t frames);

// After forward with the same arguments: from dh_out [frames][B][H], the gradient of the loss at
// h[1..], adds to the gradients of the weights and writes dx [frames][B][F] unless it is NULL
// (which it must be without back_to_inputs). The gradient stops at the window's start (truncated
// back-propagation: the state carried over is taken as given).
void lstm_window_backward(struct lstm_window *window, const float *weight_ih,
                          const float *weight_hh, const float *x, size_t frames,
                          const float *dh_out, float *d_weight_ih, float *d_weight_hh,
                          float *d_bias, float *dx);

#endif
