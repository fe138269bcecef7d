// SPDX-License-Identifier: Apache-2.0
#include "train/lstm_window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/activation.h"
#include "nn/gemm.h"

int lstm_window_init(struct lstm_window *window, size_t inputs, size_t hidden, size_t streams,
                     size_t frames, struct dsnet_error *error) {
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
  if (window->gates && window->h && window->c && window->tanh_c && window->dh && window->dc)
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
  memset(window, 0, sizeof *window);
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
  for (size_t row = 0; row < frames * streams; row++)
    memcpy(window->gates + row * gate_row, bias, gate_row * sizeof(float));
  gemm_multiply(false, true, frames * streams, gate_row, window->inputs, 1, x, window->inputs,
                weight_ih, window->inputs, 1, window->gates, gate_row);
  for (size_t t = 0; t < frames; t++) {
    size_t before = t * streams * hidden, now = before + streams * hidden;
    float *gates = window->gates + t * streams * gate_row;
    gemm_multiply(false, true, streams, gate_row, hidden, 1, window->h + before, hidden, weight_hh,
                  hidden, 1, gates, gate_row);
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
      gemm_multiply(false, false, streams, hidden, gate_row, 1, gates, gate_row, weight_hh, hidden,
                    0, window->dh, hidden);
  }
  size_t rows = frames * streams;
  gemm_multiply(true, false, gate_row, hidden, rows, 1, window->gates, gate_row, window->h, hidden,
                1, d_weight_hh, hidden);
  gemm_multiply(true, false, gate_row, window->inputs, rows, 1, window->gates, gate_row, x,
                window->inputs, 1, d_weight_ih, window->inputs);
  for (size_t r = 0; r < rows; r++)
    for (size_t k = 0; k < gate_row; k++)
      d_bias[k] += window->gates[r * gate_row + k];
  if (dx)
    gemm_multiply(false, false, rows, window->inputs, gate_row, 1, window->gates, gate_row,
                  weight_ih, window->inputs, 0, dx, window->inputs);
}
