// SPDX-License-Identifier: Apache-2.0
#include "train/weights.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

size_t weights_layer_inputs(const struct weights_layout *layout, size_t layer) {
  return layer ? layout->hidden : layout->inputs;
}

void weights_layout_init(struct weights_layout *layout, size_t inputs, size_t hidden, size_t layers,
                         size_t latent, bool skip) {
  memset(layout, 0, sizeof *layout);
  layout->inputs = inputs;
  layout->hidden = hidden;
  layout->layers = layers;
  layout->latent = latent;
  layout->skip = skip;
  size_t at = 0;
  for (size_t k = 0; k < layers; k++) {
    layout->weight_ih[k] = at;
    at += 4 * hidden * weights_layer_inputs(layout, k);
    layout->weight_hh[k] = at;
    at += 4 * hidden * hidden;
    layout->bias[k] = at;
    at += 4 * hidden;
  }
  layout->linear_weight = at;
  at += latent * hidden;
  layout->linear_bias = at;
  at += latent;
  layout->skip_weight = at;
  at += skip ? latent * inputs : 0;
  layout->total = at;
}

void weights_randomise(const struct weights_layout *layout, float *weights, uint64_t seed) {
  struct random_state random;
  random_init(&random, seed);
  double bound = 1 / sqrt((double)layout->hidden);
  for (size_t i = 0; i < layout->skip_weight; i++)
    weights[i] = (float)((2 * random_uniform(&random) - 1) * bound);
  for (size_t i = layout->skip_weight; i < layout->total; i++)
    weights[i] = 0;
  for (size_t k = 0; k < layout->layers; k++)
    for (size_t i = 0; i < layout->hidden; i++)
      weights[layout->bias[k] + layout->hidden + i] += 1;
}
