// SPDX-License-Identifier: Apache-2.0
#include "token.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"
#include "log.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers are sealed as they lie in memory");

#define VERSION     1
#define ID_SIZE     8
#define HEADER_SIZE (1 + ID_SIZE) // version and key id, authenticated
#define NONCE_SIZE  crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_SIZE    crypto_aead_xchacha20poly1305_ietf_ABYTES
#define SEALED_AT   (HEADER_SIZE + NONCE_SIZE)
#define PROLOGUE    (sizeof(uint64_t) + TOKEN_IDENTITY_SIZE) // time and identity, before the content

_Static_assert(SEALED_AT + PROLOGUE + TAG_SIZE == TOKEN_OVERHEAD, "the header's table");
_Static_assert(TOKEN_KEY_SIZE == crypto_kdf_KEYBYTES, "keys are derived from a file's bytes");

struct key {
  uint8_t id[ID_SIZE];
  uint8_t cipher[crypto_aead_xchacha20poly1305_ietf_KEYBYTES];
};

struct token_keys {
  size_t count;
  uint8_t master[TOKEN_KEY_SIZE]; // of the key being loaded
  struct key keys[];
};

// Keys -------------------------------------------------------------------------------------------

// Appends the key that follows from keys->master.
static void derive(struct token_keys *keys) {
  static const char context[crypto_kdf_CONTEXTBYTES + 1] = "dsnettok";
  enum { CIPHER = 1, ID = 2 };
  struct key *key = &keys->keys[keys->count++];
  uint8_t id[crypto_kdf_BYTES_MIN];
  crypto_kdf_derive_from_key(key->cipher, sizeof key->cipher, CIPHER, context, keys->master);
  crypto_kdf_derive_from_key(id, sizeof id, ID, context, keys->master);
  memcpy(key->id, id, sizeof key->id);
  sodium_memzero(keys->master, sizeof keys->master);
}

static const struct key *find(const struct token_keys *keys, const uint8_t id[ID_SIZE]) {
  for (size_t i = 0; i < keys->count; i++)
    if (!memcmp(keys->keys[i].id, id, ID_SIZE))
      return &keys->keys[i];
  return NULL;
}

static void warn_of_others(int descriptor, const char *path) {
  struct stat status;
  if (!fstat(descriptor, &status) && status.st_mode & S_IROTH)
    log_event(LOG_LEVEL_WARN, "state_key", NULL,
              "%s: every user of this machine may read the key; chmod o-r", path);
}

// Reads one file into keys->master.
static int read_master(struct token_keys *keys, const char *path, struct dsnet_error *error) {
  int descriptor;
  uint64_t size;
  int result = file_open_regular(path, &descriptor, &size, error);
  if (result < 0)
    return result;
  if (size != TOKEN_KEY_SIZE)
    result = dsnet_error_set(error, DSNET_EVALUE, "%.160s: has %llu bytes; a state key has %d",
                             path, (unsigned long long)size, TOKEN_KEY_SIZE);
  else
    result = file_read_at(descriptor, 0, keys->master, TOKEN_KEY_SIZE, error);
  if (result >= 0 && sodium_is_zero(keys->master, TOKEN_KEY_SIZE))
    result = dsnet_error_set(error, DSNET_EVALUE, "%.160s: is all zeros, which is no key", path);
  if (result >= 0)
    warn_of_others(descriptor, path);
  close(descriptor);
  return result;
}

static int load_files(struct token_keys *keys, const struct option_list *files,
                      struct dsnet_error *error) {
  for (size_t i = 0; i < files->count; i++) {
    int result = read_master(keys, files->items[i], error);
    if (result < 0)
      return result;
    derive(keys);
    if (find(keys, keys->keys[i].id) != &keys->keys[i])
      return dsnet_error_set(error, DSNET_EVALUE, "%.160s: holds a key that is given twice",
                             files->items[i]);
  }
  return 0;
}

int token_keys_load(struct token_keys **out, const struct option_list *files,
                    struct dsnet_error *error) {
  *out = NULL;
  if (sodium_init() < 0)
    return dsnet_error_set(error, DSNET_EIO, "no random numbers from the system");
  size_t count = files->count ? files->count : 1;
  // sodium_malloc puts the block's end at a page's end, so the size decides the alignment.
  size_t size = sizeof(struct token_keys) + count * sizeof(struct key);
  struct token_keys *keys = sodium_malloc((size + 15) / 16 * 16);
  if (!keys)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the state keys");
  keys->count = 0;
  int result = load_files(keys, files, error);
  if (result < 0) {
    token_keys_free(keys);
    return result;
  }
  if (!files->count) {
    crypto_kdf_keygen(keys->master);
    derive(keys);
    log_event(LOG_LEVEL_INFO, "state_key", NULL,
              "no --state-key-file: state tokens are sealed under a key of this process, end with "
              "it, and no other process opens them");
  }
  sodium_mprotect_readonly(keys);
  *out = keys;
  return 0;
}

void token_keys_free(struct token_keys *keys) {
  sodium_free(keys); // wipes
}

// Tokens -----------------------------------------------------------------------------------------

bool token_seal(const struct token_keys *keys, const uint8_t identity[TOKEN_IDENTITY_SIZE],
                uint64_t now_ms, const void *content, size_t size, char *out) {
  const struct key *key = &keys->keys[0];
  uint8_t *bytes = malloc(size + TOKEN_OVERHEAD);
  if (!bytes)
    return false;
  bytes[0] = VERSION;
  memcpy(bytes + 1, key->id, ID_SIZE);
  randombytes_buf(bytes + HEADER_SIZE, NONCE_SIZE);
  uint8_t *sealed = bytes + SEALED_AT;
  memcpy(sealed, &now_ms, sizeof now_ms);
  memcpy(sealed + sizeof now_ms, identity, TOKEN_IDENTITY_SIZE);
  memcpy(sealed + PROLOGUE, content, size);
  crypto_aead_xchacha20poly1305_ietf_encrypt(sealed, NULL, sealed, PROLOGUE + size, bytes,
                                             HEADER_SIZE, NULL, bytes + HEADER_SIZE, key->cipher);
  sodium_bin2base64(out, TOKEN_LENGTH(size) + 1, bytes, size + TOKEN_OVERHEAD,
                    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  free(bytes);
  return true;
}

// libsodium 1.0.18 takes every byte over 127 for a '_'; a token has one spelling.
static bool is_ascii(const char *token, size_t length) {
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)token[i] > 0x7F)
      return false;
  return true;
}

// Decodes and unseals in place. The sealed part's length, or -1.
static long long unseal(const struct token_keys *keys, const char *token, size_t length,
                        uint8_t *bytes) {
  size_t size;
  unsigned long long unsealed;
  if (!is_ascii(token, length) ||
      sodium_base642bin(bytes, length, token, length, NULL, &size, NULL,
                        sodium_base64_VARIANT_URLSAFE_NO_PADDING) ||
      size < TOKEN_OVERHEAD || bytes[0] != VERSION)
    return -1;
  const struct key *key = find(keys, bytes + 1);
  if (!key)
    return -1;
  uint8_t *sealed = bytes + SEALED_AT;
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, &unsealed, NULL, sealed, size - SEALED_AT,
                                                 bytes, HEADER_SIZE, bytes + HEADER_SIZE,
                                                 key->cipher))
    return -1;
  return (long long)unsealed;
}

// What a genuine token is worth here.
static enum token_outcome judge(const uint8_t *unsealed, size_t unsealed_size,
                                const uint8_t *identity, uint64_t now_ms, uint64_t max_age_ms,
                                size_t size) {
  uint64_t time_ms;
  memcpy(&time_ms, unsealed, sizeof time_ms);
  bool old = now_ms > time_ms && now_ms - time_ms > max_age_ms;
  bool ahead = time_ms > now_ms && time_ms - now_ms > TOKEN_CLOCK_SKEW_MS;
  if (old || ahead)
    return TOKEN_EXPIRED;
  if (memcmp(unsealed + sizeof time_ms, identity, TOKEN_IDENTITY_SIZE) ||
      unsealed_size != PROLOGUE + size)
    return TOKEN_WRONG_MODEL;
  return TOKEN_OPENED;
}

enum token_outcome token_open(const struct token_keys *keys,
                              const uint8_t identity[TOKEN_IDENTITY_SIZE], uint64_t now_ms,
                              uint64_t max_age_ms, const char *token, size_t length, void *content,
                              size_t size) {
  if (!length)
    return TOKEN_BAD;
  uint8_t *bytes = malloc(length);
  if (!bytes)
    return TOKEN_NOMEM;
  enum token_outcome outcome = TOKEN_BAD;
  long long unsealed = unseal(keys, token, length, bytes);
  if (unsealed >= 0)
    outcome = judge(bytes + SEALED_AT, (size_t)unsealed, identity, now_ms, max_age_ms, size);
  if (outcome == TOKEN_OPENED)
    memcpy(content, bytes + SEALED_AT + PROLOGUE, size);
  free(bytes);
  return outcome;
}
