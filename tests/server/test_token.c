// SPDX-License-Identifier: Apache-2.0
// State tokens: what is sealed opens again, nothing else does, and each refusal says which it is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/net.h"
#include "token.h"
#include "wire/message.h"

enum { SIZE = 100, LENGTH = TOKEN_LENGTH(SIZE), BYTES = SIZE + TOKEN_OVERHEAD };

#define NOW     UINT64_C(1800000000000)
#define MAX_AGE UINT64_C(3600000)

static const uint8_t identity[TOKEN_IDENTITY_SIZE] = {1, 2, 3};

static int make_folder(void **state) {
  char *folder = strdup("/tmp/dsnet-token-XXXXXX");
  *state = folder;
  return folder && mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
  static const char *const files[] = {"a", "b", "c"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
    unlink(files[i]);
  int failed = chdir("/") || rmdir(*state);
  free(*state);
  return failed;
}

static void write_file(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, 0600), 0);
}

static void write_key(const char *path, uint8_t value) {
  uint8_t bytes[TOKEN_KEY_SIZE];
  memset(bytes, value, sizeof bytes);
  write_file(path, bytes, sizeof bytes);
}

// The keys of one or two files.
static struct token_keys *load(const char *first, const char *second) {
  const struct option_list files = {.items = {first, second}, .count = second ? 2 : 1};
  struct token_keys *keys;
  struct dsnet_error error = {0};
  if (token_keys_load(&keys, &files, &error))
    fail_msg("%s", error.text);
  return keys;
}

static struct token_keys *own_keys(void) {
  struct token_keys *keys;
  assert_int_equal(token_keys_load(&keys, &(struct option_list){0}, NULL), 0);
  return keys;
}

static void fill(uint8_t content[SIZE]) {
  for (size_t i = 0; i < SIZE; i++)
    content[i] = (uint8_t)(7 * i + 1);
}

static void seal(const struct token_keys *keys, char token[LENGTH + 1]) {
  uint8_t content[SIZE];
  fill(content);
  assert_true(token_seal(keys, identity, NOW, content, SIZE, token));
  assert_int_equal(strlen(token), LENGTH);
}

// Opens and checks that the content is the sealed one, or untouched.
static enum token_outcome open_at(const struct token_keys *keys, const char *token, size_t length,
                                  uint64_t now_ms) {
  uint8_t content[SIZE], expected[SIZE];
  memset(content, 0xEE, SIZE);
  enum token_outcome outcome =
      token_open(keys, identity, now_ms, MAX_AGE, token, length, content, SIZE);
  if (outcome == TOKEN_OPENED)
    fill(expected);
  else
    memset(expected, 0xEE, SIZE);
  assert_memory_equal(content, expected, SIZE);
  return outcome;
}

static enum token_outcome open_token(const struct token_keys *keys, const char *token) {
  return open_at(keys, token, strlen(token), NOW);
}

static void decode(const char *token, uint8_t bytes[BYTES]) {
  size_t size;
  assert_int_equal(sodium_base642bin(bytes, BYTES, token, strlen(token), NULL, &size, NULL,
                                     sodium_base64_VARIANT_URLSAFE_NO_PADDING),
                   0);
  assert_int_equal(size, BYTES);
}

static void encode(const uint8_t bytes[BYTES], char token[LENGTH + 1]) {
  sodium_bin2base64(token, LENGTH + 1, bytes, BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

static void what_is_sealed_is_opened(void **state) {
  (void)state;
  struct token_keys *keys = own_keys();
  char token[LENGTH + 1];
  seal(keys, token);
  assert_int_equal(strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                 "-_"),
                   LENGTH);
  assert_int_equal(open_token(keys, token), TOKEN_OPENED);
  token_keys_free(keys);
}

static void a_token_of_any_size_is_opened(void **state) {
  (void)state;
  struct token_keys *keys = own_keys();
  for (size_t size = 0; size < 40; size++) {
    uint8_t content[40], back[40];
    char token[TOKEN_LENGTH(40) + 1];
    memset(content, (int)size, sizeof content);
    assert_true(token_seal(keys, identity, NOW, content, size, token));
    assert_int_equal(strlen(token), TOKEN_LENGTH(size));
    assert_int_equal(token_open(keys, identity, NOW, MAX_AGE, token, strlen(token), back, size),
                     TOKEN_OPENED);
    assert_memory_equal(content, back, size);
  }
  token_keys_free(keys);
}

static void every_flipped_bit_is_refused(void **state) {
  (void)state;
  struct token_keys *keys = own_keys();
  char token[LENGTH + 1];
  uint8_t bytes[BYTES];
  seal(keys, token);
  decode(token, bytes);
  for (size_t i = 0; i < BYTES * 8; i++) {
    bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    encode(bytes, token);
    assert_int_equal(open_token(keys, token), TOKEN_BAD);
    bytes[i / 8] ^= (uint8_t)(1 << i % 8);
  }
  encode(bytes, token);
  assert_int_equal(open_token(keys, token), TOKEN_OPENED);
  token_keys_free(keys);
}

// Among the characters are some that would decode to the same bytes in a lenient decoder.
static void every_other_character_is_refused(void **state) {
  (void)state;
  struct token_keys *keys = own_keys();
  char token[LENGTH + 1];
  seal(keys, token);
  for (size_t i = 0; i < LENGTH; i++) {
    char kept = token[i];
    for (int c = 0; c < 256; c++) {
      token[i] = (char)c;
      assert_int_equal(open_at(keys, token, LENGTH, NOW),
                       (char)c == kept ? TOKEN_OPENED : TOKEN_BAD);
    }
    token[i] = kept;
  }
  token_keys_free(keys);
}

static void every_cut_and_every_addition_is_refused(void **state) {
  (void)state;
  struct token_keys *keys = own_keys();
  char token[LENGTH + 2];
  seal(keys, token);
  for (size_t length = 0; length < LENGTH; length++) {
    assert_int_equal(open_at(keys, token, length, NOW), TOKEN_BAD);
    assert_int_equal(open_at(keys, token + LENGTH - length, length, NOW), TOKEN_BAD);
  }
  for (const char *c = "A=\n "; *c; c++) {
    token[LENGTH] = *c;
    assert_int_equal(open_at(keys, token, LENGTH + 1, NOW), TOKEN_BAD);
  }
  token_keys_free(keys);
}

static void two_tokens_of_one_state_share_nothing_but_their_header(void **state) {
  (void)state;
  struct token_keys *keys = own_keys();
  enum { HEADER = 9, TOKENS = 32 };
  uint8_t first[BYTES], other[BYTES];
  bool differs[BYTES] = {false};
  char token[LENGTH + 1];
  seal(keys, token);
  decode(token, first);
  for (int i = 0; i < TOKENS; i++) {
    seal(keys, token);
    decode(token, other);
    assert_memory_equal(first, other, HEADER);
    for (size_t b = HEADER; b < BYTES; b++)
      differs[b] = differs[b] || first[b] != other[b];
  }
  for (size_t b = HEADER; b < BYTES; b++)
    assert_true(differs[b]);
  token_keys_free(keys);
}

static void another_key_refuses(void **state) {
  (void)state;
  write_key("a", 1);
  write_key("b", 2);
  struct token_keys *a = load("a", NULL), *b = load("b", NULL), *own = own_keys();
  char token[LENGTH + 1];
  seal(a, token);
  assert_int_equal(open_token(b, token), TOKEN_BAD);
  assert_int_equal(open_token(own, token), TOKEN_BAD);
  token_keys_free(a);
  token_keys_free(b);
  token_keys_free(own);
}

// The key id is authenticated, so a token cannot be passed off as sealed under another known key.
static void a_token_with_another_keys_id_is_refused(void **state) {
  (void)state;
  write_key("a", 1);
  write_key("b", 2);
  struct token_keys *both = load("a", "b"), *b = load("b", NULL);
  char token[LENGTH + 1], of_b[LENGTH + 1];
  seal(both, token);
  seal(b, of_b);
  memcpy(token, of_b, 12); // version and key id
  assert_int_equal(open_token(both, token), TOKEN_BAD);
  token_keys_free(both);
  token_keys_free(b);
}

static void the_first_key_seals_and_all_open(void **state) {
  (void)state;
  write_key("a", 1);
  write_key("b", 2);
  struct token_keys *before = load("a", NULL), *during = load("b", "a"), *after = load("b", NULL);
  char old[LENGTH + 1], new[LENGTH + 1];
  seal(before, old);
  seal(during, new);
  assert_int_equal(open_token(during, old), TOKEN_OPENED);
  assert_int_equal(open_token(during, new), TOKEN_OPENED);
  assert_int_equal(open_token(after, new), TOKEN_OPENED);
  assert_int_equal(open_token(after, old), TOKEN_BAD);
  assert_int_equal(open_token(before, new), TOKEN_BAD);
  token_keys_free(before);
  token_keys_free(during);
  token_keys_free(after);
}

static void age_is_limited_and_clocks_may_differ_a_little(void **state) {
  (void)state;
  static const struct {
    uint64_t now_ms;
    enum token_outcome outcome;
  } cases[] = {
      {NOW + MAX_AGE, TOKEN_OPENED},
      {NOW + MAX_AGE + 1, TOKEN_EXPIRED},
      {UINT64_MAX, TOKEN_EXPIRED},
      {NOW - TOKEN_CLOCK_SKEW_MS, TOKEN_OPENED},
      {NOW - TOKEN_CLOCK_SKEW_MS - 1, TOKEN_EXPIRED},
      {0, TOKEN_EXPIRED},
  };
  struct token_keys *keys = own_keys();
  char token[LENGTH + 1];
  seal(keys, token);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(open_at(keys, token, LENGTH, cases[i].now_ms), cases[i].outcome);
  token_keys_free(keys);
}

static void another_model_refuses(void **state) {
  (void)state;
  struct token_keys *keys = own_keys();
  uint8_t content[SIZE + 1], other[TOKEN_IDENTITY_SIZE];
  char token[LENGTH + 1];
  seal(keys, token);
  for (size_t i = 0; i < TOKEN_IDENTITY_SIZE; i++) {
    memcpy(other, identity, sizeof other);
    other[i] ^= 1;
    assert_int_equal(token_open(keys, other, NOW, MAX_AGE, token, LENGTH, content, SIZE),
                     TOKEN_WRONG_MODEL);
  }
  for (size_t size = SIZE - 1; size <= SIZE + 1; size += 2)
    assert_int_equal(token_open(keys, identity, NOW, MAX_AGE, token, LENGTH, content, size),
                     TOKEN_WRONG_MODEL);
  token_keys_free(keys);
}

static void the_state_of_the_largest_network_fits_a_message(void **state) {
  (void)state;
  const size_t rest = 4096; // betas, what a session counts, and so on
  const struct feature_set *set;
  for (size_t i = 0; (set = feature_set_at(i)); i++) {
    size_t floats = (size_t)2 * NET_LAYERS_MAX * NET_HIDDEN_MAX + set->memory;
    assert_true(TOKEN_LENGTH(floats * sizeof(float) + rest) < MESSAGE_TOKEN_MAX);
  }
}

static void a_file_that_is_no_key_is_named(void **state) {
  (void)state;
  uint8_t bytes[TOKEN_KEY_SIZE + 1];
  memset(bytes, 5, sizeof bytes);
  write_key("b", 9);
  const struct {
    const char *path;
    size_t size;
    int code;
    const char *mentions;
  } cases[] = {
      {"a", 0, DSNET_EVALUE, "has 0 bytes"},
      {"a", TOKEN_KEY_SIZE - 1, DSNET_EVALUE, "has 31 bytes"},
      {"a", TOKEN_KEY_SIZE + 1, DSNET_EVALUE, "has 33 bytes"},
      {"missing", 0, DSNET_EIO, "missing"},
      {".", 0, DSNET_EIO, "not a regular file"},
      {"/dev/null", 0, DSNET_EIO, "not a regular file"},
      {"c", 0, DSNET_EIO, "not a regular file"},
      {"b", 0, DSNET_EVALUE, "given twice"},
  };
  assert_int_equal(mkfifo("c", 0600), 0); // must be refused, not waited for
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct option_list files = {.items = {"b", cases[i].path}, .count = 2};
    struct dsnet_error error = {0};
    struct token_keys *keys;
    write_file("a", bytes, cases[i].size);
    assert_int_equal(token_keys_load(&keys, &files, &error), cases[i].code);
    assert_null(keys);
    assert_non_null(strstr(error.text, cases[i].path));
    assert_non_null(strstr(error.text, cases[i].mentions));
  }
}

static void a_key_of_zeros_is_refused(void **state) {
  (void)state;
  write_key("a", 0);
  const struct option_list files = {.items = {"a"}, .count = 1};
  struct dsnet_error error = {0};
  struct token_keys *keys;
  assert_int_equal(token_keys_load(&keys, &files, &error), DSNET_EVALUE);
  assert_non_null(strstr(error.text, "zeros"));
}

// A secret is often mounted as a symbolic link.
static void a_link_to_a_key_is_followed(void **state) {
  (void)state;
  write_key("a", 1);
  assert_int_equal(symlink("a", "b"), 0);
  struct token_keys *a = load("a", NULL), *b = load("b", NULL);
  char token[LENGTH + 1];
  seal(a, token);
  assert_int_equal(open_token(b, token), TOKEN_OPENED);
  token_keys_free(a);
  token_keys_free(b);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_sealed_is_opened),
      cmocka_unit_test(a_token_of_any_size_is_opened),
      cmocka_unit_test(every_flipped_bit_is_refused),
      cmocka_unit_test(every_other_character_is_refused),
      cmocka_unit_test(every_cut_and_every_addition_is_refused),
      cmocka_unit_test(two_tokens_of_one_state_share_nothing_but_their_header),
      IN_FOLDER(another_key_refuses),
      IN_FOLDER(a_token_with_another_keys_id_is_refused),
      IN_FOLDER(the_first_key_seals_and_all_open),
      cmocka_unit_test(age_is_limited_and_clocks_may_differ_a_little),
      cmocka_unit_test(another_model_refuses),
      cmocka_unit_test(the_state_of_the_largest_network_fits_a_message),
      IN_FOLDER(a_file_that_is_no_key_is_named),
      IN_FOLDER(a_key_of_zeros_is_refused),
      IN_FOLDER(a_link_to_a_key_is_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
