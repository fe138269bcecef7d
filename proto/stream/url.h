// SPDX-License-Identifier: Apache-2.0
// The address of a stream: ws://HOST[:PORT][/PATH] (RFC 6455, section 3).
#ifndef DSNET_STREAM_URL_H
#define DSNET_STREAM_URL_H

#include "base/error.h"

struct stream_url {
  char host[256];      // a name or an address, without the brackets of IPv6
  char port[6];        // "80" when the URL has none
  char authority[280]; // HOST[:PORT] as the Host header says it
  char path[512];      // from the first '/', query included; "/v1/stream" when the URL has none
};

// Strict: printable ASCII, no user, no fragment. wss:// (and https://) is refused with what to do
// instead, since TLS ends at the balancer. DSNET_EVALUE or DSNET_EUNSUPPORTED.
int stream_url_parse(struct stream_url *url, const char *text, struct dsnet_error *error);

#endif
