// SPDX-License-Identifier: Apache-2.0
// Model files: sizes from the shapes of the tensors, names as PyTorch gives them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"
#include "net/internal.h"
#include "net/metadata.h"

// shape[axis] of a two-dimensional tensor.
static int tensor_size(const struct safetensors *file, const char *name, size_t axis, size_t *size,
                       struct dsnet_error *error) {
  const struct safetensors_tensor *tensor = safetensors_find(file, name);
  if (!tensor)
    return dsnet_error_set(error, DSNET_EMISSING, "tensor \"%s\" is missing", name);
  if (tensor->dimensions != 2)
    return dsnet_error_set(error, DSNET_EMISMATCH, "tensor \"%s\" has %zu dimensions, not 2", name,
                           tensor->dimensions);
  *size = tensor->shape[axis];
  return 0;
}

static size_t count_layers(const struct safetensors *file) {
  char name[48];
  size_t layers = 0;
  do
    snprintf(name, sizeof name, "lstm.weight_hh_l%zu", layers);
  while (safetensors_find(file, name) && ++layers <= NET_LAYERS_MAX);
  return layers;
}

static int read_sizes(const struct safetensors *file, struct net_config *config,
                      struct dsnet_error *error) {
  size_t outputs;
  int code = tensor_size(file, "lstm.weight_hh_l0", 1, &config->hidden, error);
  if (!code)
    code = tensor_size(file, "linear.weight", 0, &config->latent, error);
  if (!code)
    code = tensor_size(file, "decoder.weight", 0, &outputs, error);
  if (code)
    return code;
  if (outputs % 3)
    return dsnet_error_set(error, DSNET_EMISMATCH,
                           "tensor \"decoder.weight\" has %zu rows, not three a vertex", outputs);
  config->vertices = outputs / 3;
  config->layers = count_layers(file);
  config->skip = safetensors_find(file, "skip.weight") != NULL;
  return 0;
}

// A tensor under one of our prefixes that the layout does not have belongs to another architecture
// (bidirectional, projected, a deeper decoder): leaving it out would give a wrong network. Names
// under other prefixes are somebody else's.
static int check_names(const struct safetensors *file, struct net *net, struct dsnet_error *error) {
  static const char *const prefixes[] = {"lstm.", "linear.", "decoder.", "features.", "skip."};
  for (size_t i = 0; i < safetensors_count(file); i++) {
    const char *name = safetensors_at(file, i)->name;
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++)
      if (!strncmp(name, prefixes[p], strlen(prefixes[p])) && !net_tensor_find(net, name))
        return dsnet_error_set(error, DSNET_EUNSUPPORTED,
                               "tensor \"%s\" is not part of a network of %zu one-way LSTM layers, "
                               "a linear layer and a linear decoder",
                               name, net->config.layers);
  }
  return 0;
}

static int read_tensors(const struct safetensors *file, struct net *net,
                        struct dsnet_error *error) {
  int code = check_names(file, net, error);
  for (size_t i = 0; i < net->tensor_count && !code; i++) {
    const struct net_tensor *t = &net->tensors[i];
    if (!t->optional || safetensors_find(file, t->name))
      code = safetensors_read_f32(file, t->name, t->dimensions, t->shape, t->data, error);
  }
  return code;
}

static int load(struct net **net, const struct safetensors *file, enum simd_level level,
                struct dsnet_error *error) {
  struct net_config config = {0};
  struct net *loaded = NULL;
  char *provenance = NULL;
  int code =
      net_metadata_read(safetensors_metadata(file, NET_METADATA_KEY), &config, &provenance, error);
  if (!code)
    code = read_sizes(file, &config, error);
  if (!code)
    code = net_allocate(&loaded, &config, error);
  if (code) {
    free(provenance);
    return code;
  }
  loaded->provenance = provenance;
  code = read_tensors(file, loaded, error);
  if (!code)
    code = net_finish(loaded, level, error);
  if (code) {
    net_free(loaded);
    return code;
  }
  *net = loaded;
  return 0;
}

int net_load_memory_at(struct net **net, const void *bytes, size_t size, enum simd_level level,
                       struct dsnet_error *error) {
  struct safetensors *file;
  int code = safetensors_open_memory(&file, bytes, size, error);
  if (code)
    return code;
  code = load(net, file, level, error);
  safetensors_close(file);
  return code;
}

int net_load_memory(struct net **net, const void *bytes, size_t size, struct dsnet_error *error) {
  return net_load_memory_at(net, bytes, size, simd_best(), error);
}

int net_load(struct net **net, const char *path, struct dsnet_error *error) {
  struct safetensors *file;
  int code = safetensors_open(&file, path, error);
  if (code)
    return code;
  code = load(net, file, simd_best(), error);
  if (code)
    dsnet_error_prefix(error, "%s", path);
  safetensors_close(file);
  return code;
}

int net_save(const struct net *net, const char *path, enum net_precision precision,
             struct dsnet_error *error) {
  struct safetensors_array arrays[NET_TENSORS_MAX];
  struct safetensors_text metadata = {.key = NET_METADATA_KEY};
  char *document;
  int code = net_metadata_write(&net->config, net->provenance, &document, error);
  if (code)
    return code;
  metadata.value = document;
  for (size_t i = 0; i < net->tensor_count; i++) {
    const struct net_tensor *t = &net->tensors[i];
    arrays[i] = (struct safetensors_array){.name = t->name,
                                           .dimensions = t->dimensions,
                                           .shape = {t->shape[0], t->shape[1]},
                                           .data = t->data};
  }
  code = safetensors_write(path, precision == NET_F16 ? SAFETENSORS_F16 : SAFETENSORS_F32, arrays,
                           net->tensor_count, &metadata, 1, error);
  free(document);
  return code;
}
