// SPDX-License-Identifier: Apache-2.0
#include "upgrade.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "wire/message.h"

// Whether `token` is one of the comma-separated tokens. Their case matters only to `compare`.
static bool has_token(const char *list, const char *token,
                      int (*compare)(const char *, const char *, size_t)) {
  size_t length = strlen(token);
  while (*list) {
    list += strspn(list, " \t,");
    size_t span = strcspn(list, ","), trimmed = span;
    while (trimmed && strchr(" \t", list[trimmed - 1]))
      trimmed--;
    if (trimmed == length && !compare(list, token, length))
      return true;
    list += span;
  }
  return false;
}

void upgrade_header(struct upgrade_request *request, const char *name, const char *value) {
  if (!strcasecmp(name, "Host")) {
    request->hosts++;
  } else if (!strcasecmp(name, "Upgrade")) {
    request->any_upgrade = true;
    request->upgrade_websocket |= has_token(value, "websocket", strncasecmp);
  } else if (!strcasecmp(name, "Connection")) {
    request->connection_upgrade |= has_token(value, "upgrade", strncasecmp);
  } else if (!strcasecmp(name, "Sec-WebSocket-Key")) {
    request->keys++;
    snprintf(request->key, sizeof request->key, "%s", value);
  } else if (!strcasecmp(name, "Sec-WebSocket-Version")) {
    request->versions++;
    request->version_13 = !strcmp(value, "13");
  } else if (!strcasecmp(name, "Sec-WebSocket-Protocol")) {
    request->protocol_offered |= has_token(value, WIRE_SUBPROTOCOL, strncmp);
  } else if (!strcasecmp(name, "Origin")) {
    request->origins++;
    snprintf(request->origin, sizeof request->origin, "%s", value);
  }
}

bool origin_listed(const char *origin, const struct option_list *allowed) {
  for (size_t i = 0; i < allowed->count; i++)
    if (!strcasecmp(origin, allowed->items[i]))
      return true;
  return false;
}

static bool origin_allowed(const struct upgrade_request *request,
                           const struct option_list *allowed) {
  if (!allowed->count || !request->origins)
    return true;
  return request->origins == 1 && origin_listed(request->origin, allowed);
}

static unsigned refuse(const struct upgrade_request *request, const char *method,
                       const char *version, const struct option_list *allowed_origins,
                       const char **reason) {
  if (strcmp(method, "GET"))
    return *reason = "a stream is opened with GET", 405;
  if (!request->any_upgrade)
    return *reason = "this address speaks WebSocket; connect with a WebSocket client", 426;
  // Not 1.0, which has no upgrade; there is no 1.2.
  if (strcmp(version, "HTTP/1.1"))
    return *reason = "a WebSocket handshake needs HTTP/1.1", 400;
  if (request->hosts != 1)
    return *reason = "there must be one Host header", 400;
  if (!request->upgrade_websocket)
    return *reason = "the Upgrade header does not name websocket", 400;
  if (!request->connection_upgrade)
    return *reason = "the Connection header does not say Upgrade", 400;
  if (request->versions != 1 || !request->version_13)
    return *reason = "Sec-WebSocket-Version must be 13", 426;
  if (request->keys != 1 || !handshake_key_valid(request->key))
    return *reason = "there must be one Sec-WebSocket-Key, the base64 of 16 bytes", 400;
  if (!origin_allowed(request, allowed_origins))
    return *reason = "pages of this origin may not open streams", 403;
  if (!request->protocol_offered)
    return *reason = "the subprotocol " WIRE_SUBPROTOCOL " must be offered", 400;
  return 0;
}

void upgrade_decide(const struct upgrade_request *request, const char *method, const char *version,
                    const struct option_list *allowed_origins, struct upgrade_answer *answer) {
  *answer = (struct upgrade_answer){.status = 101};
  unsigned status = refuse(request, method, version, allowed_origins, &answer->reason);
  if (status)
    answer->status = status;
  else
    handshake_accept(request->key, answer->accept);
}
