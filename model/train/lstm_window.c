// SPDX-License-Identifier: Apache-2.0
#include "train/lstm_window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/activation.h"

// Rows of one product: with more, the inputs would leave the cache before the next panel of weights
// needs them.
#define ROWS_TOGETHER 64

static float *packed_new(size_t outputs, size_t inputs) {
  return memory_alloc(gemm_packed_size(simd_best(), outputs, inputs), sizeof(float));
}

int lstm_window_init(struct lstm_window *window, size_t inputs, size_t hidden, size_t streams,
                     size_t frames, bool back_to_inputs, struct dsnet_error *error) {
  memset(window, 0, sizeof *window);
  window->inputs = inputs;
  window->hidden = hidden;
  window->streams = streams;
  window->frames = frames;
  size_t row = streams * hidden; // sizes are bounded by the caller's options
  window->gates = memory_alloc(frames * row * 4, sizeof(float));
  window->h = memory_alloc((frames + 1) * row, sizeof(float));
  window->c = memory_alloc((frames + 1) * row, sizeof(float));
  window->tanh_c = memory_alloc(frames * row, sizeof(float));
  window->dh = memory_alloc(row, sizeof(float));
  window->dc = memory_alloc(row, sizeof(float));
  window->sums = memory_alloc(row * 4, sizeof(float));
  window->rows = calloc(frames * streams, sizeof *window->rows);
  window->packed_ih = packed_new(4 * hidden, inputs);
  window->packed_hh = packed_new(4 * hidden, hidden);
  window->packed_hh_back = packed_new(hidden, 4 * hidden);
  if (back_to_inputs)
    window->packed_ih_back = packed_new(inputs, 4 * hidden);
  if (window->gates && window->h && window->c && window->tanh_c && window->dh && window->dc &&
      window->sums && window->rows && window->packed_ih && window->packed_hh &&
      window->packed_hh_back && (window->packed_ih_back || !back_to_inputs))
    return 0;
  lstm_window_deinit(window);
  return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a window of %zu frames", frames);
}

void lstm_window_deinit(struct lstm_window *window) {
  free(window->gates);
  free(window->h);
  free(window->c);
  free(window->tanh_c);
  free(window->dh);
  free(window->dc);
  free(window->sums);
  free(window->rows);
  free(window->packed_ih);
  free(window->packed_hh);
  free(window->packed_ih_back);
  free(window->packed_hh_back);
  memset(window, 0, sizeof *window);
}

// weight [outputs][inputs] as it is, or turned over: then a product with its transpose.
static void pack(struct gemm_weights *packed, float *storage, const float *weight, size_t outputs,
                 size_t inputs) {
  gemm_pack_begin(packed, simd_best(), outputs, inputs, storage);
  for (size_t o = 0; o < outputs; o++)
    gemm_pack_row(packed, o, 0, weight + o * inputs, inputs);
}

static void pack_transposed(struct gemm_weights *packed, float *storage, const float *weight,
                            size_t outputs, size_t inputs) {
  gemm_pack_begin(packed, simd_best(), inputs, outputs, storage);
  for (size_t o = 0; o < outputs; o++)
    for (size_t i = 0; i < inputs; i++)
      gemm_pack_row(packed, i, o, weight + o * inputs + i, 1);
}

// y [rows][outputs] = x [rows][inputs] times the weights, plus their bias.
static void multiply(struct lstm_window *window, const struct gemm_weights *weights, size_t rows,
                     const float *x, float *y) {
  for (size_t r = 0; r < rows; r++)
    window->rows[r] = y + r * weights->outputs;
  for (size_t r = 0; r < rows; r += ROWS_TOGETHER)
    gemm_apply(weights, rows - r < ROWS_TOGETHER ? rows - r : ROWS_TOGETHER,
               x + r * weights->inputs, weights->inputs, window->rows + r);
}

// gates [4H] from their sums; c, tanh_c and h of one stream and frame.
static void cell_forward(enum simd_level level, size_t hidden, float *gates, const float *c_before,
                         float *c, float *tanh_c, float *h) {
  const float *i = gates, *f = gates + hidden, *g = gates + 2 * hidden, *o = gates + 3 * hidden;
  activation_sigmoid(level, gates, 2 * hidden);
  activation_tanh(level, gates + 2 * hidden, hidden);
  activation_sigmoid(level, gates + 3 * hidden, hidden);
  for (size_t k = 0; k < hidden; k++)
    tanh_c[k] = c[k] = f[k] * c_before[k] + i[k] * g[k];
  activation_tanh(level, tanh_c, hidden);
  for (size_t k = 0; k < hidden; k++)
    h[k] = o[k] * tanh_c[k];
}

void lstm_window_forward(struct lstm_window *window, const float *weight_ih, const float *weight_hh,
                         const float *bias, const float *x, size_t frames) {
  size_t hidden = window->hidden, streams = window->streams, gate_row = 4 * hidden;
  enum simd_level level = simd_best();
  pack(&window->ih, window->packed_ih, weight_ih, gate_row, window->inputs);
  for (size_t k = 0; k < gate_row; k++)
    gemm_pack_bias(&window->ih, k, bias[k]);
  pack(&window->hh, window->packed_hh, weight_hh, gate_row, hidden);
  multiply(window, &window->ih, frames * streams, x, window->gates);
  for (size_t t = 0; t < frames; t++) {
    size_t before = t * streams * hidden, now = before + streams * hidden;
    float *gates = window->gates + t * streams * gate_row;
    multiply(window, &window->hh, streams, window->h + before, window->sums);
    for (size_t k = 0; k < streams * gate_row; k++)
      gates[k] += window->sums[k];
    for (size_t b = 0; b < streams; b++)
      cell_forward(level, hidden, gates + b * gate_row, window->c + before + b * hidden,
                   window->c + now + b * hidden, window->tanh_c + before + b * hidden,
                   window->h + now + b * hidden);
  }
}

// Replaces the gates by the gradient at their sums. dh is complete; dc comes in as what the next
// frame sent and goes out as what the frame before receives.
static void cell_backward(size_t hidden, float *gates, const float *c_before, const float *tanh_c,
                          const float *dh, float *dc) {
  float *gi = gates, *gf = gates + hidden, *gg = gates + 2 * hidden, *go = gates + 3 * hidden;
  for (size_t k = 0; k < hidden; k++) {
    float i = gi[k], f = gf[k], g = gg[k], o = go[k], t = tanh_c[k];
    float d = dc[k] + dh[k] * o * (1 - t * t);
    go[k] = dh[k] * t * o * (1 - o);
    gi[k] = d * g * i * (1 - i);
    gf[k] = d * c_before[k] * f * (1 - f);
    gg[k] = d * i * (1 - g * g);
    dc[k] = d * f;
  }
}

void lstm_window_backward(struct lstm_window *window, const float *weight_ih,
                          const float *weight_hh, const float *x, size_t frames,
                          const float *dh_out, float *d_weight_ih, float *d_weight_hh,
                          float *d_bias, float *dx) {
  size_t hidden = window->hidden, streams = window->streams, gate_row = 4 * hidden;
  size_t row = streams * hidden;
  pack_transposed(&window->hh_back, window->packed_hh_back, weight_hh, gate_row, hidden);
  memset(window->dh, 0, row * sizeof(float));
  memset(window->dc, 0, row * sizeof(float));
  for (size_t t = frames; t-- > 0;) {
    float *gates = window->gates + t * streams * gate_row;
    for (size_t k = 0; k < row; k++)
      window->dh[k] += dh_out[t * row + k];
    for (size_t b = 0; b < streams; b++)
      cell_backward(hidden, gates + b * gate_row, window->c + t * row + b * hidden,
                    window->tanh_c + t * row + b * hidden, window->dh + b * hidden,
                    window->dc + b * hidden);
    if (t)
      multiply(window, &window->hh_back, streams, gates, window->dh);
  }
  size_t rows = frames * streams;
  gemm_multiply(true, false, gate_row, hidden, rows, 1, window->gates, gate_row, window->h, hidden,
                1, d_weight_hh, hidden);
  gemm_multiply(true, false, gate_row, window->inputs, rows, 1, window->gates, gate_row, x,
                window->inputs, 1, d_weight_ih, window->inputs);
  for (size_t r = 0; r < rows; r++)
    for (size_t k = 0; k < gate_row; k++)
      d_bias[k] += window->gates[r * gate_row + k];
  if (!dx)
    return;
  pack_transposed(&window->ih_back, window->packed_ih_back, weight_ih, gate_row, window->inputs);
  multiply(window, &window->ih_back, rows, window->gates, dx);
}
