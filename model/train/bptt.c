// SPDX-License-Identifier: Apache-2.0
#include "train/bptt.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/gemm.h"
#include "train/lstm_window.h"

struct bptt {
  struct weights_layout layout;
  size_t streams;
  struct lstm_window layers[WEIGHTS_LAYERS_MAX];
  float *dh; // [T][B][H] gradient at a layer's output, two of them in turn
  float *dh_below;
};

int bptt_new(struct bptt **out, const struct weights_layout *layout, size_t streams, size_t frames,
             struct dsnet_error *error) {
  *out = NULL;
  struct bptt *bptt = calloc(1, sizeof *bptt);
  if (!bptt)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  bptt->layout = *layout;
  bptt->streams = streams;
  int result = 0;
  for (size_t k = 0; result == 0 && k < layout->layers; k++)
    result = lstm_window_init(&bptt->layers[k], weights_layer_inputs(layout, k), layout->hidden,
                              streams, frames, k > 0, error);
  bptt->dh = memory_alloc(frames * streams * layout->hidden, sizeof(float));
  bptt->dh_below = memory_alloc(frames * streams * layout->hidden, sizeof(float));
  if (result == 0 && (!bptt->dh || !bptt->dh_below))
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a window");
  if (result < 0) {
    bptt_free(bptt);
    return result;
  }
  *out = bptt;
  return 0;
}

void bptt_free(struct bptt *bptt) {
  if (!bptt)
    return;
  for (size_t k = 0; k < WEIGHTS_LAYERS_MAX; k++)
    lstm_window_deinit(&bptt->layers[k]);
  free(bptt->dh);
  free(bptt->dh_below);
  free(bptt);
}

size_t bptt_state_size(const struct weights_layout *layout, size_t streams) {
  return layout->layers * 2 * streams * layout->hidden;
}

void bptt_state_reset(const struct weights_layout *layout, size_t streams, size_t stream,
                      float *state) {
  for (size_t part = 0; part < 2 * layout->layers; part++)
    memset(state + (part * streams + stream) * layout->hidden, 0, layout->hidden * sizeof(float));
}

// What the layer above sees of this one: h of each frame, without the state it started from.
static const float *layer_output(const struct bptt *bptt, size_t layer) {
  return bptt->layers[layer].h + bptt->streams * bptt->layout.hidden;
}

void bptt_forward(struct bptt *bptt, const float *weights, const float *x, size_t frames,
                  float *state, float *latents) {
  const struct weights_layout *layout = &bptt->layout;
  size_t block = bptt->streams * layout->hidden, rows = frames * bptt->streams;
  const float *input = x;
  for (size_t k = 0; k < layout->layers; k++) {
    struct lstm_window *layer = &bptt->layers[k];
    float *h = state + 2 * k * block, *c = h + block;
    memcpy(layer->h, h, block * sizeof(float));
    memcpy(layer->c, c, block * sizeof(float));
    lstm_window_forward(layer, weights + layout->weight_ih[k], weights + layout->weight_hh[k],
                        weights + layout->bias[k], input, frames);
    memcpy(h, layer->h + frames * block, block * sizeof(float));
    memcpy(c, layer->c + frames * block, block * sizeof(float));
    input = layer_output(bptt, k);
  }
  for (size_t r = 0; r < rows; r++)
    memcpy(latents + r * layout->latent, weights + layout->linear_bias,
           layout->latent * sizeof(float));
  gemm_multiply(false, true, rows, layout->latent, layout->hidden, 1, input, layout->hidden,
                weights + layout->linear_weight, layout->hidden, 1, latents, layout->latent);
  if (layout->skip)
    gemm_multiply(false, true, rows, layout->latent, layout->inputs, 1, x, layout->inputs,
                  weights + layout->skip_weight, layout->inputs, 1, latents, layout->latent);
}

// Gradients of the linear layer and the direct path; dh of the top layer.
static void output_backward(struct bptt *bptt, const float *weights, const float *x, size_t rows,
                            const float *d_latents, float *gradients) {
  const struct weights_layout *layout = &bptt->layout;
  size_t latent = layout->latent, hidden = layout->hidden;
  const float *top = layer_output(bptt, layout->layers - 1);
  gemm_multiply(true, false, latent, hidden, rows, 1, d_latents, latent, top, hidden, 1,
                gradients + layout->linear_weight, hidden);
  float *d_bias = gradients + layout->linear_bias;
  for (size_t r = 0; r < rows; r++)
    for (size_t z = 0; z < latent; z++)
      d_bias[z] += d_latents[r * latent + z];
  if (layout->skip)
    gemm_multiply(true, false, latent, layout->inputs, rows, 1, d_latents, latent, x,
                  layout->inputs, 1, gradients + layout->skip_weight, layout->inputs);
  gemm_multiply(false, false, rows, hidden, latent, 1, d_latents, latent,
                weights + layout->linear_weight, hidden, 0, bptt->dh, hidden);
}

void bptt_backward(struct bptt *bptt, const float *weights, const float *x, size_t frames,
                   const float *d_latents, float *gradients) {
  const struct weights_layout *layout = &bptt->layout;
  output_backward(bptt, weights, x, frames * bptt->streams, d_latents, gradients);
  for (size_t k = layout->layers; k-- > 0;) {
    const float *input = k ? layer_output(bptt, k - 1) : x;
    lstm_window_backward(&bptt->layers[k], weights + layout->weight_ih[k],
                         weights + layout->weight_hh[k], input, frames, bptt->dh,
                         gradients + layout->weight_ih[k], gradients + layout->weight_hh[k],
                         gradients + layout->bias[k], k ? bptt->dh_below : NULL);
    float *swap = bptt->dh;
    bptt->dh = bptt->dh_below;
    bptt->dh_below = swap;
  }
}
