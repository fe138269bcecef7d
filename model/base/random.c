// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <math.h>

static uint64_t rotate_left(uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

void random_init(struct random_state *random, uint64_t seed) {
  for (int i = 0; i < 4; i++) {
    seed += 0x9e3779b97f4a7c15u;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    random->s[i] = z ^ (z >> 31);
  }
}

uint64_t random_bits(struct random_state *random) {
  uint64_t *s = random->s;
  uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
  uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate_left(s[3], 45);
  return result;
}

double random_uniform(struct random_state *random) {
  return (double)(random_bits(random) >> 11) * 0x1.0p-53;
}

double random_normal(struct random_state *random) {
  double u = 1.0 - random_uniform(random); // (0, 1]: the logarithm stays finite
  double v = random_uniform(random);
  return sqrt(-2.0 * log(u)) * cos(2.0 * 3.14159265358979323846 * v);
}
