// SPDX-License-Identifier: Apache-2.0
// The documents that are made once, before the server listens: the page's files, the body and the
// models' decoders; and the handlers that answer with them.
#ifndef DSNET_SERVER_ASSETS_H
#define DSNET_SERVER_ASSETS_H

#include "base/error.h"
#include "models.h"
#include "request.h"

struct assets;

// Takes some 0.2 s for the built-in body and model. `builtin_body` tells that the body is the one
// the program carries.
int assets_new(struct assets **assets, const struct models *models, bool builtin_body,
               struct dsnet_error *error);
void assets_free(struct assets *assets);

// Handlers of the route table, whose '*' is the name of a file, or of a model.
void assets_answer_page(struct request *request, struct answer *answer);
void assets_answer_file(struct request *request, struct answer *answer);
void assets_answer_body(struct request *request, struct answer *answer);
void assets_answer_decoder(struct request *request, struct answer *answer);

#endif
