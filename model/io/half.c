// SPDX-License-Identifier: Apache-2.0
#include "io/half.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float bits_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

uint16_t half_from_float(float value) {
  uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) // NaN: made quiet
    return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) // 65520 and above round to infinity
    return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) // below 2^-14: 2^-24 times a whole number, rounded by the addition
    return (uint16_t)(sign | (float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000));
  // The exponent's bias goes from 127 to 15; half a unit, or just under when that leaves an even
  // number, is added before 13 bits are dropped. A carry into the exponent is right as it is.
  return (uint16_t)(sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

float half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) { // infinity, or NaN made quiet
    uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    return bits_float(sign | 0x7f800000 | quiet | (magnitude & 0x3ff) << 13);
  }
  if (magnitude < 0x400) { // zero and denormals: 2^-24 times a whole number, exactly
    float value = (float)magnitude * 0x1p-24f;
    return sign ? -value : value;
  }
  return bits_float(sign | ((magnitude << 13) + 0x38000000));
}

#if defined(__x86_64__)
// F16C is bit 29 of ECX of leaf 1; the "avx" check adds that the system saves its registers.
static bool find_hardware(void) {
  unsigned a, b, c, d;
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 29));
}

// Asked once: under a hypervisor each CPUID costs as much as encoding twenty thousand numbers.
bool half_is_hardware(void) {
  static atomic_int known; // 0: not asked yet, 1: no, 2: yes
  int answer = atomic_load_explicit(&known, memory_order_relaxed);
  if (!answer) {
    answer = find_hardware() ? 2 : 1;
    atomic_store_explicit(&known, answer, memory_order_relaxed);
  }
  return answer == 2;
}

__attribute__((target("avx,f16c"))) static size_t encode_f16c(const float *from, char *to,
                                                              size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128((__m128i *)(to + 2 * i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}

__attribute__((target("avx,f16c"))) static size_t decode_f16c(const char *from, float *to,
                                                              size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + 2 * i))));
  return i;
}
#else
bool half_is_hardware(void) {
  return false;
}

static size_t encode_f16c(const float *from, char *to, size_t count) {
  (void)from, (void)to, (void)count;
  return 0;
}

static size_t decode_f16c(const char *from, float *to, size_t count) {
  (void)from, (void)to, (void)count;
  return 0;
}
#endif

void half_encode(const float *from, void *to, size_t count) {
  size_t done = half_is_hardware() ? encode_f16c(from, to, count) : 0;
  for (size_t i = done; i < count; i++) {
    uint16_t half = half_from_float(from[i]);
    memcpy((char *)to + 2 * i, &half, sizeof half);
  }
}

void half_decode(const void *from, float *to, size_t count) {
  size_t done = half_is_hardware() ? decode_f16c(from, to, count) : 0;
  for (size_t i = done; i < count; i++) {
    uint16_t half;
    memcpy(&half, (const char *)from + 2 * i, sizeof half);
    to[i] = half_to_float(half);
  }
}
