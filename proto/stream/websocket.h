// SPDX-License-Identifier: Apache-2.0
// WebSocket framing of a client (RFC 6455, section 5). Own code rather than wslay's, because a load
// generator takes in gigabytes a second: wslay reads through a 4 KiB buffer and copies each message
// together, this parser hands out the payload where the socket left it.
//
// No I/O, no allocation; one thread per parser.
#ifndef DSNET_STREAM_WEBSOCKET_H
#define DSNET_STREAM_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEBSOCKET_HEADER_MAX  14 // of a masked frame
#define WEBSOCKET_CONTROL_MAX 125

enum websocket_opcode {
  WEBSOCKET_CONTINUATION = 0,
  WEBSOCKET_TEXT = 1,
  WEBSOCKET_BINARY = 2,
  WEBSOCKET_CLOSE = 8,
  WEBSOCKET_PING = 9,
  WEBSOCKET_PONG = 10,
};

// Writes a whole masked frame (a client must mask) to `out`, which has room for size +
// WEBSOCKET_HEADER_MAX bytes. Returns its length. `mask` must be unpredictable.
size_t websocket_frame_write(uint8_t *out, enum websocket_opcode opcode, const uint8_t *payload,
                             size_t size, const uint8_t mask[4]);

// The parser of what the server sends. Start from {.message_max = N}.
struct websocket {
  uint64_t message_max; // a longer message is an error, however it is fragmented
  // Private:
  uint8_t header[10], control[WEBSOCKET_CONTROL_MAX];
  size_t header_size, control_size;
  uint64_t payload_left, message_size;
  uint8_t opcode, message_opcode; // message_opcode 0: between messages
  bool final, in_payload, broken;
};

enum websocket_event_type {
  WEBSOCKET_EVENT_NONE,    // the input is used up
  WEBSOCKET_EVENT_DATA,    // a piece of a text or binary message
  WEBSOCKET_EVENT_CONTROL, // a whole close, ping or pong
  WEBSOCKET_EVENT_BAD,     // the server broke the protocol; nothing more can be read
};

struct websocket_event {
  enum websocket_event_type type;
  enum websocket_opcode opcode; // TEXT or BINARY of data; of the control frame
  bool end;                     // data: the message's last piece (which may be empty)
  const uint8_t *bytes;         // inside the input, or inside the parser until the next call
  size_t size;
  const char *text;    // BAD: which rule was broken
  uint16_t close_code; // BAD: the code of section 7.4.1 to close with
};

// Takes the next event out of `bytes`; returns how many bytes of it were used up. Call again with
// the rest until the event is NONE (then all were) or BAD.
size_t websocket_read(struct websocket *websocket, const uint8_t *bytes, size_t size,
                      struct websocket_event *event);

// Bytes of a data frame's payload that are still to come before its next header; 0 outside one.
uint64_t websocket_payload_left(const struct websocket *websocket);

// Takes `size` of those bytes (at least one) as read, though nobody has seen them. The event is
// their piece of the message, with bytes NULL.
void websocket_pass(struct websocket *websocket, size_t size, struct websocket_event *event);

// The code of a close frame's payload, 1005 when it has none, 0 when the payload is malformed.
uint16_t websocket_close_code(const uint8_t *payload, size_t size);

// "going away" for 1001; "" for a code without a registered meaning.
const char *websocket_close_text(uint16_t code);

#endif
