// SPDX-License-Identifier: Apache-2.0
// The servers of a run, which its sessions try in turn: their addresses, and until when each has
// asked to be left alone. Loop thread.
#ifndef DSNET_STREAM_SERVERS_H
#define DSNET_STREAM_SERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <uv.h>

#include "base/error.h"
#include "stream/url.h"

#define SERVERS_MAX          16
#define SERVER_ADDRESSES_MAX 8

struct server {
  const struct stream_url *url;
  struct sockaddr_storage addresses[SERVER_ADDRESSES_MAX];
  size_t address_count;
  uint64_t not_before; // uv_hrtime, ns: a Retry-After that it has sent
  // Private:
  uv_getaddrinfo_t request;
  bool looking_up;
};

struct servers {
  struct server list[SERVERS_MAX];
  size_t count;
};

// Looks up 1 to SERVERS_MAX hosts, waiting for each answer; the caller keeps `urls`. DSNET_EIO
// names the host that is unknown.
int servers_resolve(struct servers *servers, uv_loop_t *loop, const struct stream_url *urls,
                    size_t count, struct dsnet_error *error);

// Starts to look a host up again, since a service that moved may have another address. The old ones
// hold until the answer comes, and when it is none. Does nothing while the last one is awaited; the
// loop runs on until then.
void servers_look_up(struct servers *servers, size_t index, uv_loop_t *loop);

// The server to try after the one at `index`: the next in turn that may be asked at `now`, or the
// one that may be asked first.
size_t servers_next(const struct servers *servers, size_t index, uint64_t now);

#endif
