// SPDX-License-Identifier: Apache-2.0
#include "net/metadata.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_VERSION 1
#define RATE_DEFAULT   60.0
#define RATE_MAX       1000.0

static void write_hex(const uint8_t *bytes, size_t count, char *text) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < count; i++) {
    text[2 * i] = digits[bytes[i] >> 4];
    text[2 * i + 1] = digits[bytes[i] & 15];
  }
  text[2 * count] = 0;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return -1;
}

static bool read_hex(const char *text, uint8_t *bytes, size_t count) {
  if (strlen(text) != 2 * count)
    return false;
  for (size_t i = 0; i < count; i++) {
    int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0)
      return false;
    bytes[i] = (uint8_t)(high << 4 | low);
  }
  return true;
}

int net_metadata_write(const struct net_config *config, const char *provenance, char **text,
                       struct dsnet_error *error) {
  json_error_t problem;
  char hex[2 * sizeof config->body_hash + 1];
  json_t *source = json_loads(provenance ? provenance : "{}", JSON_REJECT_DUPLICATES, &problem);
  if (!json_is_object(source)) {
    json_decref(source);
    return dsnet_error_set(error, DSNET_EFORMAT, "the provenance is not a JSON object");
  }
  json_t *document = json_pack("{s:i, s:s, s:f, s:s, s:b}", "format", FORMAT_VERSION, "features",
                               config->features->name, "rate", config->rate, "decoder", "linear",
                               "trained", (int)config->trained);
  int failed = !document;
  if (config->has_body_hash) {
    write_hex(config->body_hash, sizeof config->body_hash, hex);
    failed |= json_object_set_new(document, "body", json_string(hex));
  }
  failed |= json_object_set(document, "provenance", source);
  *text = failed ? NULL : json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(15));
  json_decref(source);
  json_decref(document);
  return *text ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
}

static int read_features(const json_t *value, struct net_config *config,
                         struct dsnet_error *error) {
  const char *name = value ? json_string_value(value) : "paper";
  if (!name)
    return dsnet_error_set(error, DSNET_EFORMAT, "metadata: \"features\" is not text");
  config->features = feature_set_find(name);
  if (!config->features)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "metadata: no feature set is called \"%s\"",
                           name);
  return 0;
}

static int read_rate(const json_t *value, struct net_config *config, struct dsnet_error *error) {
  config->rate = value ? json_number_value(value) : RATE_DEFAULT;
  if (!(config->rate >= 1 && config->rate <= RATE_MAX))
    return dsnet_error_set(error, DSNET_EVALUE, "metadata: \"rate\" is not a number from 1 to %g",
                           RATE_MAX);
  return 0;
}

static int read_body(const json_t *value, struct net_config *config, struct dsnet_error *error) {
  const char *hex = json_string_value(value);
  config->has_body_hash = value != NULL;
  if (value && (!hex || !read_hex(hex, config->body_hash, sizeof config->body_hash)))
    return dsnet_error_set(error, DSNET_EFORMAT, "metadata: \"body\" is not %zu hex digits",
                           2 * sizeof config->body_hash);
  return 0;
}

static int read_document(const json_t *document, struct net_config *config,
                         struct dsnet_error *error) {
  const json_t *format = json_object_get(document, "format");
  const json_t *decoder = json_object_get(document, "decoder");
  const json_t *trained = json_object_get(document, "trained");
  if (!json_is_integer(format) || json_integer_value(format) != FORMAT_VERSION)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "metadata: \"format\" is not %d",
                           FORMAT_VERSION);
  if (decoder && (!json_is_string(decoder) || strcmp(json_string_value(decoder), "linear") != 0))
    return dsnet_error_set(error, DSNET_EUNSUPPORTED,
                           "metadata: only the \"linear\" decoder is supported");
  if (trained && !json_is_boolean(trained))
    return dsnet_error_set(error, DSNET_EFORMAT, "metadata: \"trained\" is not true or false");
  config->trained = json_is_true(trained);
  int code = read_features(json_object_get(document, "features"), config, error);
  if (!code)
    code = read_rate(json_object_get(document, "rate"), config, error);
  return code ? code : read_body(json_object_get(document, "body"), config, error);
}

int net_metadata_read(const char *text, struct net_config *config, char **provenance,
                      struct dsnet_error *error) {
  json_error_t problem;
  json_t *document = json_loads(text ? text : "{\"format\":1}", JSON_REJECT_DUPLICATES, &problem);
  if (!json_is_object(document)) {
    json_decref(document);
    return dsnet_error_set(error, DSNET_EFORMAT, "metadata: \"%s\" is not a JSON object",
                           NET_METADATA_KEY);
  }
  const json_t *source = json_object_get(document, "provenance");
  int code = read_document(document, config, error);
  if (!code && source && !json_is_object(source))
    code = dsnet_error_set(error, DSNET_EFORMAT, "metadata: \"provenance\" is not an object");
  if (!code) {
    *provenance = source ? json_dumps(source, JSON_COMPACT) : strdup("{}");
    if (!*provenance)
      code = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  json_decref(document);
  return code;
}
