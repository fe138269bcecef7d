// SPDX-License-Identifier: Apache-2.0
// Binary frames of the dsnet.v1 stream: a fixed 16-byte little-endian header, then the payload.
//
//   offset 0  u8   kind       1 pose (client); 2 displacement, 3 posed vertices, 4 latent (server)
//          1  u8   encoding   0 f32, 1 f16, 2 i16
//          2  u16  count      pose: joints; results: 0 (the size follows from the opened message)
//          4  u32  seq
//          8  f64  timestamp  the client's clock in seconds, echoed
//
// Pose payload: f32 pose[count][3] axis-angle radians, f32 trans[3] metres.
// Result payload, n numbers (3 V or Z): f32 n floats; f16 n IEEE halves; i16 one f32 scale, then n
// integers. V, Z and the encoding are those of the session.
// Codecs only: no I/O, no allocation, any thread. Test vectors: tests/proto/cases.
#ifndef DSNET_WIRE_FRAME_H
#define DSNET_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_SIZE     16
#define FRAME_POSE_JOINTS     22 // joints used of those sent
#define FRAME_JOINTS_MIN      22
#define FRAME_JOINTS_MAX      55
#define FRAME_POSE_SIZE_MAX   (FRAME_HEADER_SIZE + (FRAME_JOINTS_MAX + 1) * 12)
#define FRAME_ROTATION_MAX    62.831853f // |axis-angle| over 10 turns is no pose
#define FRAME_TRANSLATION_MAX 1e5f       // metres from the origin; beyond it f32 loses centimetres

enum frame_kind { FRAME_POSE = 1, FRAME_DISPLACEMENT = 2, FRAME_VERTICES = 3, FRAME_LATENT = 4 };
enum frame_encoding { FRAME_F32 = 0, FRAME_F16 = 1, FRAME_I16 = 2 };

struct frame_header {
  uint8_t kind, encoding;
  uint16_t count;
  uint32_t seq;
  double timestamp;
};

// Why a frame or message cannot be used: the `code` of an error message, with a text for people.
#define WIRE_ERRORS(X)                                                                             \
  X(OK, "ok", "no error")                                                                          \
  X(BAD_SIZE, "bad_size", "the message's size does not fit its header")                            \
  X(BAD_KIND, "bad_kind", "the frame's kind is not one a client sends")                            \
  X(BAD_ENCODING, "bad_encoding", "the frame's encoding is not one this kind has")                 \
  X(BAD_COUNT, "bad_count", "the joint count is not within 22 to 55")                              \
  X(NOT_FINITE, "not_finite", "a value is NaN or infinite")                                        \
  X(OUT_OF_RANGE, "out_of_range", "a rotation or translation is too large to be a pose")           \
  X(BAD_SEQ, "bad_seq", "seq must grow")                                                           \
  X(BAD_JSON, "bad_json", "the message is not a JSON object of the protocol")                      \
  X(BAD_TYPE, "bad_type", "the message type is unknown")                                           \
  X(BAD_MEMBER, "bad_member", "a member has the wrong type or value")                              \
  X(NO_MODEL, "no_model", "there is no model of that name")                                        \
  X(NOT_OPEN, "not_open", "frames need an open session")                                           \
  X(ALREADY_OPEN, "already_open", "this connection has an open session")                           \
  X(UNSUPPORTED, "unsupported", "the server does not offer this option")                           \
  X(BAD_TOKEN, "bad_token", "the state token is altered, or no key here opens it")                 \
  X(EXPIRED_TOKEN, "expired_token", "the state token is too old, or from the future")              \
  X(WRONG_MODEL, "wrong_model", "the state token is of another model or body")                     \
  X(OVERLOADED, "overloaded", "the server is full")                                                \
  X(INTERNAL, "internal", "the server failed; the session is not harmed")

enum wire_error {
#define X(name, code, text) WIRE_##name,
  WIRE_ERRORS(X)
#undef X
};

const char *wire_error_code(enum wire_error error);
const char *wire_error_text(enum wire_error error);

void frame_header_write(const struct frame_header *header, uint8_t out[FRAME_HEADER_SIZE]);
void frame_header_read(const uint8_t in[FRAME_HEADER_SIZE], struct frame_header *header);

struct frame_pose {
  struct frame_header header;
  float pose[FRAME_POSE_JOINTS * 3]; // radians
  float trans[3];                    // metres
};

// Parses and checks a pose frame: exactly the size its header says, and every value, those of
// unused joints and the timestamp too, finite and within the limits above. On an error
// `pose->header` is filled if 16 bytes were there, the rest is undefined. Checking seq against the
// session is the caller's.
enum wire_error frame_pose_read(const uint8_t *bytes, size_t size, struct frame_pose *pose);

// Writes a frame of the header's joint count from values [count][3] and trans [3], one after the
// other, unchecked; returns its size.
size_t frame_pose_bytes(const struct frame_header *header, const float *values,
                        uint8_t out[FRAME_POSE_SIZE_MAX]);

// Bytes of a whole result frame, header included, for V vertices and Z latents; 0 when kind or
// encoding is none a server sends.
size_t frame_result_size(enum frame_kind kind, enum frame_encoding encoding, uint32_t vertices,
                         uint32_t latents);

// Writes a 22-joint pose frame of FRAME_HEADER_SIZE + 276 bytes; returns its size.
size_t frame_pose_write(const struct frame_pose *pose, uint8_t out[FRAME_POSE_SIZE_MAX]);

#endif
