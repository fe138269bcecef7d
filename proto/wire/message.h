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
#define MESSAGE_KEEPALIVE_MAX  3600.0 // seconds
#define MESSAGE_ID_MAX         65     // bytes of a ping's text with its NUL

enum message_type {
  MESSAGE_OPEN,
  MESSAGE_OPENED,
  MESSAGE_SHAPE,
  MESSAGE_RESET,
  MESSAGE_POSE,
  MESSAGE_PING,
  MESSAGE_PONG,
  MESSAGE_STATS,
  MESSAGE_CHECKPOINT,
  MESSAGE_KEEPALIVE,
  MESSAGE_ERROR
};
enum message_up { MESSAGE_UP_Z, MESSAGE_UP_Y };
enum message_delivery { MESSAGE_DELIVERY_ALL, MESSAGE_DELIVERY_LATEST };
enum message_format { MESSAGE_FORMAT_BINARY, MESSAGE_FORMAT_JSON };
enum message_glitch { MESSAGE_GLITCH_PASS, MESSAGE_GLITCH_HOLD };

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
  enum message_format format;      // "binary"; or "json": results as text (result_text_write)
  enum message_glitch glitch;      // "pass"; or "hold": implausible poses are replaced
  double keepalive;          // 0; or seconds without a message after which the server sends one
  uint32_t checkpoint_every; // 0: no checkpoints; else one every so many frames
  char resume[MESSAGE_TOKEN_MAX]; // "": a new session; else a state token (printable ASCII)
};

// The server's answer. All members but delay are required.
struct message_opened {
  char session[MESSAGE_NAME_MAX], model[MESSAGE_NAME_MAX];
  uint32_t vertices, latents;
  double fps;
  uint32_t next_seq;
  int trained;  // 1 when the model was trained, 0 when its motion means nothing
  double delay; // seconds by which results lag behind their poses, for lack of a frame in between
};

// From a client: the frames that follow have this shape. No answer.
struct message_shape {
  float betas[MESSAGE_BETAS_KEPT];
};

// `reset`, from a client, has no members: the next frame starts the sequence anew. No answer.
// `keepalive`, from a server, has none either and asks for nothing.

// A pose as text, for clients that cannot send binary: members seq, timestamp (0), pose (an array
// of 66 to 165 numbers, radians) and trans (3 numbers, metres). Checked as a binary frame is.
struct message_pose {
  struct frame_pose frame;
};

// `ping`, from a client; the server answers `pong` with the same id in its turn among the messages.
enum message_id { MESSAGE_ID_NONE, MESSAGE_ID_NUMBER, MESSAGE_ID_TEXT };
struct message_ping {
  enum message_id kind;
  int64_t number;
  char text[MESSAGE_ID_MAX];
};

// From a client, without members: asks for them. From a server: what has happened in this session.
struct message_stats {
  int has_values;
  uint64_t frames_in, frames_out; // poses taken, results sent
  uint64_t skipped;               // results that a newer one replaced (delivery "latest")
  uint64_t held;                  // poses that were implausible (glitch "hold")
  uint64_t gaps;                  // breaks in the timestamps at which motion was taken up anew
  double latency_p50_ms, latency_p99_ms; // from a pose's arrival to its result's, lately
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
    struct message_shape shape;
    struct message_pose pose;
    struct message_ping ping; // and pong
    struct message_stats stats;
    struct message_checkpoint checkpoint;
    struct message_error error;
  };
};

// "displacement", "vertices", "latent"; "f32", "f16", "i16"; "all", "latest"; "pass", "hold". NULL
// for what an open message has no word for.
const char *message_output_name(enum frame_kind output);
const char *message_encoding_name(enum frame_encoding encoding);
const char *message_delivery_name(enum message_delivery delivery);
const char *message_glitch_name(enum message_glitch glitch);

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

// A result as text, for sessions of format "json":
//   {"type":"result","seq":n,"timestamp":t,"kind":"displacement|vertices|latent",
//    "encoding":"f32|f16|i16","data":"<base64 (RFC 4648) of the binary frame's payload>"}
// `header` is that of the binary frame. Room for any result of that payload size:
size_t result_text_size(size_t payload_size);
// Returns the length, without a NUL; `out` has result_text_size bytes.
size_t result_text_write(const struct frame_header *header, const uint8_t *payload,
                         size_t payload_size, char *out);

#endif
