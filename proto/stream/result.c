// SPDX-License-Identifier: Apache-2.0
#include "stream/result.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "io/half.h"
#include "io/int16.h"

int result_init(struct result *result, enum frame_kind kind, enum frame_encoding encoding,
                uint32_t vertices, uint32_t latents) {
  size_t size = frame_result_size(kind, encoding, vertices, latents);
  memset(result, 0, sizeof *result);
  if (!size)
    return DSNET_EVALUE;
  result->encoding = encoding;
  result->numbers = kind == FRAME_LATENT ? latents : 3 * (size_t)vertices;
  result->payload_size = size - FRAME_HEADER_SIZE;
  result->payload = memory_alloc(result->payload_size, 1);
  return result->payload ? 0 : DSNET_ENOMEM;
}

void result_deinit(struct result *result) {
  free(result->payload);
  memset(result, 0, sizeof *result);
}

void result_begin(struct result *result) {
  result->header_taken = result->payload_taken = 0;
}

bool result_take_header(struct result *result, const uint8_t **bytes, size_t *size,
                        struct frame_header *header) {
  size_t piece = FRAME_HEADER_SIZE - result->header_taken;
  if (piece > *size)
    piece = *size;
  memcpy(result->header + result->header_taken, *bytes, piece);
  result->header_taken += piece;
  *bytes += piece;
  *size -= piece;
  if (result->header_taken < FRAME_HEADER_SIZE)
    return false;
  frame_header_read(result->header, header);
  return true;
}

bool result_take_payload(struct result *result, const uint8_t *bytes, size_t size) {
  if (size > result->payload_size - result->payload_taken)
    return false;
  if (bytes)
    memcpy(result->payload + result->payload_taken, bytes, size);
  result->payload_taken += size;
  return true;
}

bool result_is_complete(const struct result *result) {
  return result->header_taken == FRAME_HEADER_SIZE && result->payload_taken == result->payload_size;
}

static uint32_t load_u32(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
         (uint32_t)bytes[3] << 24;
}

static float load_f32(const uint8_t *bytes) {
  uint32_t bits = load_u32(bytes);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// NaN and the infinities are the floats whose exponent is all ones. In integers, and without a
// branch, so that compilers make vector code of it.
static bool all_finite(const float *values, size_t count) {
  int32_t bad = 0;
  for (size_t i = 0; i < count; i++) {
    int32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    bad |= (bits & 0x7fffffff) >= 0x7f800000;
  }
  return !bad;
}

bool result_decode(const struct result *result, float *values) {
  switch (result->encoding) {
  case FRAME_F32:
    for (size_t i = 0; i < result->numbers; i++)
      values[i] = load_f32(result->payload + 4 * i);
    break;
  case FRAME_F16:
    half_decode(result->payload, values, result->numbers);
    break;
  case FRAME_I16:
    int16_decode(load_f32(result->payload), result->payload + 4, values, result->numbers);
    break;
  }
  return all_finite(values, result->numbers);
}

void result_note_largest(const float *values, size_t vertices, float *largest) {
  for (size_t v = 0; v < vertices; v++) {
    float x = values[3 * v], y = values[3 * v + 1], z = values[3 * v + 2];
    float squared = x * x + y * y + z * z;
    largest[v] = squared > largest[v] ? squared : largest[v];
  }
}
