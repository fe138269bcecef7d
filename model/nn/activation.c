// SPDX-License-Identifier: Apache-2.0
#include "nn/activation.h"

#include "nn/lanes.h"

// One function over an array, sixteen at a time; the last few pass through a full vector as well,
// so that a value's result does not depend on where it stands.
#define DEFINE_ACTIVATION(function, suffix, target)                                                \
  target static void function##_##suffix(float *values, size_t count) {                            \
    lanes v;                                                                                       \
    size_t i = 0;                                                                                  \
    for (; i + LANES <= count; i += LANES) {                                                       \
      lanes_load(&v, values + i);                                                                  \
      lanes_##function(&v);                                                                        \
      lanes_store(&v, values + i);                                                                 \
    }                                                                                              \
    if (i == count)                                                                                \
      return;                                                                                      \
    v = (lanes){0};                                                                                \
    memcpy(&v, values + i, (count - i) * sizeof *values);                                          \
    lanes_##function(&v);                                                                          \
    memcpy(values + i, &v, (count - i) * sizeof *values);                                          \
  }

#define DEFINE_VARIANT(suffix, level, target)                                                      \
  DEFINE_ACTIVATION(sigmoid, suffix, target)                                                       \
  DEFINE_ACTIVATION(tanh, suffix, target)
SIMD_VARIANTS(DEFINE_VARIANT)

void activation_sigmoid(enum simd_level level, float *values, size_t count) {
  static void (*const variants[SIMD_LEVELS])(float *, size_t) = {
#define ENTRY(suffix, number, target) [number] = sigmoid_##suffix,
      SIMD_VARIANTS(ENTRY)
#undef ENTRY
  };
  variants[level](values, count);
}

void activation_tanh(enum simd_level level, float *values, size_t count) {
  static void (*const variants[SIMD_LEVELS])(float *, size_t) = {
#define ENTRY(suffix, number, target) [number] = tanh_##suffix,
      SIMD_VARIANTS(ENTRY)
#undef ENTRY
  };
  variants[level](values, count);
}
