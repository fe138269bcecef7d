// SPDX-License-Identifier: Apache-2.0
// JSON control messages of the dsnet.v1 stream (RFC 8259 text in WebSocket text messages): structs
// and back. Uses Jansson; no I/O; any thread. Unknown members of a known message are ignored, so
// that either side may grow; duplicate members, wrong types and values out of range are errors that
// name the member. Test vectors: tests/proto/cases.
#ifndef DSNET_WIRE_MESSAGE_H
#define DSNET_WIRE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

#define WIRE_SUBPROTOCOL       "dsnet.v1"
#define MESSAGE_SIZE_MAX       65536 // bytes of a text message
#define MESSAGE_NAME_MAX       64    // bytes of a name with its NUL
#define MESSAGE_TOKEN_MAX      57344 // bytes of a state token with its NUL
#define MESSAGE_BETAS_MAX      300   // accepted; the first 10 are used
#define MESSAGE_BETAS_KEPT     10
#define MESSAGE_BETA_LIMIT     100.0 // in standard deviations; no body is beyond
#define MESSAGE_FPS_MIN        1.0
#define MESSAGE_FPS_MAX        1000.0
#define MESSAGE_VERTICES_LIMIT 10000000
#define MESSAGE_LATENTS_LIMIT  65535

enum message_type { MESSAGE_OPEN, MESSAGE_OPENED, MESSAGE_CHECKPOINT, MESSAGE_ERROR };
enum message_up { MESSAGE_UP_Z, MESSAGE_UP_Y };
enum message_delivery { MESSAGE_DELIVERY_ALL, MESSAGE_DELIVERY_LATEST };

// The client's first message. Every member has a default, given on its right. The codec reads all
// that the protocol defines; what a server does not offer it must answer with WIRE_UNSUPPORTED.
struct message_open {
  char model[MESSAGE_NAME_MAX];    // "default"
  float betas[MESSAGE_BETAS_KEPT]; // 0; standard deviations of the body's shape directions
  double fps;                      // 60
  enum message_up up;              // "z"
  enum frame_kind output;          // "displacement"; or "vertices", "latent"
  enum frame_encoding encoding;    // "f32"; or "f16", "i16"
  enum message_delivery delivery;  // "all"; or "latest"
  uint32_t checkpoint_every;       // 0: no checkpoints; else one every so many frames
  char resume[MESSAGE_TOKEN_MAX];  // "": a new session; else a state token (printable ASCII)
};

// The server's answer. All members are required.
struct message_opened {
  char session[MESSAGE_NAME_MAX], model[MESSAGE_NAME_MAX];
  uint32_t vertices, latents;
  double fps;
  uint32_t next_seq;
  int trained; // 1 when the model was trained, 0 when its motion means nothing
};

// From a client, without members: asks for a checkpoint after the frames taken so far. From a
// server: the session's state after frame `seq`, for `resume`.
struct message_checkpoint {
  uint32_t seq;
  char token[MESSAGE_TOKEN_MAX]; // printable ASCII; "": a client's request, seq is 0
};

// A refusal of one frame (with its seq) or of one message. The code is for programs (the table in
// frame.h), the text for people: one line, cut to fit when it is longer.
struct message_error {
  int has_seq;
  uint32_t seq;
  char code[32];
  char text[256]; // the member "message"
};

struct message {
  enum message_type type;
  union {
    struct message_open open;
    struct message_opened opened;
    struct message_checkpoint checkpoint;
    struct message_error error;
  };
};

// The defaults of the table above.
void message_open_init(struct message_open *open);

// Parses one text message. On failure `message` is undefined and `why` (may be NULL) says what is
// wrong in one line of UTF-8 without control characters, fit for a message_error's text.
enum wire_error message_read(const char *text, size_t size, struct message *message, char *why,
                             size_t why_size);

// Writes the message as JSON with a NUL into out; returns its length without the NUL, or 0 when it
// does not fit, memory is out, a number is not finite or a name is not UTF-8. What is not
// UTF-8 in an error's text is written as '?'.
size_t message_write(const struct message *message, char *out, size_t size);

#endif
