// SPDX-License-Identifier: Apache-2.0
#include "io/mdd.h"

#include <string.h>

static void put_u32(uint8_t *out, uint32_t value) {
  for (int i = 0; i < 4; i++)
    out[i] = (uint8_t)(value >> (24 - 8 * i));
}

void mdd_header_write(uint32_t points, uint32_t frames, uint8_t out[MDD_HEADER_SIZE]) {
  put_u32(out, frames);
  put_u32(out + 4, points);
}

void mdd_floats_write(const float *values, size_t count, uint8_t *out) {
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    put_u32(out + 4 * i, bits);
  }
}
