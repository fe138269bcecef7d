// SPDX-License-Identifier: Apache-2.0
// The binary codec. Numbers are assembled byte by byte, so that neither the machine's byte order
// nor the alignment of a network buffer matters.
#include "wire/frame.h"

#include <math.h>
#include <string.h>

static uint16_t read_u16(const uint8_t *in) {
  return (uint16_t)(in[0] | in[1] << 8);
}

static uint32_t read_u32(const uint8_t *in) {
  return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static float read_f32(const uint8_t *in) {
  uint32_t bits = read_u32(in);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double read_f64(const uint8_t *in) {
  uint64_t bits = (uint64_t)read_u32(in) | (uint64_t)read_u32(in + 4) << 32;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void write_u32(uint8_t *out, uint32_t value) {
  for (int i = 0; i < 4; i++)
    out[i] = (uint8_t)(value >> 8 * i);
}

static void write_f32(uint8_t *out, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  write_u32(out, bits);
}

static void write_f64(uint8_t *out, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  write_u32(out, (uint32_t)bits);
  write_u32(out + 4, (uint32_t)(bits >> 32));
}

void frame_header_write(const struct frame_header *header, uint8_t out[FRAME_HEADER_SIZE]) {
  out[0] = header->kind;
  out[1] = header->encoding;
  out[2] = (uint8_t)header->count;
  out[3] = (uint8_t)(header->count >> 8);
  write_u32(out + 4, header->seq);
  write_f64(out + 8, header->timestamp);
}

void frame_header_read(const uint8_t in[FRAME_HEADER_SIZE], struct frame_header *header) {
  header->kind = in[0];
  header->encoding = in[1];
  header->count = read_u16(in + 2);
  header->seq = read_u32(in + 4);
  header->timestamp = read_f64(in + 8);
}

// Reads three floats and checks them. NaN is not above any limit, so finiteness is asked first.
static enum wire_error read_vector(const uint8_t *in, float vector[3]) {
  for (int i = 0; i < 3; i++) {
    vector[i] = read_f32(in + 4 * i);
    if (!isfinite(vector[i]))
      return WIRE_NOT_FINITE;
  }
  return WIRE_OK;
}

static enum wire_error read_rotation(const uint8_t *in, float rotation[3]) {
  enum wire_error error = read_vector(in, rotation);
  if (error != WIRE_OK)
    return error;
  double x = rotation[0], y = rotation[1], z = rotation[2]; // squares of floats fit a double
  double limit = FRAME_ROTATION_MAX;
  return x * x + y * y + z * z > limit * limit ? WIRE_OUT_OF_RANGE : WIRE_OK;
}

static enum wire_error read_translation(const uint8_t *in, float translation[3]) {
  enum wire_error error = read_vector(in, translation);
  for (int i = 0; i < 3 && error == WIRE_OK; i++)
    if (fabsf(translation[i]) > FRAME_TRANSLATION_MAX)
      error = WIRE_OUT_OF_RANGE;
  return error;
}

static enum wire_error check_header(const struct frame_header *header, size_t size) {
  if (header->kind != FRAME_POSE)
    return WIRE_BAD_KIND;
  if (header->encoding != FRAME_F32)
    return WIRE_BAD_ENCODING;
  if (header->count < FRAME_JOINTS_MIN || header->count > FRAME_JOINTS_MAX)
    return WIRE_BAD_COUNT;
  if (size != FRAME_HEADER_SIZE + ((size_t)header->count + 1) * 12)
    return WIRE_BAD_SIZE;
  return isfinite(header->timestamp) ? WIRE_OK : WIRE_NOT_FINITE;
}

enum wire_error frame_pose_read(const uint8_t *bytes, size_t size, struct frame_pose *pose) {
  if (size < FRAME_HEADER_SIZE)
    return WIRE_BAD_SIZE;
  frame_header_read(bytes, &pose->header);
  enum wire_error error = check_header(&pose->header, size);
  const uint8_t *in = bytes + FRAME_HEADER_SIZE;
  for (size_t joint = 0; joint < pose->header.count && error == WIRE_OK; joint++, in += 12) {
    float unused[3];
    error = read_rotation(in, joint < FRAME_POSE_JOINTS ? pose->pose + 3 * joint : unused);
  }
  return error == WIRE_OK ? read_translation(in, pose->trans) : error;
}

size_t frame_pose_bytes(const struct frame_header *header, const float *values,
                        uint8_t out[FRAME_POSE_SIZE_MAX]) {
  size_t count = ((size_t)header->count + 1) * 3;
  frame_header_write(header, out);
  for (size_t i = 0; i < count; i++)
    write_f32(out + FRAME_HEADER_SIZE + 4 * i, values[i]);
  return FRAME_HEADER_SIZE + 4 * count;
}

size_t frame_pose_write(const struct frame_pose *pose, uint8_t out[FRAME_POSE_SIZE_MAX]) {
  struct frame_header header = pose->header;
  header.kind = FRAME_POSE;
  header.encoding = FRAME_F32;
  header.count = FRAME_POSE_JOINTS;
  frame_header_write(&header, out);
  uint8_t *at = out + FRAME_HEADER_SIZE;
  for (size_t i = 0; i < FRAME_POSE_JOINTS * 3; i++, at += 4)
    write_f32(at, pose->pose[i]);
  for (size_t i = 0; i < 3; i++, at += 4)
    write_f32(at, pose->trans[i]);
  return (size_t)(at - out);
}

size_t frame_result_size(enum frame_kind kind, enum frame_encoding encoding, uint32_t vertices,
                         uint32_t latents) {
  size_t numbers;
  switch (kind) {
  case FRAME_DISPLACEMENT:
  case FRAME_VERTICES:
    numbers = 3 * (size_t)vertices;
    break;
  case FRAME_LATENT:
    numbers = latents;
    break;
  default:
    return 0;
  }
  switch (encoding) {
  case FRAME_F32:
    return FRAME_HEADER_SIZE + 4 * numbers;
  case FRAME_F16:
    return FRAME_HEADER_SIZE + 2 * numbers;
  case FRAME_I16:
    return FRAME_HEADER_SIZE + 4 + 2 * numbers;
  }
  return 0;
}
