// SPDX-License-Identifier: Apache-2.0
// Sixteen floats at once and the functions of them that recurrent layers need (internal to this
// folder). Written with the compilers' vector types, which every target lowers to what registers it
// has: one source for all levels of nn/simd.h. To be inlined into functions with a target
// attribute.
#ifndef DSNET_NN_LANES_H
#define DSNET_NN_LANES_H

#include <stdint.h>
#include <string.h>

#define LANES 16

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_bits __attribute__((vector_size(4 * LANES)));
typedef uint32_t lanes_words __attribute__((vector_size(4 * LANES)));

// Arguments are pointers and everything is inlined, so that no calling convention depends on the
// target.
#define LANES_FUNCTION static inline __attribute__((always_inline)) void

LANES_FUNCTION lanes_load(lanes *v, const float *from) {
  memcpy(v, from, sizeof *v);
}

LANES_FUNCTION lanes_store(const lanes *v, float *to) {
  memcpy(to, v, sizeof *v);
}

// Limits |*v|. By the bits, which order magnitudes as whole numbers do: GCC 12 takes comparisons of
// vectors apart when it compiles for AVX-512. A NaN becomes the limit as well.
LANES_FUNCTION lanes_clamp(lanes *v, float limit) {
  lanes limits = (lanes){0} + limit;
  lanes_bits magnitude = (lanes_bits)*v & 0x7fffffff, sign = (lanes_bits)*v ^ magnitude;
  lanes_bits beyond = ((lanes_bits)limits - magnitude) >> 31; // all ones where it is
  *v = (lanes)(sign | (beyond & (lanes_bits)limits) | (~beyond & magnitude));
}

// *v = e^*v - 1 for |*v| < 88, to some units in the last place near 0 too.
// e^v = 2^n e^r with n the nearest whole number to v / ln 2, so |r| <= ln 2 / 2, where seven terms
// of the series leave out less than half a unit in the last place.
LANES_FUNCTION lanes_expm1(lanes *v) {
  const float round = 12582912; // 1.5 * 2^23: adding it leaves the whole number in the low bits
  lanes shifted = *v * 1.44269504f + round;
  lanes n = shifted - round;
  lanes r = *v - n * 0.693359375f; // ln 2 in two parts; n times the first is exact
  r = r + n * 2.12194440e-4f;
  lanes series = r * (1.f / 5040) + 1.f / 720;
  series = series * r + 1.f / 120;
  series = series * r + 1.f / 24;
  series = series * r + 1.f / 6;
  series = series * r + 1.f / 2;
  series = series * r * r + r;
  lanes scale = (lanes)(((lanes_words)shifted << 23) + (127u << 23)); // 2^n, by its exponent bits
  *v = scale * series + (scale - 1.f);
}

// 1 / (1 + e^-v) = 1 / (2 + expm1(-v))
LANES_FUNCTION lanes_sigmoid(lanes *v) {
  lanes e = -*v;
  lanes_clamp(&e, 87); // e^87 is still a float
  lanes_expm1(&e);
  *v = 1.f / (e + 2.f);
}

// tanh v = expm1(2v) / (expm1(2v) + 2)
LANES_FUNCTION lanes_tanh(lanes *v) {
  lanes e = *v * 2.f;
  lanes_clamp(&e, 20); // beyond, tanh is 1 in a float
  lanes_expm1(&e);
  *v = e / (e + 2.f);
}

#endif
