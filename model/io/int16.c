// SPDX-License-Identifier: Apache-2.0
#include "io/int16.h"

#include <string.h>

#include "nn/simd.h"

#define LARGEST 32767
// Added to a number of small magnitude it leaves the nearest integer in the low bits of the sum.
#define SHIFT 12582912.0f // 1.5 * 2^23

// The bits of a float without its sign grow with its magnitude, and their maximum, unlike that of
// floats, is one the compiler vectorises. Loops over blocks, so that the tails do not matter.
#define ENCODE_VARIANT(suffix, level, attribute)                                                   \
  attribute static uint32_t largest_##suffix(const float *from, size_t count) {                    \
    uint32_t most = 0;                                                                             \
    for (size_t i = 0; i < count; i++) {                                                           \
      uint32_t bits;                                                                               \
      memcpy(&bits, from + i, sizeof bits);                                                        \
      bits &= 0x7fffffff;                                                                          \
      most = bits > most ? bits : most;                                                            \
    }                                                                                              \
    return most;                                                                                   \
  }                                                                                                \
  attribute static void quantise_##suffix(const float *from, float inverse, int16_t *to,           \
                                          size_t count) {                                          \
    for (size_t i = 0; i < count; i++) {                                                           \
      float shifted = from[i] * inverse + SHIFT;                                                   \
      int32_t bits;                                                                                \
      memcpy(&bits, &shifted, sizeof bits);                                                        \
      to[i] = (int16_t)bits;                                                                       \
    }                                                                                              \
  }
SIMD_VARIANTS(ENCODE_VARIANT)

static const struct {
  uint32_t (*largest)(const float *from, size_t count);
  void (*quantise)(const float *from, float inverse, int16_t *to, size_t count);
} kernels[SIMD_LEVELS] = {
#define ENCODE_ENTRY(suffix, level, attribute) [level] = {largest_##suffix, quantise_##suffix},
    SIMD_VARIANTS(ENCODE_ENTRY)};

float int16_encode(const float *from, void *to, size_t count) {
  enum simd_level level = simd_best();
  uint32_t bits = kernels[level].largest(from, count);
  float most, scale;
  memcpy(&most, &bits, sizeof most);
  scale = most / LARGEST;
  // A scale that is not a normal number has no exact inverse: all values are as good as 0.
  float inverse = scale > 1e-37f ? 1 / scale : 0;
  kernels[level].quantise(from, inverse, to, count);
  return inverse > 0 ? scale : 0;
}

void int16_decode(float scale, const void *from, float *to, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int16_t q;
    memcpy(&q, (const char *)from + i * sizeof q, sizeof q);
    to[i] = scale * (float)q;
  }
}
