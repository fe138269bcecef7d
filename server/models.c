// SPDX-License-Identifier: Apache-2.0
#include "models.h"

#include <sodium/crypto_generichash.h>
#include <stdlib.h>
#include <string.h>

#include "builtin/builtin.h"
#include "wire/message.h"

static int check_body(const struct models *models, const struct net *net, const char *name,
                      struct dsnet_error *error) {
  const struct net_config *config = net_config(net);
  if (config->vertices != body_vertices(models->body))
    return dsnet_error_set(error, DSNET_EMISMATCH,
                           "model \"%s\" moves %zu vertices, the body has %zu; --body gives the "
                           "body it was trained on",
                           name, config->vertices, body_vertices(models->body));
  if (config->has_body_hash && memcmp(config->body_hash, body_hash(models->body), BODY_HASH_SIZE))
    return dsnet_error_set(error, DSNET_EMISMATCH,
                           "model \"%s\" was made for another body; --body gives the right one",
                           name);
  return 0;
}

// The tag's number changes with the meaning of a track's state, so that a server of another version
// refuses a token instead of going on from numbers that it would misread.
static void identify(uint8_t identity[TOKEN_IDENTITY_SIZE], const struct net *net,
                     const struct body *body) {
  static const char tag[] = "dsnet state 3";
  uint8_t hash[NET_HASH_SIZE];
  net_hash(net, hash);
  crypto_generichash_state state;
  crypto_generichash_init(&state, NULL, 0, TOKEN_IDENTITY_SIZE);
  crypto_generichash_update(&state, (const uint8_t *)tag, sizeof tag - 1);
  crypto_generichash_update(&state, hash, sizeof hash);
  crypto_generichash_update(&state, body_hash(body), BODY_HASH_SIZE);
  crypto_generichash_final(&state, identity, TOKEN_IDENTITY_SIZE);
}

static int add(struct models *models, const char *name, size_t length, struct net *net,
               struct dsnet_error *error) {
  models->items[models->count].net = net;
  models->items[models->count].name = strndup(name, length);
  models->count++;
  if (!models->items[models->count - 1].name)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  identify(models->items[models->count - 1].identity, net, models->body);
  return check_body(models, net, models->items[models->count - 1].name, error);
}

// `item` is NAME=FILE; the settings were checked to have that form.
static int load_one(struct models *models, const char *item, struct dsnet_error *error) {
  size_t length = strcspn(item, "=");
  if (length >= MESSAGE_NAME_MAX || strcspn(item, "/\"\\ ") < length)
    return dsnet_error_set(error, DSNET_EVALUE,
                           "--model: the name in \"%s\" has a slash, quote or space, or more than "
                           "%d bytes",
                           item, MESSAGE_NAME_MAX - 1);
  for (size_t i = 0; i < models->count; i++)
    if (strlen(models->items[i].name) == length && !memcmp(models->items[i].name, item, length))
      return dsnet_error_set(error, DSNET_EVALUE, "--model: the name in \"%s\" is given twice",
                             item);
  struct net *net = NULL;
  int result = net_load(&net, item + length + 1, error);
  if (result < 0)
    return result;
  return add(models, item, length, net, error);
}

int models_load(struct models *models, const struct config *config, struct dsnet_error *error) {
  memset(models, 0, sizeof *models);
  int result = config->body ? body_load(&models->body, config->body, error)
                            : builtin_body_load(&models->body, error);
  if (result < 0)
    return result;
  if (!config->models.count) {
    struct net *net = NULL;
    result = builtin_net_load(&net, error);
    return result < 0 ? result : add(models, "default", strlen("default"), net, error);
  }
  for (size_t i = 0; i < config->models.count; i++) {
    result = load_one(models, config->models.items[i], error);
    if (result < 0)
      return result;
  }
  return 0;
}

void models_free(struct models *models) {
  for (size_t i = 0; i < models->count; i++) {
    free(models->items[i].name);
    net_free(models->items[i].net);
  }
  body_free(models->body);
  memset(models, 0, sizeof *models);
}

int models_find(const struct models *models, const char *name) {
  for (size_t i = 0; i < models->count; i++)
    if (!strcmp(models->items[i].name, name))
      return (int)i;
  return -1;
}
