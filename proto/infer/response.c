// SPDX-License-Identifier: Apache-2.0
#include "infer/response.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_SIZE 17   // "-1.17549435e-38," and the NUL of snprintf
#define HEAD_SIZE   1024 // of the response and each output without numbers and names

static size_t numbers(const struct infer_response *response, enum infer_output_kind kind) {
  return response->frames * (kind == INFER_LATENT ? response->latents : 3 * response->vertices);
}

size_t infer_response_bound(const struct infer_response *response) {
  size_t id = response->id ? strlen(response->id) : 0;
  // A byte of a string may become six.
  size_t bound = HEAD_SIZE + 6 * (id + strlen(response->model));
  for (size_t i = 0; i < response->output_count; i++) {
    const struct infer_output *output = &response->outputs[i];
    bound += HEAD_SIZE +
             numbers(response, output->kind) * (output->binary ? sizeof(float) : NUMBER_SIZE);
  }
  return bound;
}

// Appends a string to the text, as JSON.
static char *write_string(char *out, const char *text) {
  json_t *string = json_string(text);
  size_t size = string ? json_dumpb(string, out, 6 * strlen(text) + 3, JSON_ENCODE_ANY) : 0;
  json_decref(string);
  return size ? out + size : NULL;
}

static char *write_output(char *out, const struct infer_response *response,
                          const struct infer_output *output) {
  const float *values = response->values[output->kind];
  size_t count = numbers(response, output->kind);
  out += sprintf(out, "{\"name\":\"%s\",\"datatype\":\"FP32\",\"shape\":[%zu,",
                 infer_output_names[output->kind], response->frames);
  out += output->kind == INFER_LATENT ? sprintf(out, "%zu]", response->latents)
                                      : sprintf(out, "%zu,3]", response->vertices);
  if (output->binary)
    return out + sprintf(out, ",\"parameters\":{\"binary_data_size\":%zu}}", count * sizeof(float));
  out += sprintf(out, ",\"data\":[");
  for (size_t i = 0; i < count; i++)
    out += snprintf(out, NUMBER_SIZE, i ? ",%.9g" : "%.9g", (double)values[i]);
  return out + sprintf(out, "]}");
}

char *infer_response_write(const struct infer_response *response, size_t *size, size_t *json_size) {
  char *body = malloc(infer_response_bound(response)), *out = body;
  if (!body)
    return NULL;
  out += sprintf(out, "{\"model_name\":");
  out = write_string(out, response->model);
  if (out)
    out += sprintf(out, ",\"model_version\":\"" INFER_MODEL_VERSION "\"");
  if (out && response->id) {
    out += sprintf(out, ",\"id\":");
    out = write_string(out, response->id);
  }
  if (!out) {
    free(body);
    return NULL;
  }
  out += sprintf(out, ",\"outputs\":[");
  for (size_t i = 0; i < response->output_count; i++) {
    if (i)
      *out++ = ',';
    out = write_output(out, response, &response->outputs[i]);
  }
  out += sprintf(out, "]}");
  *json_size = (size_t)(out - body);
  for (size_t i = 0; i < response->output_count; i++) {
    enum infer_output_kind kind = response->outputs[i].kind;
    size_t bytes = numbers(response, kind) * sizeof(float);
    if (!response->outputs[i].binary)
      continue;
    memcpy(out, response->values[kind], bytes);
    out += bytes;
  }
  *size = (size_t)(out - body);
  return body;
}

json_t *infer_server_metadata(const char *name, const char *version) {
  return json_pack("{s:s, s:s, s:[s, s]}", "name", name, "version", version, "extensions",
                   "binary_tensor_data", "sequence");
}

static json_t *tensor(const char *name, const json_int_t *shape, size_t rank) {
  json_t *sizes = json_array();
  for (size_t i = 0; i < rank; i++)
    json_array_append_new(sizes, json_integer(shape[i]));
  return json_pack("{s:s, s:s, s:o}", "name", name, "datatype", "FP32", "shape", sizes);
}

json_t *infer_model_metadata(const char *model, size_t vertices, size_t latents) {
  const json_int_t pose[] = {-1, INFER_POSE}, trans[] = {-1, 3}, betas[] = {-1}, fps[] = {1},
                   displacement[] = {-1, (json_int_t)vertices, 3},
                   latent[] = {-1, (json_int_t)latents};
  return json_pack("{s:s, s:[s], s:s, s:[o, o, o, o], s:[o, o]}", "name", model, "versions",
                   INFER_MODEL_VERSION, "platform", "dsnet", "inputs", tensor("pose", pose, 2),
                   tensor("trans", trans, 2), tensor("betas", betas, 1), tensor("fps", fps, 1),
                   "outputs", tensor("displacement", displacement, 3), tensor("latent", latent, 2));
}
