// SPDX-License-Identifier: Apache-2.0
// A document that does not change while the server runs: kept plain and compressed, with an entity
// tag of its content, and sent from where it lies. Const once made, so any number of answers may
// read it at once.
#ifndef DSNET_SERVER_ASSET_H
#define DSNET_SERVER_ASSET_H

#include "base/error.h"
#include "request.h"

struct asset_form {
  const void *bytes;
  size_t size;
  char etag[ANSWER_ETAG_MAX]; // with its quotes
};

struct asset {
  const char *type; // media type, a constant
  struct asset_form plain, gzip;
  void *owned, *packed; // what asset_free releases
};

// Compresses and tags `bytes`, which must outlive the asset unless `owned`, a malloc'd block, has
// them: that is taken, also on failure (DSNET_ENOMEM). A document that gzip does not shorten by a
// twentieth is kept plain alone. Some 50 ms for a megabyte.
int asset_init(struct asset *asset, const char *type, const void *bytes, size_t size, void *owned,
               struct dsnet_error *error);
void asset_deinit(struct asset *asset);

// 200 with the form that Accept-Encoding takes; ranges and If-None-Match work as for any document
// with an entity tag. The asset must outlive the answer.
void asset_answer(const struct asset *asset, const struct request *request, struct answer *answer);

#endif
