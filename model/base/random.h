// SPDX-License-Identifier: Apache-2.0
// Reproducible random numbers: xoshiro256++ (Blackman and Vigna, prng.di.unimi.it), seeded through
// splitmix64. The same seed gives the same sequence on every machine. Not for secrets.
#ifndef DSNET_BASE_RANDOM_H
#define DSNET_BASE_RANDOM_H

#include <stdint.h>

struct random_state {
  uint64_t s[4];
};

void random_init(struct random_state *random, uint64_t seed);
uint64_t random_bits(struct random_state *random);
// Uniform in [0, 1), 53 bits.
double random_uniform(struct random_state *random);
// Standard normal (Box-Muller; consumes two uniforms, keeps nothing between calls).
double random_normal(struct random_state *random);

#endif
