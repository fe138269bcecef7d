// SPDX-License-Identifier: Apache-2.0
// The trainable weights as one flat block, so that the optimiser, gradient clipping, checkpoints
// and the reduction over shards need no knowledge of what is in it. PyTorch's layout and gate order
// (i, f, g, o); the two biases of a layer, which only ever act as their sum, are one here.
#ifndef DSNET_TRAIN_WEIGHTS_H
#define DSNET_TRAIN_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIGHTS_LAYERS_MAX 4

// Sizes of a network and where each tensor begins in the block, in floats.
struct weights_layout {
  size_t inputs, hidden, layers, latent;
  bool skip; // a direct linear path from the features to the latents

  size_t weight_ih[WEIGHTS_LAYERS_MAX]; // [4H][inputs of the layer]
  size_t weight_hh[WEIGHTS_LAYERS_MAX]; // [4H][H]
  size_t bias[WEIGHTS_LAYERS_MAX];      // [4H]
  size_t linear_weight;                 // [Z][H]
  size_t linear_bias;                   // [Z]
  size_t skip_weight;                   // [Z][inputs], when skip
  size_t total;
};

void weights_layout_init(struct weights_layout *layout, size_t inputs, size_t hidden, size_t layers,
                         size_t latent, bool skip);

// Features for the lowest layer, H above.
size_t weights_layer_inputs(const struct weights_layout *layout, size_t layer);

// weights [total]: PyTorch's defaults, uniform within +-1/sqrt(H), but the forget gates' biases are
// raised by 1 (Gers et al. 2000: a fresh cell should remember) and the skip path starts at 0. The
// same for the same seed on every machine.
void weights_randomise(const struct weights_layout *layout, float *weights, uint64_t seed);

#endif
