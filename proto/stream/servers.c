// SPDX-License-Identifier: Apache-2.0
#include "stream/servers.h"

#include <string.h>

// uv_getaddrinfo without a callback is synchronous; nothing else is running yet.
static int resolve(struct server *server, uv_loop_t *loop, struct dsnet_error *error) {
  const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  uv_getaddrinfo_t request;
  int status = uv_getaddrinfo(loop, &request, NULL, server->url->host, server->url->port, &hints);
  if (status < 0)
    return dsnet_error_set(error, DSNET_EIO, "%s: %s", server->url->host, uv_strerror(status));
  for (struct addrinfo *at = request.addrinfo; at; at = at->ai_next)
    if (server->address_count < SERVER_ADDRESSES_MAX &&
        (at->ai_family == AF_INET || at->ai_family == AF_INET6))
      memcpy(&server->addresses[server->address_count++], at->ai_addr, at->ai_addrlen);
  uv_freeaddrinfo(request.addrinfo);
  return server->address_count
             ? 0
             : dsnet_error_set(error, DSNET_EIO, "%s: has no address", server->url->host);
}

int servers_resolve(struct servers *servers, uv_loop_t *loop, const struct stream_url *urls,
                    size_t count, struct dsnet_error *error) {
  int status = 0;
  for (size_t i = 0; status == 0 && i < count; i++) {
    servers->list[i] = (struct server){.url = &urls[i]};
    status = resolve(&servers->list[i], loop, error);
  }
  servers->count = count;
  return status;
}

size_t servers_next(const struct servers *servers, size_t index, uint64_t now) {
  size_t best = (index + 1) % servers->count;
  for (size_t i = 1; i <= servers->count; i++) {
    size_t candidate = (index + i) % servers->count;
    if (servers->list[candidate].not_before <= now)
      return candidate;
    if (servers->list[candidate].not_before < servers->list[best].not_before)
      best = candidate;
  }
  return best;
}
