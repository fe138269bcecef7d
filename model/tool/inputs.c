// SPDX-License-Identifier: Apache-2.0
#include "inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "builtin/builtin.h"

int input_body_load(struct body **body, const char *path, struct dsnet_error *error) {
  return path ? body_load(body, path, error) : builtin_body_load(body, error);
}

int input_net_load(struct net **net, const char *path, struct dsnet_error *error) {
  return path ? net_load(net, path, error) : builtin_net_load(net, error);
}

int input_clip_load(struct clip **clip, const char *path, struct dsnet_error *error) {
  return strcmp(path, INPUT_SAMPLE) ? clip_load(clip, path, error) : builtin_clip_load(clip, error);
}

int input_betas_parse(const char *text, float *betas, size_t max, size_t *count,
                      struct dsnet_error *error) {
  *count = 0;
  for (const char *at = text;; at++) {
    char *end;
    float value = strtof(at, &end);
    if (end == at || !isfinite(value) || (*end && *end != ','))
      return dsnet_error_set(error, DSNET_EVALUE, "betas: \"%s\" is not a list such as 0.5,-1,2",
                             text);
    if (*count == max)
      return dsnet_error_set(error, DSNET_ELIMIT, "betas: more than %zu numbers", max);
    betas[(*count)++] = value;
    if (!*end)
      return 0;
    at = end;
  }
}

int input_match(const struct net *net, const struct body *body, struct dsnet_error *error) {
  const struct net_config *config = net_config(net);
  if (config->vertices != body_vertices(body))
    return dsnet_error_set(error, DSNET_EMISMATCH, "the model has %zu vertices, the body %zu",
                           config->vertices, body_vertices(body));
  if (config->has_body_hash && memcmp(config->body_hash, body_hash(body), BODY_HASH_SIZE))
    return dsnet_error_set(error, DSNET_EMISMATCH,
                           "the model was made for another body (their hashes differ)");
  return 0;
}
