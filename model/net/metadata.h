// SPDX-License-Identifier: Apache-2.0
// The "dsnet" entry of a model file's metadata, a JSON document (see net.h), to and from a
// configuration. Who writes model files (net_save, training) makes it here.
#ifndef DSNET_NET_METADATA_H
#define DSNET_NET_METADATA_H

#include "base/error.h"
#include "net/net.h"

#define NET_METADATA_KEY "dsnet"

// The document as text, to be released with free(). `provenance` is a JSON object as text, or NULL.
int net_metadata_write(const struct net_config *config, const char *provenance, char **text,
                       struct dsnet_error *error);

// Fills features, rate, trained and the body hash of `config` (not the sizes) and *provenance, JSON
// text to be released with free(). `text` NULL means a file without the document.
int net_metadata_read(const char *text, struct net_config *config, char **provenance,
                      struct dsnet_error *error);

#endif
