// SPDX-License-Identifier: Apache-2.0
// The opening handshake's key and accept values against RFC 6455's example and others computed with
// an independent implementation (Python's hashlib and base64).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "wire/handshake.h"

static void accept_is_that_of_rfc_6455(void **state) {
  (void)state;
  char accept[HANDSHAKE_ACCEPT_LENGTH + 1];
  handshake_accept("dGhlIHNhbXBsZSBub25jZQ==", accept);
  assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void accept_equals_an_independent_implementation(void **state) {
  (void)state;
  static const char *const pairs[][2] = {
      {"AAAAAAAAAAAAAAAAAAAAAA==", "ICX+Yqv66kxgM0FcWaLWlFLwTAI="},
      {"/////////////////////w==", "XXpj4jYzLM2yUE0C7TIgMwTQh2g="},
      {"AAECAwQFBgcICQoLDA0ODw==", "Bz3qJYTGdOe8gUSpLosEdiLKDrk="},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    char accept[HANDSHAKE_ACCEPT_LENGTH + 1];
    handshake_accept(pairs[i][0], accept);
    assert_string_equal(accept, pairs[i][1]);
  }
}

static void a_key_is_base64_of_the_nonce(void **state) {
  (void)state;
  uint8_t nonce[16];
  for (int i = 0; i < 16; i++)
    nonce[i] = (uint8_t)i;
  char key[HANDSHAKE_KEY_LENGTH + 1];
  handshake_key(nonce, key);
  assert_string_equal(key, "AAECAwQFBgcICQoLDA0ODw==");
  assert_true(handshake_key_valid(key));
}

static void keys_that_are_not_16_bytes_are_refused(void **state) {
  (void)state;
  static const char *const bad[] = {
      "",
      "AAECAwQFBgcICQoLDA0O",     // 15 bytes
      "AAECAwQFBgcICQoLDA0ODxA=", // 17 bytes
      "AAECAwQFBgcICQoLDA0ODx==", // bits beyond the sixteenth byte
      "AAECAwQFBgcICQoLDA0OD===",
      "AAECAwQFBgcICQoLDA0OD-==", // another alphabet
      "AAECAwQFBgcICQ LDA0ODw==",
      "AAECAwQFBgcICQoLDA0ODw==A",
      "AAECAwQFBgcICQoLDA0ODw=A",
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_false(handshake_key_valid(bad[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accept_is_that_of_rfc_6455),
      cmocka_unit_test(accept_equals_an_independent_implementation),
      cmocka_unit_test(a_key_is_base64_of_the_nonce),
      cmocka_unit_test(keys_that_are_not_16_bytes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
