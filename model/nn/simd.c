// SPDX-License-Identifier: Apache-2.0
#include "nn/simd.h"

bool simd_available(enum simd_level level) {
  switch (level) {
  case SIMD_PLAIN:
    return true;
#if defined(__x86_64__)
  // These ask CPUID and, by XGETBV, whether the system saves the wide registers.
  case SIMD_AVX2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  case SIMD_AVX512:
    return __builtin_cpu_supports("avx512f") && simd_available(SIMD_AVX2);
#endif
  default:
    return false;
  }
}

enum simd_level simd_best(void) {
  enum simd_level level = SIMD_LEVELS - 1;
  while (!simd_available(level))
    level--;
  return level;
}

const char *simd_name(enum simd_level level) {
  static const char *const names[SIMD_LEVELS] = {"plain", "avx2", "avx512"};
  return names[level];
}
