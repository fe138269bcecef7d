// SPDX-License-Identifier: Apache-2.0
// Inference responses and metadata of the Open Inference Protocol; see infer/request.h. Codec only:
// any thread.
#ifndef DSNET_INFER_RESPONSE_H
#define DSNET_INFER_RESPONSE_H

#include <jansson.h>
#include <stddef.h>

#include "infer/request.h"

#define INFER_MODEL_VERSION "1" // the only one of every model

struct infer_response {
  const char *model, *id; // `id` NULL for none
  size_t frames, vertices, latents;
  const struct infer_output *outputs;
  size_t output_count;
  const float *values[INFER_OUTPUT_KINDS]; // [T][V][3] and [T][Z], of those asked for
};

// Bytes that a response can have at most.
size_t infer_response_bound(const struct infer_response *response);

// The whole body, to be released with free(): JSON, then the blobs of binary outputs, little-endian
// floats. Numbers in JSON read back as the same floats. `*json_size` is that of the JSON. NULL when
// memory is out.
char *infer_response_write(const struct infer_response *response, size_t *size, size_t *json_size);

// What GET /v2 and GET /v2/models/{m} answer; NULL when memory is out.
json_t *infer_server_metadata(const char *name, const char *version);
json_t *infer_model_metadata(const char *model, size_t vertices, size_t latents);

#endif
