// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels of this folder run on. A binary carries all variants and picks
// one at run time, so that what is built on one machine runs on another.
#ifndef DSNET_NN_SIMD_H
#define DSNET_NN_SIMD_H

#include <stdbool.h>

enum simd_level {
  SIMD_PLAIN,  // C alone, any processor
  SIMD_AVX2,   // AVX2 and FMA
  SIMD_AVX512, // AVX-512 F, with AVX2 and FMA
  SIMD_LEVELS,
};

// True when this processor, its operating system and this build can run the level.
bool simd_available(enum simd_level level);
// The highest level that is available.
enum simd_level simd_best(void);
const char *simd_name(enum simd_level level);

// Function multiversioning by hand. SIMD_VARIANTS(X) expands X(suffix, level, attribute) for every
// level this build can contain, lowest first.
#if defined(__x86_64__)
#define SIMD_TARGET_AVX2   __attribute__((target("avx2,fma")))
#define SIMD_TARGET_AVX512 __attribute__((target("avx2,fma,avx512f")))
#define SIMD_VARIANTS(X)                                                                           \
  X(plain, SIMD_PLAIN, )                                                                           \
  X(avx2, SIMD_AVX2, SIMD_TARGET_AVX2)                                                             \
  X(avx512, SIMD_AVX512, SIMD_TARGET_AVX512)
#else
#define SIMD_VARIANTS(X) X(plain, SIMD_PLAIN, )
#endif

#endif
