// SPDX-License-Identifier: Apache-2.0
// The models that are served, by the names clients open them by. Const once loaded.
#ifndef DSNET_SERVER_MODELS_H
#define DSNET_SERVER_MODELS_H

#include <stddef.h>

#include "base/error.h"
#include "body/body.h"
#include "config.h"
#include "net/net.h"
#include "token.h"

struct models {
  struct body *body; // the one they all belong to
  size_t count;      // at least 1
  struct {
    char *name;
    struct net *net;
    uint8_t identity[TOKEN_IDENTITY_SIZE]; // of the network and the body, for state tokens
  } items[OPTION_LIST_MAX];
};

// Loads what the settings name, or the built-in body and model. A model that was made for another
// body is DSNET_EMISMATCH. models_free also after a failure.
int models_load(struct models *models, const struct config *config, struct dsnet_error *error);
void models_free(struct models *models);

// The index of a name, or -1.
int models_find(const struct models *models, const char *name);

#endif
