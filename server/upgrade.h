// SPDX-License-Identifier: Apache-2.0
// The server's side of the WebSocket opening handshake (RFC 6455, section 4.2): takes the request's
// header lines one by one and decides. Knows no HTTP library.
#ifndef DSNET_SERVER_UPGRADE_H
#define DSNET_SERVER_UPGRADE_H

#include <stdbool.h>

#include "base/options.h"
#include "wire/handshake.h"

#define UPGRADE_ORIGIN_MAX 256

// Starts from {0}.
struct upgrade_request {
  bool upgrade_websocket, connection_upgrade; // the tokens were there
  bool any_upgrade;                           // any Upgrade line
  bool protocol_offered;                      // dsnet.v1 is among the offers
  int hosts, keys, versions, origins;         // lines of that name
  bool version_13;
  char key[HANDSHAKE_KEY_LENGTH + 2]; // cut when longer, and then not valid
  char origin[UPGRADE_ORIGIN_MAX];    // likewise
};

struct upgrade_answer {
  unsigned status;                          // 101, or the refusal's
  const char *reason;                       // of a refusal: a sentence for people
  char accept[HANDSHAKE_ACCEPT_LENGTH + 1]; // of a 101
};

// Whether an Origin field names one of the allowed origins.
bool origin_listed(const char *origin, const struct option_list *allowed);

// Notes one header line. Other names are ignored.
void upgrade_header(struct upgrade_request *request, const char *name, const char *value);

// `method` and `version` as they stand in the request line ("GET", "HTTP/1.1").
void upgrade_decide(const struct upgrade_request *request, const char *method, const char *version,
                    const struct option_list *allowed_origins, struct upgrade_answer *answer);

#endif
