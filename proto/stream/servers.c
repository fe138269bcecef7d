// SPDX-License-Identifier: Apache-2.0
#include "stream/servers.h"

#include <string.h>

static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

// Takes over what was found, unless that is nothing.
static void take_addresses(struct server *server, const struct addrinfo *found) {
  size_t count = 0;
  for (const struct addrinfo *at = found; at; at = at->ai_next)
    if (count < SERVER_ADDRESSES_MAX && (at->ai_family == AF_INET || at->ai_family == AF_INET6))
      memcpy(&server->addresses[count++], at->ai_addr, at->ai_addrlen);
  if (count)
    server->address_count = count;
}

// uv_getaddrinfo without a callback is synchronous; nothing else is running yet.
static int resolve(struct server *server, uv_loop_t *loop, struct dsnet_error *error) {
  const char *host = server->url->host;
  int status = uv_getaddrinfo(loop, &server->request, NULL, host, server->url->port, &hints);
  if (status < 0)
    return dsnet_error_set(error, DSNET_EIO, "%s: %s", host, uv_strerror(status));
  take_addresses(server, server->request.addrinfo);
  uv_freeaddrinfo(server->request.addrinfo);
  return server->address_count ? 0 : dsnet_error_set(error, DSNET_EIO, "%s: has no address", host);
}

static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *found) {
  struct server *server = request->data;
  server->looking_up = false;
  if (status == 0)
    take_addresses(server, found);
  uv_freeaddrinfo(found);
}

void servers_look_up(struct servers *servers, size_t index, uv_loop_t *loop) {
  struct server *server = &servers->list[index];
  if (server->looking_up)
    return;
  server->request.data = server;
  server->looking_up = uv_getaddrinfo(loop, &server->request, on_looked_up, server->url->host,
                                      server->url->port, &hints) == 0;
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
