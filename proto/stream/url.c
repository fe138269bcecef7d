// SPDX-License-Identifier: Apache-2.0
#include "stream/url.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_printable(const char *text) {
  for (; *text; text++)
    if (*text <= 0x20 || *text >= 0x7f)
      return false;
  return true;
}

static bool copy(char *out, size_t size, const char *text, size_t length) {
  if (length >= size)
    return false;
  memcpy(out, text, length);
  out[length] = 0;
  return true;
}

// 1 to 65535, digits only.
static bool parse_port(struct stream_url *url, const char *text, size_t length) {
  if (length == 0 || length > 5 || strspn(text, "0123456789") < length)
    return false;
  copy(url->port, sizeof url->port, text, length);
  long port = strtol(url->port, NULL, 10);
  return port >= 1 && port <= 65535;
}

static bool parse_authority(struct stream_url *url, const char *text, size_t length) {
  if (!copy(url->authority, sizeof url->authority, text, length) || memchr(text, '@', length))
    return false;
  const char *host = text, *end = text + length, *after;
  if (*host == '[') {
    const char *bracket = memchr(host, ']', length);
    if (!bracket)
      return false;
    host++;
    after = bracket + 1;
    if (!copy(url->host, sizeof url->host, host, (size_t)(bracket - host)))
      return false;
  } else {
    const char *colon = memchr(host, ':', length);
    after = colon ? colon : end;
    if (!copy(url->host, sizeof url->host, host, (size_t)(after - host)))
      return false;
  }
  if (!url->host[0])
    return false;
  if (after == end)
    return copy(url->port, sizeof url->port, "80", 2);
  return *after == ':' && parse_port(url, after + 1, (size_t)(end - after - 1));
}

static bool parse(struct stream_url *url, const char *rest) {
  size_t authority = strcspn(rest, "/?#");
  const char *path = rest + authority;
  if (authority == 0 || !parse_authority(url, rest, authority))
    return false;
  if (!*path)
    path = "/v1/stream";
  return *path == '/' && !strchr(path, '#') &&
         copy(url->path, sizeof url->path, path, strlen(path));
}

int stream_url_parse(struct stream_url *url, const char *text, struct dsnet_error *error) {
  memset(url, 0, sizeof *url);
  if (!strncasecmp(text, "wss://", 6) || !strncasecmp(text, "https://", 8))
    return dsnet_error_set(error, DSNET_EUNSUPPORTED,
                           "%s: TLS is not spoken here; address the server behind the balancer, or "
                           "a local TLS proxy, with ws://",
                           text);
  if (strncasecmp(text, "ws://", 5) != 0 || !is_printable(text) || !parse(url, text + 5))
    return dsnet_error_set(error, DSNET_EVALUE, "\"%s\" is not of the form ws://HOST[:PORT][/PATH]",
                           text);
  return 0;
}
