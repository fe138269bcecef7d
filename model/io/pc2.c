// SPDX-License-Identifier: Apache-2.0
#include "io/pc2.h"

#include <string.h>

static void put_u32(uint8_t *out, uint32_t value) {
  for (int i = 0; i < 4; i++)
    out[i] = (uint8_t)(value >> (8 * i));
}

static void put_f32(uint8_t *out, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_u32(out, bits);
}

void pc2_header_write(uint32_t points, uint32_t samples, uint8_t out[PC2_HEADER_SIZE]) {
  memcpy(out, "POINTCACHE2", 12);
  put_u32(out + 12, 1);
  put_u32(out + 16, points);
  put_f32(out + 20, 0);
  put_f32(out + 24, 1);
  put_u32(out + 28, samples);
}
