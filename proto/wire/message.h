// SPDX-License-Identifier: Apache-2.0
// JSON control messages of the dsnet.v1 stream (RFC 8259 text in WebSocket text messages): structs
// and back. Uses Jansson; no I/O. Unknown members of a known message are ignored, so that either
// side may grow; duplicate members, wrong types and values out of range are errors that name the
// member.
#ifndef DSNET_WIRE_MESSAGE_H
#define DSNET_WIRE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

#define WIRE_SUBPROTOCOL   "dsnet.v1"
#define MESSAGE_NAME_MAX   64
#define MESSAGE_BETAS_MAX  300 // accepted; the first 10 are used
#define MESSAGE_BETAS_KEPT 10
#define MESSAGE_SIZE_MAX   16384 // bytes of a text message

enum message_type { MESSAGE_OPEN, MESSAGE_OPENED, MESSAGE_ERROR };
enum message_up { MESSAGE_UP_Z, MESSAGE_UP_Y };

struct message_open {
  char model[MESSAGE_NAME_MAX]; // "default"
  float betas[MESSAGE_BETAS_KEPT];
  double fps;             // 60
  enum message_up up;     // z
  enum frame_kind output; // displacement
  enum frame_encoding encoding;
  uint32_t first_seq; // reserved for resume: 0
};

struct message_opened {
  char session[MESSAGE_NAME_MAX], model[MESSAGE_NAME_MAX];
  uint32_t vertices, latents;
  double fps;
  uint32_t next_seq;
  int trained; // 1 when the model was trained, 0 when its motion means nothing
};

struct message_error {
  int has_seq;
  uint32_t seq;
  char code[32];
  char text[256];
};

struct message {
  enum message_type type;
  union {
    struct message_open open;
    struct message_opened opened;
    struct message_error error;
  };
};

// Parses one text message. On failure says why in `why` (one line).
enum wire_error message_read(const char *text, size_t size, struct message *message, char *why,
                             size_t why_size);

// Writes the message as JSON into out; returns its length without the NUL, or 0 when it does not
// fit or memory is out.
size_t message_write(const struct message *message, char *out, size_t size);

#endif
