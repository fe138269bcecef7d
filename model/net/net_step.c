// SPDX-License-Identifier: Apache-2.0
// The batched step. Sessions' states are scattered; each layer's input rows are gathered from them,
// and the layer writes the new state straight back. Everything else is a product by packed weights,
// whose rows do not depend on each other: an item's result is bitwise the same in every batch.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "net/internal.h"

// Rows one or more whole cache lines apart, but not a power of two of them, which would put the
// rows of a block into the same few sets of the cache.
static size_t row_stride(size_t floats) {
  size_t lines = (floats * sizeof(float) + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT;
  return (lines | 1) * MEMORY_ALIGNMENT / sizeof(float);
}

struct net_scratch {
  size_t max_batch;
  size_t x_stride, z_stride, y_stride;
  float *x;     // [max_batch][x_stride] a layer's inputs: what is below it, then its h
  float *z;     // [max_batch][z_stride] latents
  float *y;     // [max_batch][y_stride] h of the top layer, then the features; NULL without direct
                // path
  float *gates; // [max_batch][LSTM_SCRATCH]
  float **h;    // [max_batch] into the items' states, for the layer at hand
  float **c;    // the same
  float **rows; // [max_batch] where a product's rows go
  float **gate; // [max_batch] into gates
};

size_t net_state_size(const struct net *net) {
  return 2 * net->config.layers * net->config.hidden + net->config.features->memory;
}

int net_scratch_new(struct net_scratch **scratch, const struct net *net, size_t max_batch,
                    struct dsnet_error *error) {
  const struct net_config *config = &net->config;
  size_t below =
      config->hidden > config->features->width ? config->hidden : config->features->width;
  if (max_batch < 1 || max_batch > NET_BATCH_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "a batch of %zu; 1 to %d are supported", max_batch,
                           NET_BATCH_MAX);
  struct net_scratch *made = calloc(1, sizeof *made);
  if (!made)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  made->max_batch = max_batch;
  made->x_stride = row_stride(below + config->hidden);
  made->z_stride = row_stride(config->latent);
  made->x = memory_alloc(max_batch * made->x_stride, sizeof(float));
  made->z = memory_alloc(max_batch * made->z_stride, sizeof(float));
  made->y_stride = row_stride(config->hidden + config->features->width);
  if (config->skip)
    made->y = memory_alloc(max_batch * made->y_stride, sizeof(float));
  made->gates = memory_alloc(max_batch * LSTM_SCRATCH, sizeof(float));
  made->h = calloc(max_batch, sizeof *made->h);
  made->c = calloc(max_batch, sizeof *made->c);
  made->rows = calloc(max_batch, sizeof *made->rows);
  made->gate = calloc(max_batch, sizeof *made->gate);
  if (!made->x || !made->z || !made->gates || !made->h || !made->c || !made->rows || !made->gate ||
      (config->skip && !made->y)) {
    net_scratch_free(made);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a batch of %zu", max_batch);
  }
  for (size_t r = 0; r < max_batch; r++)
    made->gate[r] = made->gates + r * LSTM_SCRATCH;
  *scratch = made;
  return 0;
}

void net_scratch_free(struct net_scratch *scratch) {
  if (!scratch)
    return;
  free(scratch->x);
  free(scratch->z);
  free(scratch->y);
  free(scratch->gates);
  free(scratch->h);
  free(scratch->c);
  free(scratch->rows);
  free(scratch->gate);
  free(scratch);
}

// State: h and c of each layer, then the features' memory.
static float *state_h(const struct net *net, float *state, size_t layer) {
  return state + 2 * layer * net->config.hidden;
}

static float *state_c(const struct net *net, float *state, size_t layer) {
  return state_h(net, state, layer) + net->config.hidden;
}

static float *state_memory(const struct net *net, float *state) {
  return state + 2 * net->config.layers * net->config.hidden;
}

void net_restart_motion(const struct net *net, float *state) {
  memset(state_memory(net, state), 0, net->config.features->memory * sizeof *state);
}

void net_step_features(const struct net *net, struct net_scratch *scratch,
                       const struct net_item *items, size_t count) {
  const struct net_config *config = &net->config;
  for (size_t r = 0; r < count; r++) {
    float *x = scratch->x + r * scratch->x_stride;
    config->features->step(config->rate, items[r].pose, items[r].trans, items[r].betas,
                           state_memory(net, items[r].state), x);
    for (size_t i = 0; i < config->features->width; i++)
      x[i] = (x[i] - net->mean[i]) * net->scale[i];
    if (config->skip)
      memcpy(scratch->y + r * scratch->y_stride + config->hidden, x,
             config->features->width * sizeof *x);
  }
}

void net_step_layer(const struct net *net, struct net_scratch *scratch,
                    const struct net_item *items, size_t count, size_t layer) {
  size_t hidden = net->config.hidden, inputs = net->layers[layer].inputs;
  for (size_t r = 0; r < count; r++) {
    float *x = scratch->x + r * scratch->x_stride;
    scratch->h[r] = state_h(net, items[r].state, layer);
    scratch->c[r] = state_c(net, items[r].state, layer);
    if (layer)
      memcpy(x, state_h(net, items[r].state, layer - 1), hidden * sizeof *x);
    memcpy(x + inputs, scratch->h[r], hidden * sizeof *x);
  }
  lstm_step(&net->layers[layer], count, scratch->x, scratch->x_stride, scratch->c, scratch->h,
            scratch->gate);
}

void net_step_latents(const struct net *net, struct net_scratch *scratch,
                      const struct net_item *items, size_t count) {
  float *inputs = net->config.skip ? scratch->y : scratch->x;
  size_t stride = net->config.skip ? scratch->y_stride : scratch->x_stride;
  for (size_t r = 0; r < count; r++) {
    memcpy(inputs + r * stride, state_h(net, items[r].state, net->config.layers - 1),
           net->config.hidden * sizeof(float));
    scratch->rows[r] = scratch->z + r * scratch->z_stride;
  }
  gemm_apply(&net->linear, count, inputs, stride, scratch->rows);
}

// The rows of the items that want a displacement are moved together, over those that do not.
void net_step_decode(const struct net *net, struct net_scratch *scratch,
                     const struct net_item *items, size_t count) {
  size_t wanted = 0, bytes = net->config.latent * sizeof(float);
  for (size_t r = 0; r < count; r++) {
    const float *z = scratch->z + r * scratch->z_stride;
    if (items[r].latent)
      memcpy(items[r].latent, z, bytes);
    if (!items[r].displacement)
      continue;
    if (wanted < r)
      memcpy(scratch->z + wanted * scratch->z_stride, z, bytes);
    scratch->rows[wanted++] = items[r].displacement;
  }
  if (wanted)
    gemm_apply(&net->decoder, wanted, scratch->z, scratch->z_stride, scratch->rows);
}

void net_step(const struct net *net, struct net_scratch *scratch, const struct net_item *items,
              size_t count) {
  net_step_features(net, scratch, items, count);
  for (size_t layer = 0; layer < net->config.layers; layer++)
    net_step_layer(net, scratch, items, count, layer);
  net_step_latents(net, scratch, items, count);
  net_step_decode(net, scratch, items, count);
}

void net_decode(const struct net *net, const float *latent, float *displacement) {
  gemm_apply(&net->decoder, 1, latent, net->config.latent, &displacement);
}
