// SPDX-License-Identifier: Apache-2.0
// Layout, checks and packing of a network's weights.
#include "net/net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/half.h"
#include "net/internal.h"
#include "nn/linear.h"

// Tensors and packed weights each begin at a cache line.
#define LINE (MEMORY_ALIGNMENT / sizeof(float))

static size_t round_up(size_t count) {
  return (count + LINE - 1) / LINE * LINE;
}

static size_t layer_inputs(const struct net_config *config, size_t layer) {
  return layer ? config->hidden : config->features->width;
}

static int check_size(const char *what, size_t value, size_t low, size_t high,
                      struct dsnet_error *error) {
  if (value < low || value > high)
    return dsnet_error_set(error, DSNET_ELIMIT, "%zu %s; %zu to %zu are supported", value, what,
                           low, high);
  return 0;
}

static int check_config(const struct net_config *config, struct dsnet_error *error) {
  int code = check_size("layers", config->layers, 1, NET_LAYERS_MAX, error);
  if (!code)
    code = check_size("hidden units", config->hidden, NET_HIDDEN_MIN, NET_HIDDEN_MAX, error);
  if (!code)
    code = check_size("latents", config->latent, 1, NET_LATENT_MAX, error);
  if (!code)
    code = check_size("vertices", config->vertices, 1, NET_VERTICES_MAX, error);
  return code;
}

static void add_tensor(struct net *net, const char *name, size_t rows, size_t columns,
                       bool optional) {
  struct net_tensor *tensor = &net->tensors[net->tensor_count++];
  snprintf(tensor->name, sizeof tensor->name, "%s", name);
  tensor->dimensions = columns ? 2 : 1;
  tensor->shape[0] = rows;
  tensor->shape[1] = columns;
  tensor->count = rows * (columns ? columns : 1);
  tensor->optional = optional;
}

static void add_layer(struct net *net, size_t layer) {
  static const struct {
    const char *name;
    bool matrix, recurrent;
  } parts[4] = {{"weight_ih", true, false},
                {"weight_hh", true, true},
                {"bias_ih", false, false},
                {"bias_hh", false, false}};
  for (size_t i = 0; i < 4; i++) {
    char name[32];
    size_t hidden = net->config.hidden;
    size_t inputs = parts[i].recurrent ? hidden : layer_inputs(&net->config, layer);
    snprintf(name, sizeof name, "lstm.%s_l%zu", parts[i].name, layer);
    add_tensor(net, name, 4 * hidden, parts[i].matrix ? inputs : 0, false);
  }
}

// The order here is the order in a saved file, and layer_tensors counts on it.
static void add_tensors(struct net *net) {
  const struct net_config *config = &net->config;
  for (size_t layer = 0; layer < config->layers; layer++)
    add_layer(net, layer);
  add_tensor(net, "linear.weight", config->latent, config->hidden, false);
  add_tensor(net, "linear.bias", config->latent, 0, false);
  add_tensor(net, "decoder.weight", 3 * config->vertices, config->latent, false);
  add_tensor(net, "decoder.bias", 3 * config->vertices, 0, false);
  add_tensor(net, "features.mean", config->features->width, 0, true);
  add_tensor(net, "features.scale", config->features->width, 0, true);
  if (config->skip)
    add_tensor(net, "skip.weight", config->latent, config->features->width, false);
}

static const struct net_tensor *layer_tensors(const struct net *net, size_t layer) {
  return &net->tensors[4 * layer];
}

struct net_tensor *net_tensor_find(struct net *net, const char *name) {
  for (size_t i = 0; i < net->tensor_count; i++)
    if (!strcmp(net->tensors[i].name, name))
      return &net->tensors[i];
  return NULL;
}

int net_allocate(struct net **net, const struct net_config *config, struct dsnet_error *error) {
  int code = check_config(config, error);
  if (code)
    return code;
  struct net *made = calloc(1, sizeof *made);
  if (!made)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  made->config = *config;
  add_tensors(made);
  size_t total = 0; // no overflow: every size has a bound
  for (size_t i = 0; i < made->tensor_count; i++)
    total += round_up(made->tensors[i].count);
  made->block = memory_alloc(total, sizeof *made->block);
  if (!made->block) {
    net_free(made);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for %zu weights", total);
  }
  float *at = made->block;
  for (size_t i = 0; i < made->tensor_count; i++) {
    made->tensors[i].data = at;
    at += round_up(made->tensors[i].count);
  }
  float *scale = net_tensor_find(made, "features.scale")->data;
  for (size_t i = 0; i < config->features->width; i++)
    scale[i] = 1;
  made->mean = net_tensor_find(made, "features.mean")->data;
  made->scale = scale;
  *net = made;
  return 0;
}

void net_free(struct net *net) {
  if (!net)
    return;
  free(net->packed);
  free(net->block);
  free(net->provenance);
  free(net);
}

// The largest |output| of a row for inputs up to limit[i], or up to 1 when limit is NULL.
static double row_bound(const float *row, size_t count, const double *limit) {
  double sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += fabs((double)row[i]) * (limit ? limit[i] : 1);
  return sum;
}

// Sums of floats stay finite while their exact bound is well under FLT_MAX.
static int check_bound(double bound, const char *name, struct dsnet_error *error) {
  if (bound < 1e38)
    return 0;
  return dsnet_error_set(error, DSNET_EVALUE,
                         "tensor \"%s\": values so large that a step could overflow", name);
}

static int check_features(const struct net *net, double *limit, struct dsnet_error *error) {
  int code = 0;
  for (size_t i = 0; i < net->config.features->width && !code; i++) {
    limit[i] = (NET_FEATURE_MAX + fabs((double)net->mean[i])) * fabs((double)net->scale[i]);
    code = check_bound(limit[i], "features.scale", error);
  }
  return code;
}

static int check_layer(const struct net *net, size_t layer, const double *limit,
                       struct dsnet_error *error) {
  const struct net_tensor *t = layer_tensors(net, layer);
  size_t inputs = t[0].shape[1], hidden = net->config.hidden;
  int code = 0;
  for (size_t row = 0; row < 4 * hidden && !code; row++) {
    double bound = row_bound(t[0].data + row * inputs, inputs, layer ? NULL : limit) +
                   row_bound(t[1].data + row * hidden, hidden, NULL) +
                   fabs((double)t[2].data[row]) + fabs((double)t[3].data[row]);
    code = check_bound(bound, t[0].name, error);
  }
  return code;
}

static int check_linear(const struct net_tensor *weight, const double *limit, double *bounds,
                        struct dsnet_error *error) {
  const float *bias = weight[1].data;
  int code = 0;
  for (size_t row = 0; row < weight->shape[0] && !code; row++) {
    double bound = row_bound(weight->data + row * weight->shape[1], weight->shape[1], limit) +
                   fabs((double)bias[row]);
    code = check_bound(bound, weight->name, error);
    if (bounds)
      bounds[row] = bound;
  }
  return code;
}

// Adds what the direct path can add to the latents' bounds.
static int check_skip(const struct net_tensor *weight, const double *limit, double *bounds,
                      struct dsnet_error *error) {
  int code = 0;
  for (size_t row = 0; row < weight->shape[0] && !code; row++) {
    bounds[row] += row_bound(weight->data + row * weight->shape[1], weight->shape[1], limit);
    code = check_bound(bounds[row], weight->name, error);
  }
  return code;
}

// Whatever finite features come, no sum of a step may overflow, or infinities of both signs would
// meet in the next one and poison a session's state with NaN. |h| is at most 1, and c grows by at
// most 1 a frame until adding 1 no longer changes it.
static int check_overflow(struct net *net, struct dsnet_error *error) {
  double features[FEATURES_WIDTH_MAX] = {0}, latents[NET_LATENT_MAX];
  int code = check_features(net, features, error);
  for (size_t layer = 0; layer < net->config.layers && !code; layer++)
    code = check_layer(net, layer, features, error);
  if (!code)
    code = check_linear(net_tensor_find(net, "linear.weight"), NULL, latents, error);
  if (!code && net->config.skip)
    code = check_skip(net_tensor_find(net, "skip.weight"), features, latents, error);
  if (!code)
    code = check_linear(net_tensor_find(net, "decoder.weight"), latents, NULL, error);
  return code;
}

// Inputs of the product that gives the latents.
static size_t latent_inputs(const struct net_config *config) {
  return config->hidden + (config->skip ? config->features->width : 0);
}

static void pack_latents(struct net *net, enum simd_level level, float *storage) {
  const struct net_config *config = &net->config;
  const struct net_tensor *linear = net_tensor_find(net, "linear.weight");
  const struct net_tensor *skip = net_tensor_find(net, "skip.weight");
  gemm_pack_begin(&net->linear, level, config->latent, latent_inputs(config), storage);
  for (size_t row = 0; row < config->latent; row++) {
    gemm_pack_row(&net->linear, row, 0, linear[0].data + row * config->hidden, config->hidden);
    if (skip)
      gemm_pack_row(&net->linear, row, config->hidden, skip->data + row * config->features->width,
                    config->features->width);
    gemm_pack_bias(&net->linear, row, linear[1].data[row]);
  }
}

static size_t packed_total(const struct net_config *config, enum simd_level level) {
  size_t total = 0;
  for (size_t layer = 0; layer < config->layers; layer++)
    total += round_up(lstm_packed_size(level, layer_inputs(config, layer), config->hidden));
  total += round_up(gemm_packed_size(level, config->latent, latent_inputs(config)));
  return total + round_up(gemm_packed_size(level, 3 * config->vertices, config->latent));
}

int net_finish(struct net *net, enum simd_level level, struct dsnet_error *error) {
  const struct net_config *config = &net->config;
  int code = check_overflow(net, error);
  if (code)
    return code;
  size_t total = packed_total(config, level);
  net->packed = memory_alloc(total, sizeof *net->packed);
  if (!net->packed)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for %zu packed weights", total);
  float *at = net->packed;
  for (size_t layer = 0; layer < config->layers; layer++) {
    const struct net_tensor *t = layer_tensors(net, layer);
    size_t inputs = layer_inputs(config, layer);
    lstm_pack(&net->layers[layer], level, inputs, config->hidden, t[0].data, t[1].data, t[2].data,
              t[3].data, at);
    at += round_up(lstm_packed_size(level, inputs, config->hidden));
  }
  pack_latents(net, level, at);
  at += round_up(gemm_packed_size(level, config->latent, latent_inputs(config)));
  const struct net_tensor *decoder = net_tensor_find(net, "decoder.weight");
  linear_pack(&net->decoder, level, 3 * config->vertices, config->latent, decoder[0].data,
              decoder[1].data, at);
  return 0;
}

const struct net_config *net_config(const struct net *net) {
  return &net->config;
}

enum net_precision net_precision(const struct net *net) {
  for (size_t t = 0; t < net->tensor_count; t++)
    for (size_t i = 0; i < net->tensors[t].count; i++) {
      float value = net->tensors[t].data[i];
      if (half_to_float(half_from_float(value)) != value)
        return NET_F32;
    }
  return NET_F16;
}

int net_set_provenance(struct net *net, const char *json, struct dsnet_error *error) {
  char *copy = strdup(json);
  if (!copy)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  free(net->provenance);
  net->provenance = copy;
  return 0;
}

const char *net_provenance(const struct net *net) {
  return net->provenance ? net->provenance : "{}";
}

const float *net_decoder_basis(const struct net *net) {
  return layer_tensors(net, net->config.layers)[2].data;
}

const float *net_decoder_mean(const struct net *net) {
  return layer_tensors(net, net->config.layers)[3].data;
}
