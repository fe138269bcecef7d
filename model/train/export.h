// SPDX-License-Identifier: Apache-2.0
// A trained network as a model file (net/net.h describes it).
#ifndef DSNET_TRAIN_EXPORT_H
#define DSNET_TRAIN_EXPORT_H

#include "net/net.h"
#include "train/trainer.h"

// Writes the best weights. The decoder's scale is in the basis, its mean is 0. `body` may be NULL
// for a model bound to no body; `provenance` is a JSON object as text.
int export_model(const struct trainer *trainer, const struct body *body, const char *provenance,
                 enum net_precision precision, const char *path, struct dsnet_error *error);

#endif
