// SPDX-License-Identifier: Apache-2.0
// Any bytes from a server, as the answer to the handshake and as frames: events lie inside the
// input, messages keep to the limit, and cutting the input elsewhere, or passing payloads over,
// changes nothing but the cuts.
#include <stdlib.h>

#include "stream/upgrade.h"
#include "stream/websocket.h"

#define LIMIT 1000

struct totals {
  size_t events, bytes, ends;
  bool bad;
};

// With `pass` the payloads of data are passed over where that can be.
static struct totals parse(const uint8_t *data, size_t size, size_t piece, bool pass) {
  struct websocket websocket = {.message_max = LIMIT};
  struct totals totals = {0};
  size_t message = 0;
  for (size_t at = 0; at < size && !totals.bad;) {
    struct websocket_event event;
    size_t left = size - at < piece ? size - at : piece;
    uint64_t payload = pass ? websocket_payload_left(&websocket) : 0;
    size_t used = payload < left ? (size_t)payload : left;
    if (payload)
      websocket_pass(&websocket, used, &event);
    else
      used = websocket_read(&websocket, data + at, left, &event);
    if (used > left || (event.type == WEBSOCKET_EVENT_NONE && used != left))
      abort();
    at += used;
    totals.bad = event.type == WEBSOCKET_EVENT_BAD;
    totals.bytes += event.size;
    totals.ends += event.end;
    totals.events += event.type == WEBSOCKET_EVENT_CONTROL;
    if (event.type == WEBSOCKET_EVENT_DATA) {
      if (event.bytes && event.size &&
          (event.bytes < data || event.bytes + event.size > data + size))
        abort();
      message = event.end ? 0 : message + event.size;
      if (message > LIMIT)
        abort();
    }
  }
  return totals;
}

static bool equal(struct totals a, struct totals b) {
  return a.events == b.events && a.bytes == b.bytes && a.ends == b.ends && a.bad == b.bad;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct upgrade_response response;
  upgrade_response_read((const char *)data, size, "dGhlIHNhbXBsZSBub25jZQ==", &response);
  struct totals whole = parse(data, size, size, false);
  if (!equal(whole, parse(data, size, 1, false)) || !equal(whole, parse(data, size, 7, true)))
    abort();
  return 0;
}
