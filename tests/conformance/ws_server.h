// SPDX-License-Identifier: Apache-2.0
// A WebSocket server of a few lines around dsnetd's own WebSocket layer (server/websocket.h) and
// opening handshake (server/upgrade.h), for programs that test or measure those with little behind
// them. Serves 127.0.0.1 until the process is killed.
#ifndef DSNET_TESTS_WS_SERVER_H
#define DSNET_TESTS_WS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ws_peer;

struct ws_server_settings {
  const char *name;        // of the program, for what it prints
  const char *subprotocol; // answered to those who offer it; NULL: none
  size_t max_message;      // bytes
  size_t max_queued;       // messages to a peer that wait before nothing more is read of it
  int send_buffer;         // bytes that the kernel keeps for a peer; 0: its own choice
  unsigned threads;        // peers are dealt out to them in turn
  // A message of a peer; the bytes are the callback's while it runs. Called by the peer's thread.
  void (*message)(struct ws_peer *peer, bool text, const uint8_t *bytes, size_t size);
};

// What callbacks may use of a peer.
struct websocket *ws_peer_socket(struct ws_peer *peer);
// A word that is the callbacks' own, 0 at first.
uintptr_t *ws_peer_word(struct ws_peer *peer);

// Prints ws://127.0.0.1:PORT on a line and serves; port 0 takes a free one. Returns only with an
// exit status, when it cannot begin.
int ws_server_run(const struct ws_server_settings *settings, uint16_t port);

#endif
