// SPDX-License-Identifier: Apache-2.0
// ws-echo [PORT]: every message comes back as it is. Made for conformance suites.
#include <stdlib.h>
#include <string.h>

#include "websocket.h"
#include "ws_server.h"

struct echo {
  struct outgoing outgoing;
  uint8_t bytes[];
};

static void release_echo(struct outgoing *outgoing, void *user) {
  (void)user;
  free((char *)outgoing - offsetof(struct echo, outgoing));
}

static void echo_message(struct ws_peer *peer, bool text, const uint8_t *bytes, size_t size) {
  struct websocket *ws = ws_peer_socket(peer);
  struct echo *echo = malloc(sizeof *echo + WEBSOCKET_HEADER_MAX + size);
  if (!echo) {
    websocket_fail(ws, WEBSOCKET_INTERNAL, "out of memory");
    return;
  }
  uint8_t *payload = echo->bytes + WEBSOCKET_HEADER_MAX;
  if (size)
    memcpy(payload, bytes, size);
  size_t header =
      text ? websocket_text_header(payload, size) : websocket_binary_header(payload, size);
  echo->outgoing =
      (struct outgoing){.bytes = payload - header, .size = header + size, .release = release_echo};
  websocket_queue(ws, &echo->outgoing);
}

int main(int argc, char **argv) {
  static const struct ws_server_settings settings = {.name = "ws-echo",
                                                     .max_message = 16u << 20,
                                                     .max_queued = 32,
                                                     .threads = 1,
                                                     .message = echo_message};
  return ws_server_run(&settings, argc > 1 ? (uint16_t)atoi(argv[1]) : 0);
}
