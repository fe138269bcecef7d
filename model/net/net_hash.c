// SPDX-License-Identifier: Apache-2.0
// The identity of a network.
#include <sodium/crypto_generichash.h>
#include <string.h>

#include "net/internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers are hashed as they lie in memory");
_Static_assert(NET_HASH_SIZE == crypto_generichash_BYTES, "BLAKE2b-256");

void net_hash(const struct net *net, uint8_t hash[NET_HASH_SIZE]) {
  static const char tag[] = "dsnet net 1";
  const struct net_config *config = &net->config;
  const uint32_t sizes[] = {(uint32_t)config->layers, (uint32_t)config->hidden,
                            (uint32_t)config->latent, (uint32_t)config->vertices, config->skip};
  crypto_generichash_state state;
  crypto_generichash_init(&state, NULL, 0, NET_HASH_SIZE);
  crypto_generichash_update(&state, (const uint8_t *)tag, sizeof tag - 1);
  crypto_generichash_update(&state, (const uint8_t *)sizes, sizeof sizes);
  crypto_generichash_update(&state, (const uint8_t *)&config->rate, sizeof config->rate);
  crypto_generichash_update(&state, (const uint8_t *)config->features->name,
                            strlen(config->features->name) + 1);
  for (size_t i = 0; i < net->tensor_count; i++)
    crypto_generichash_update(&state, (const uint8_t *)net->tensors[i].data,
                              net->tensors[i].count * sizeof(float));
  crypto_generichash_final(&state, hash, NET_HASH_SIZE);
}
