// SPDX-License-Identifier: Apache-2.0
#include "stream/websocket.h"

#include <string.h>

size_t websocket_frame_write(uint8_t *out, enum websocket_opcode opcode, const uint8_t *payload,
                             size_t size, const uint8_t mask[4]) {
  size_t at = 0;
  out[at++] = (uint8_t)(0x80 | opcode);
  int length_bytes = size < 126 ? 0 : size <= 0xffff ? 2 : 8;
  out[at++] = (uint8_t)(0x80 | (length_bytes == 0 ? size : length_bytes == 2 ? 126 : 127));
  for (int i = length_bytes - 1; i >= 0; i--)
    out[at++] = (uint8_t)((uint64_t)size >> 8 * i);
  memcpy(out + at, mask, 4);
  at += 4;
  for (size_t i = 0; i < size; i++)
    out[at + i] = payload[i] ^ mask[i & 3];
  return at + size;
}

static bool is_control(uint8_t opcode) {
  return opcode & 8;
}

static size_t header_length(const struct websocket *websocket) {
  if (websocket->header_size < 2)
    return 2;
  uint8_t length = websocket->header[1] & 0x7f;
  return length == 126 ? 4 : length == 127 ? 10 : 2;
}

static uint64_t payload_length(const uint8_t *header) {
  uint64_t length = header[1] & 0x7f;
  int extended = length == 126 ? 2 : length == 127 ? 8 : 0;
  if (extended)
    length = 0;
  for (int i = 0; i < extended; i++)
    length = length << 8 | header[2 + i];
  return length;
}

static bool is_shortest_form(const uint8_t *header, uint64_t length) {
  uint8_t form = header[1] & 0x7f;
  if (form == 126)
    return length >= 126;
  return form != 127 || (length > 0xffff && !(length >> 63));
}

// The rule that the frame's header breaks, or NULL.
static const char *broken_rule(const struct websocket *websocket, uint64_t length) {
  uint8_t first = websocket->header[0], opcode = first & 15;
  if (first & 0x70)
    return "a reserved bit is set";
  if (websocket->header[1] & 0x80)
    return "a server's frame is masked";
  if (!is_shortest_form(websocket->header, length))
    return "a length is not in its shortest form";
  if (is_control(opcode)) {
    if (opcode > WEBSOCKET_PONG)
      return "an opcode is unknown";
    if (!(first & 0x80))
      return "a control frame is fragmented";
    return length > WEBSOCKET_CONTROL_MAX ? "a control frame is longer than 125 bytes" : NULL;
  }
  if (opcode > WEBSOCKET_BINARY)
    return "an opcode is unknown";
  if (opcode == WEBSOCKET_CONTINUATION && !websocket->message_opcode)
    return "a continuation has no message";
  if (opcode != WEBSOCKET_CONTINUATION && websocket->message_opcode)
    return "a message starts inside another";
  return NULL;
}

static void fail(struct websocket *websocket, struct websocket_event *event, const char *text,
                 uint16_t code) {
  websocket->broken = true;
  event->type = WEBSOCKET_EVENT_BAD;
  event->text = text;
  event->close_code = code;
}

// The header is complete: checks it and prepares for the payload. False when it is bad.
static bool start_payload(struct websocket *websocket, struct websocket_event *event) {
  uint64_t length = payload_length(websocket->header);
  const char *rule = broken_rule(websocket, length);
  if (rule) {
    fail(websocket, event, rule, 1002);
    return false;
  }
  websocket->opcode = websocket->header[0] & 15;
  websocket->final = websocket->header[0] & 0x80;
  websocket->payload_left = length;
  websocket->in_payload = true;
  websocket->header_size = websocket->control_size = 0;
  if (is_control(websocket->opcode))
    return true;
  if (websocket->opcode != WEBSOCKET_CONTINUATION) {
    websocket->message_opcode = websocket->opcode;
    websocket->message_size = 0;
  }
  if (length > websocket->message_max - websocket->message_size) {
    fail(websocket, event, "a message is longer than the session allows", 1009);
    return false;
  }
  websocket->message_size += length;
  return true;
}

static size_t read_header(struct websocket *websocket, const uint8_t *bytes, size_t size) {
  size_t used = 0;
  while (used < size && websocket->header_size < header_length(websocket))
    websocket->header[websocket->header_size++] = bytes[used++];
  return used;
}

// Gathers a control frame, which may come in pieces; it is an event once it is whole.
static void read_control(struct websocket *websocket, const uint8_t *bytes, size_t size,
                         struct websocket_event *event) {
  memcpy(websocket->control + websocket->control_size, bytes, size);
  websocket->control_size += size;
  if (websocket->payload_left)
    return;
  websocket->in_payload = false;
  event->type = WEBSOCKET_EVENT_CONTROL;
  event->opcode = (enum websocket_opcode)websocket->opcode;
  event->bytes = websocket->control;
  event->size = websocket->control_size;
}

static void read_data(struct websocket *websocket, const uint8_t *bytes, size_t size,
                      struct websocket_event *event) {
  bool end = websocket->final && !websocket->payload_left;
  websocket->in_payload = websocket->payload_left > 0;
  if (size == 0 && !end)
    return; // an empty fragment
  event->type = WEBSOCKET_EVENT_DATA;
  event->opcode = (enum websocket_opcode)websocket->message_opcode;
  event->end = end;
  event->bytes = bytes;
  event->size = size;
  if (end)
    websocket->message_opcode = 0;
}

size_t websocket_read(struct websocket *websocket, const uint8_t *bytes, size_t size,
                      struct websocket_event *event) {
  size_t used = 0;
  memset(event, 0, sizeof *event);
  if (websocket->broken) {
    fail(websocket, event, "the protocol was broken before", 1002);
    return 0;
  }
  while (event->type == WEBSOCKET_EVENT_NONE && used < size) {
    if (!websocket->in_payload) {
      used += read_header(websocket, bytes + used, size - used);
      if (websocket->header_size < header_length(websocket))
        break;
      if (!start_payload(websocket, event))
        break;
      // An empty payload is complete without a further byte.
      if (websocket->payload_left && used == size)
        break;
    }
    size_t piece = size - used;
    if (piece > websocket->payload_left)
      piece = (size_t)websocket->payload_left;
    websocket->payload_left -= piece;
    if (is_control(websocket->opcode))
      read_control(websocket, bytes + used, piece, event);
    else
      read_data(websocket, bytes + used, piece, event);
    used += piece;
  }
  return used;
}

uint64_t websocket_payload_left(const struct websocket *websocket) {
  return websocket->in_payload && !is_control(websocket->opcode) ? websocket->payload_left : 0;
}

void websocket_pass(struct websocket *websocket, size_t size, struct websocket_event *event) {
  memset(event, 0, sizeof *event);
  websocket->payload_left -= size;
  read_data(websocket, NULL, size, event);
}

// Codes that may stand in a close frame: RFC 6455, section 7.4, and the IANA registry.
static bool is_close_code(uint16_t code) {
  if (code >= 3000)
    return code < 5000;
  return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

uint16_t websocket_close_code(const uint8_t *payload, size_t size) {
  if (size == 0)
    return 1005;
  uint16_t code = size == 1 ? 0 : (uint16_t)(payload[0] << 8 | payload[1]);
  return is_close_code(code) ? code : 0;
}

const char *websocket_close_text(uint16_t code) {
  static const struct {
    uint16_t code;
    const char *text;
  } texts[] = {
      {1000, "normal closure"},   {1001, "going away"},      {1002, "protocol error"},
      {1003, "unsupported data"}, {1005, "no code given"},   {1007, "invalid payload data"},
      {1008, "policy violation"}, {1009, "message too big"}, {1011, "internal error"},
      {1012, "service restart"},  {1013, "try again later"}, {1014, "bad gateway"},
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i].code == code)
      return texts[i].text;
  return "";
}
