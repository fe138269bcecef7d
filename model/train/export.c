// SPDX-License-Identifier: Apache-2.0
#include "train/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/safetensors.h"
#include "net/metadata.h"

#define ARRAYS_MAX (4 * WEIGHTS_LAYERS_MAX + 7)

// The arrays of a model file being listed.
struct listing {
  struct safetensors_array arrays[ARRAYS_MAX];
  char names[ARRAYS_MAX][48];
  size_t count;
};

// columns 0 makes a vector of `rows`.
static void list(struct listing *listing, const char *name, size_t rows, size_t columns,
                 const float *data) {
  size_t i = listing->count++;
  snprintf(listing->names[i], sizeof listing->names[i], "%s", name);
  listing->arrays[i] = (struct safetensors_array){.name = listing->names[i],
                                                  .dimensions = columns ? 2 : 1,
                                                  .shape = {rows, columns},
                                                  .data = data};
}

static void list_layers(struct listing *listing, const struct weights_layout *layout,
                        const float *weights, const float *zeros) {
  size_t gates = 4 * layout->hidden;
  char name[48];
  for (size_t k = 0; k < layout->layers; k++) {
    snprintf(name, sizeof name, "lstm.weight_ih_l%zu", k);
    list(listing, name, gates, weights_layer_inputs(layout, k), weights + layout->weight_ih[k]);
    snprintf(name, sizeof name, "lstm.weight_hh_l%zu", k);
    list(listing, name, gates, layout->hidden, weights + layout->weight_hh[k]);
    snprintf(name, sizeof name, "lstm.bias_ih_l%zu", k);
    list(listing, name, gates, 0, weights + layout->bias[k]);
    snprintf(name, sizeof name, "lstm.bias_hh_l%zu", k);
    list(listing, name, gates, 0, zeros);
  }
}

// [3V][Z] from the subspace's [Z][3V] and scale.
static void fill_decoder(const struct subspace *subspace, float *decoder) {
  for (size_t k = 0; k < subspace->latent; k++)
    for (size_t i = 0; i < subspace->values; i++)
      decoder[i * subspace->latent + k] =
          subspace->basis[k * subspace->values + i] * subspace->scale[k];
}

static struct net_config config_of(const struct trainer *trainer, const struct body *body) {
  struct net_config config = {.layers = trainer->layout.layers,
                              .hidden = trainer->layout.hidden,
                              .latent = trainer->layout.latent,
                              .vertices = trainer->dataset->vertices,
                              .features = trainer->options.features,
                              .rate = DYNA_FPS,
                              .trained = true,
                              .has_body_hash = body != NULL};
  if (body)
    memcpy(config.body_hash, body_hash(body), sizeof config.body_hash);
  return config;
}

int export_model(const struct trainer *trainer, const struct body *body, const char *provenance,
                 enum net_precision precision, const char *path, struct dsnet_error *error) {
  const struct weights_layout *layout = &trainer->layout;
  const struct subspace *subspace = &trainer->dataset->subspace;
  struct net_config config = config_of(trainer, body);
  char *document = NULL;
  size_t most = 4 * layout->hidden > subspace->values ? 4 * layout->hidden : subspace->values;
  float *decoder = memory_alloc(subspace->values * subspace->latent, sizeof *decoder);
  float *zeros = memory_alloc(most, sizeof *zeros);
  struct listing *listing = calloc(1, sizeof *listing);
  int result = DSNET_ENOMEM;
  if (!decoder || !zeros || !listing) {
    dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
    goto done;
  }
  result = net_metadata_write(&config, provenance, &document, error);
  if (result < 0)
    goto done;
  fill_decoder(subspace, decoder);
  list_layers(listing, layout, trainer->best, zeros);
  list(listing, "linear.weight", layout->latent, layout->hidden,
       trainer->best + layout->linear_weight);
  list(listing, "linear.bias", layout->latent, 0, trainer->best + layout->linear_bias);
  if (layout->skip)
    list(listing, "skip.weight", layout->latent, layout->inputs,
         trainer->best + layout->skip_weight);
  list(listing, "decoder.weight", subspace->values, layout->latent, decoder);
  list(listing, "decoder.bias", subspace->values, 0, zeros);
  list(listing, "features.mean", layout->inputs, 0, trainer->mean);
  list(listing, "features.scale", layout->inputs, 0, trainer->scale);
  struct safetensors_text metadata = {.key = NET_METADATA_KEY, .value = document};
  result = safetensors_write(path, precision == NET_F16 ? SAFETENSORS_F16 : SAFETENSORS_F32,
                             listing->arrays, listing->count, &metadata, 1, error);
done:
  free(document);
  free(listing);
  free(zeros);
  free(decoder);
  return result;
}
