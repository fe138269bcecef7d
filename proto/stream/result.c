// SPDX-License-Identifier: Apache-2.0
#include "stream/result.h"

#include <string.h>

#define VERTEX_SIZE 12

void result_begin(struct result *result) {
  result->header_size = result->payload_size = 0;
  result->finite = true;
}

bool result_take_header(struct result *result, const uint8_t **bytes, size_t *size,
                        struct frame_header *header) {
  size_t piece = FRAME_HEADER_SIZE - result->header_size;
  if (piece > *size)
    piece = *size;
  memcpy(result->header + result->header_size, *bytes, piece);
  result->header_size += piece;
  *bytes += piece;
  *size -= piece;
  if (result->header_size < FRAME_HEADER_SIZE)
    return false;
  frame_header_read(result->header, header);
  return true;
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
// branch, so that compilers make vector code of it: this touches every byte that comes in.
static bool all_finite(const uint8_t *bytes, size_t count) {
  int32_t bad = 0;
  for (size_t i = 0; i < count; i++)
    bad |= (int32_t)(load_u32(bytes + 4 * i) & 0x7fffffff) >= 0x7f800000;
  return !bad;
}

static void note_largest(float *largest, const uint8_t *bytes, size_t vertices) {
  for (size_t v = 0; v < vertices; v++) {
    float x = load_f32(bytes + 12 * v), y = load_f32(bytes + 12 * v + 4),
          z = load_f32(bytes + 12 * v + 8);
    float squared = x * x + y * y + z * z;
    largest[v] = squared > largest[v] ? squared : largest[v];
  }
}

static void take_vertices(struct result *result, size_t first, const uint8_t *bytes, size_t count) {
  result->finite &= all_finite(bytes, 3 * count);
  if (result->largest)
    note_largest(result->largest + first, bytes, count);
}

bool result_take_payload(struct result *result, const uint8_t *bytes, size_t size) {
  size_t whole = (size_t)result->vertices * VERTEX_SIZE;
  if (size > whole - result->payload_size)
    return false;
  size_t carried = result->payload_size % VERTEX_SIZE;
  size_t first = result->payload_size / VERTEX_SIZE;
  result->payload_size += size;
  if (carried) {
    size_t piece = VERTEX_SIZE - carried < size ? VERTEX_SIZE - carried : size;
    memcpy(result->carry + carried, bytes, piece);
    bytes += piece;
    size -= piece;
    if (carried + piece < VERTEX_SIZE)
      return true;
    take_vertices(result, first++, result->carry, 1);
  }
  size_t count = size / VERTEX_SIZE, rest = size % VERTEX_SIZE;
  take_vertices(result, first, bytes, count);
  memcpy(result->carry, bytes + size - rest, rest);
  return true;
}

bool result_is_complete(const struct result *result) {
  return result->header_size == FRAME_HEADER_SIZE &&
         result->payload_size == (size_t)result->vertices * VERTEX_SIZE;
}

bool result_is_finite(const struct result *result) {
  return result->finite;
}
