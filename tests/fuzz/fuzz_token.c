// SPDX-License-Identifier: Apache-2.0
// Any bytes as a state token, and a genuine token with one character changed: none opens.
#include "token.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_AGE_MS = 1000 };

static enum token_outcome open_token(const struct token_keys *keys, const char *token,
                                     size_t length, uint8_t *content, size_t size) {
  static const uint8_t identity[TOKEN_IDENTITY_SIZE];
  return token_open(keys, identity, MAX_AGE_MS, MAX_AGE_MS, token, length, content, size);
}

static void change_one(const struct token_keys *keys, const uint8_t *data, size_t size) {
  static const uint8_t identity[TOKEN_IDENTITY_SIZE];
  size_t at = data[0], content_size = size - 2;
  char *token = malloc(TOKEN_LENGTH(content_size) + 1);
  uint8_t *content = malloc(content_size + 1);
  if (!token || !content || !token_seal(keys, identity, MAX_AGE_MS, data + 2, content_size, token))
    abort();
  size_t length = strlen(token);
  if (open_token(keys, token, length, content, content_size) != TOKEN_OPENED ||
      memcmp(content, data + 2, content_size) != 0)
    abort();
  token[at % length] = (char)(token[at % length] + 1 + data[1] % 255);
  if (open_token(keys, token, length, content, content_size) != TOKEN_BAD)
    abort();
  free(token);
  free(content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct token_keys *keys;
  uint8_t content[256];
  if (!keys && token_keys_load(&keys, &(struct option_list){0}, NULL) != 0)
    abort();
  if (open_token(keys, (const char *)data, size, content, sizeof content) != TOKEN_BAD)
    abort();
  if (size >= 2)
    change_one(keys, data, size);
  return 0;
}
