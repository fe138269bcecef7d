// SPDX-License-Identifier: Apache-2.0
// One session over many frames. Layer by layer: a layer's input products for a block of frames at
// once, then its recurrence step by step with its recurrent weights alone, which are half of them
// and stay in the cache.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "net/internal.h"

#define BLOCK 48 // frames; a multiple of the kernels' rows

struct net_stretch {
  size_t x_stride, y_stride;
  float *x;     // [BLOCK][x_stride] a layer's inputs
  float *y;     // [BLOCK][y_stride] h of the top layer, then, with a direct path, the features
  float *gates; // [BLOCK][4 H, padded]
  float *h;     // [BLOCK + 1][H] of the layer at hand; the first is that before the block
  float *gate_rows[BLOCK], *latent_rows[BLOCK];
};

int net_stretch_new(struct net_stretch **out, const struct net *net, struct dsnet_error *error) {
  const struct net_config *config = &net->config;
  size_t width = config->features->width, hidden = config->hidden;
  size_t gates = lstm_gates_size(&net->layers[0]);
  struct net_stretch *made = calloc(1, sizeof *made);
  if (!made)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  made->x_stride = width > hidden ? width : hidden;
  made->y_stride = hidden + width;
  made->x = memory_alloc(BLOCK * made->x_stride, sizeof(float));
  made->y = memory_alloc(BLOCK * made->y_stride, sizeof(float));
  made->gates = memory_alloc(BLOCK * gates, sizeof(float));
  made->h = memory_alloc((BLOCK + 1) * hidden, sizeof(float));
  if (!made->x || !made->y || !made->gates || !made->h) {
    net_stretch_free(made);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  for (size_t t = 0; t < BLOCK; t++)
    made->gate_rows[t] = made->gates + t * gates;
  *out = made;
  return 0;
}

void net_stretch_free(struct net_stretch *stretch) {
  if (!stretch)
    return;
  free(stretch->x);
  free(stretch->y);
  free(stretch->gates);
  free(stretch->h);
  free(stretch);
}

static void make_features(const struct net *net, struct net_stretch *stretch, float *memory,
                          size_t frames, const float *pose, const float *trans,
                          const float *betas) {
  const struct net_config *config = &net->config;
  size_t width = config->features->width;
  for (size_t t = 0; t < frames; t++) {
    float *x = stretch->x + t * stretch->x_stride;
    config->features->step(config->rate, pose + t * NET_POSE_SIZE, trans + t * 3, betas, memory, x);
    for (size_t i = 0; i < width; i++)
      x[i] = (x[i] - net->mean[i]) * net->scale[i];
    memcpy(stretch->y + t * stretch->y_stride + config->hidden, x, width * sizeof *x);
  }
}

// From x to h [1 .. frames]; h and c are the layer's state.
static void step_layer(const struct lstm_layer *layer, struct net_stretch *stretch, size_t frames,
                       float *h, float *c) {
  size_t hidden = layer->hidden;
  lstm_project(layer, frames, stretch->x, stretch->x_stride, stretch->gate_rows);
  memcpy(stretch->h, h, hidden * sizeof *h);
  for (size_t t = 0; t < frames; t++)
    lstm_advance(layer, stretch->gate_rows[t], stretch->h + t * hidden, c,
                 stretch->h + (t + 1) * hidden);
  memcpy(h, stretch->h + frames * hidden, hidden * sizeof *h);
}

// h of the layer just made to rows of `to`.
static void copy_hidden(const struct net_stretch *stretch, size_t hidden, size_t frames, float *to,
                        size_t stride) {
  for (size_t t = 0; t < frames; t++)
    memcpy(to + t * stride, stretch->h + (t + 1) * hidden, hidden * sizeof *to);
}

static void step_block(const struct net *net, struct net_stretch *stretch, float *state,
                       size_t frames, const float *pose, const float *trans, const float *betas,
                       float *latent) {
  const struct net_config *config = &net->config;
  size_t hidden = config->hidden, layers = config->layers;
  make_features(net, stretch, state + 2 * layers * hidden, frames, pose, trans, betas);
  for (size_t layer = 0; layer < layers; layer++) {
    if (layer)
      copy_hidden(stretch, hidden, frames, stretch->x, stretch->x_stride);
    float *h = state + 2 * layer * hidden;
    step_layer(&net->layers[layer], stretch, frames, h, h + hidden);
  }
  copy_hidden(stretch, hidden, frames, stretch->y, stretch->y_stride);
  for (size_t t = 0; t < frames; t++)
    stretch->latent_rows[t] = latent + t * config->latent;
  gemm_apply(&net->linear, frames, stretch->y, stretch->y_stride, stretch->latent_rows);
}

void net_step_stretch(const struct net *net, struct net_stretch *stretch, float *state,
                      size_t frames, const float *pose, const float *trans, const float *betas,
                      float *latent) {
  for (size_t done = 0; done < frames; done += BLOCK) {
    size_t count = frames - done < BLOCK ? frames - done : BLOCK;
    step_block(net, stretch, state, count, pose + done * NET_POSE_SIZE, trans + done * 3, betas,
               latent + done * net->config.latent);
  }
}
