// SPDX-License-Identifier: Apache-2.0
// What the binaries carry inside: a body, a sample clip and a model, so that everything works
// without a file of one's own. Each call makes a new object that the caller frees.
#ifndef DSNET_BUILTIN_BUILTIN_H
#define DSNET_BUILTIN_BUILTIN_H

#include "body/body.h"
#include "motion/clip.h"
#include "net/net.h"

int builtin_body_load(struct body **body, struct dsnet_error *error);
int builtin_clip_load(struct clip **clip, struct dsnet_error *error);
// The model trained for the built-in body. Its provenance is its card: data, splits, command, seed
// and what it reached on sequences it had not seen.
int builtin_net_load(struct net **net, struct dsnet_error *error);

#endif
