// SPDX-License-Identifier: Apache-2.0
// Any bytes from a client after the handshake: messages keep to the limit, texts are UTF-8, what
// waits to be sent stays bounded, and cutting the input elsewhere, or pausing after each message,
// changes nothing of what is handed over and how it ends.
#include <stdlib.h>
#include <string.h>

#include "websocket.h"

#define LIMIT 1000

struct peer {
  struct websocket ws;
  const uint8_t *input;
  size_t left;
  bool pausing;
  uint64_t messages; // a hash over all of them, FNV-1a
};

static struct websocket_spare spare;

static ssize_t read_input(void *user, uint8_t *bytes, size_t size) {
  struct peer *peer = user;
  size = size < peer->left ? size : peer->left;
  if (size)
    memcpy(bytes, peer->input, size);
  peer->input += size;
  peer->left -= size;
  return (ssize_t)size;
}

static void add(struct peer *peer, uint8_t byte) {
  peer->messages = (peer->messages ^ byte) * 0x100000001B3;
}

static void on_message(void *user, bool text, const uint8_t *bytes, size_t size) {
  struct peer *peer = user;
  if (size > LIMIT || (text && !utf8_valid(bytes, size)))
    abort();
  for (size_t i = 0; i < size; i++)
    add(peer, bytes[i]);
  add(peer, text);
  peer->ws.paused = peer->pausing;
}

static const struct websocket_callbacks callbacks = {.read = read_input, .message = on_message};

// Takes all that is to be written, `step` bytes at a time.
static void drain(struct websocket *ws, size_t step) {
  struct iovec vectors[4];
  size_t total = 0;
  while (websocket_output(ws, vectors, 4)) {
    size_t part = vectors[0].iov_len < step ? vectors[0].iov_len : step;
    websocket_written(ws, part);
    total += part;
  }
  if (total > sizeof ws->control + WEBSOCKET_PONGS)
    abort();
}

static void run(struct peer *peer, const uint8_t *data, size_t size, size_t piece, bool pausing) {
  *peer = (struct peer){.input = data, .pausing = pausing};
  struct websocket *ws = &peer->ws;
  websocket_init(ws, LIMIT, &spare, &callbacks, peer);
  while (size && !ws->stopped) {
    peer->left = piece < size ? piece : size;
    size -= peer->left;
    do {
      ws->paused = false;
      websocket_receive(ws);
      drain(ws, piece);
    } while (ws->paused);
    if (ws->message_capacity > LIMIT || ws->message_size > LIMIT || ws->failed)
      abort();
    if (!ws->stopped && peer->left)
      abort();
  }
  if (ws->stopped != (ws->violation || ws->close_received))
    abort();
  websocket_deinit(ws);
}

static bool equal(const struct peer *a, const struct peer *b) {
  return a->messages == b->messages && a->ws.violation == b->ws.violation &&
         a->ws.close_received == b->ws.close_received;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct peer whole, octets, paused;
  run(&whole, data, size, size, false);
  run(&octets, data, size, 1, false);
  run(&paused, data, size, 7, true);
  if (!equal(&whole, &octets) || !equal(&whole, &paused))
    abort();
  return 0;
}
