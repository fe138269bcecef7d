// SPDX-License-Identifier: Apache-2.0
#include "body/hash.h"

#include <sodium/crypto_generichash.h>

#include "body/struct.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "arrays are hashed as they lie in memory");
_Static_assert(sizeof(int) == 4 && sizeof(float) == 4, "parents are i32, numbers are f32");

static void add(crypto_generichash_state *state, const void *bytes, size_t count, size_t size) {
  crypto_generichash_update(state, bytes, count * size);
}

void hash_body(struct body *body) {
  static const char tag[] = "dsnet body 1";
  const size_t V = body->vertices, B = body->shapes;
  const size_t P = body->posedirs ? BODY_POSE_COLUMNS : 0;
  const uint32_t sizes[] = {(uint32_t)V, (uint32_t)body->faces, (uint32_t)B, (uint32_t)P};
  crypto_generichash_state state;
  crypto_generichash_init(&state, NULL, 0, BODY_HASH_SIZE);
  add(&state, tag, sizeof tag - 1, 1);
  add(&state, sizes, 4, sizeof sizes[0]);
  add(&state, body->v_template, V * 3, sizeof(float));
  add(&state, body->shapedirs, V * 3 * B, sizeof(float));
  if (P)
    add(&state, body->posedirs, V * 3 * P, sizeof(float));
  add(&state, body->regressor, BODY_JOINTS * V, sizeof(float));
  add(&state, body->weight_joints, V * BODY_WEIGHTS_MAX, 1);
  add(&state, body->weight_values, V * BODY_WEIGHTS_MAX, sizeof(float));
  add(&state, body->parents, BODY_JOINTS, sizeof(int));
  add(&state, body->triangles, body->faces * 3, sizeof(uint32_t));
  crypto_generichash_final(&state, body->hash, BODY_HASH_SIZE);
}
