// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file, and as a model file: refused or read, never a crash or a leak.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "io/safetensors.h"
#include "net/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const struct safetensors *file) {
  for (size_t i = 0; i < safetensors_count(file); i++) {
    const struct safetensors_tensor *tensor = safetensors_at(file, i);
    float *values = malloc(tensor->bytes * 2 + sizeof *values);
    if (values && tensor->type != SAFETENSORS_OTHER)
      safetensors_read_f32(file, tensor->name, tensor->dimensions, tensor->shape, values, NULL);
    free(values);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct dsnet_error error = {0};
  struct safetensors *file;
  struct net *net;
  if (!safetensors_open_memory(&file, data, size, &error)) {
    read_all(file);
    safetensors_close(file);
  }
  if (!net_load_memory(&net, data, size, NULL))
    net_free(net);
  return 0;
}
