// SPDX-License-Identifier: Apache-2.0
#include "healthcheck.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const char *address_to_ask(const char *listen) {
  if (!strcmp(listen, "0.0.0.0"))
    return "127.0.0.1";
  return !strcmp(listen, "::") ? "::1" : listen;
}

static int connect_to(const char *address, const char *port) {
  const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                 .ai_socktype = SOCK_STREAM};
  const struct timeval patience = {.tv_sec = HEALTHCHECK_SECONDS};
  struct addrinfo *found = NULL;
  if (getaddrinfo(address, port, &hints, &found)) {
    errno = EINVAL;
    return -1;
  }
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
                  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) ||
                  connect(fd, found->ai_addr, found->ai_addrlen))) {
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

// The status of the answer to GET /readyz; 0 when there is none.
static int ask(int fd) {
  static const char request[] =
      "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  char answer[64] = "";
  int status = 0;
  size_t length = 0;
  if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1)
    return 0;
  for (ssize_t count = 1; count > 0 && length < sizeof answer - 1; length += (size_t)count) {
    count = recv(fd, answer + length, sizeof answer - 1 - length, 0);
    if (count <= 0)
      break;
  }
  return sscanf(answer, "HTTP/1.%*c %3d", &status) == 1 ? status : 0;
}

int healthcheck(const struct config *config, struct dsnet_error *error) {
  char port[16];
  const char *address = address_to_ask(config->listen);
  snprintf(port, sizeof port, "%lld", config->port);
  int fd = connect_to(address, port);
  if (fd < 0)
    return dsnet_error_set(error, DSNET_EIO, "cannot reach %s port %s: %s", address, port,
                           strerror(errno));
  int status = ask(fd);
  close(fd);
  if (status == 200)
    return 0;
  return status ? dsnet_error_set(error, DSNET_EIO, "not ready: /readyz answers %d", status)
                : dsnet_error_set(error, DSNET_EIO, "no answer within %d seconds",
                                  HEALTHCHECK_SECONDS);
}
