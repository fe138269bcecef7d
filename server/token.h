// SPDX-License-Identifier: Apache-2.0
// State tokens: a session's state, sealed, that a client keeps and gives back to resume. No store
// is shared and no route is sticky: any process with the same key opens it. A token says nothing to
// whoever holds it (its length depends on the model alone), and one altered bit is refused.
//
// A token is base64url without padding (RFC 4648, section 5) of
//
//   offset  0  u8      version, 1
//           1  u8[8]   key id
//           9  u8[24]  nonce, random
//          33  sealed: u64 milliseconds since 1970 when it was sealed
//                      u8[32] identity of the model and body
//                      the content
//        last  u8[16]  tag
//
// little-endian, XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha) with bytes 0 to 8 as associated data.
// The nonce is drawn anew for every token, so any number of processes may seal under one key.
// The cipher's key and the key id are derived from the 32 bytes of a key file (libsodium's
// crypto_kdf, context "dsnettok", 1 and 2); the id tells which key to open with, and nothing about
// it.
//
// The clocks of processes that share a key may differ by TOKEN_CLOCK_SKEW_MS.
#ifndef DSNET_SERVER_TOKEN_H
#define DSNET_SERVER_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"

#define TOKEN_KEY_SIZE      32
#define TOKEN_IDENTITY_SIZE 32
#define TOKEN_CLOCK_SKEW_MS 60000 // a token from further ahead than this is refused
#define TOKEN_OVERHEAD      (1 + 8 + 24 + 8 + TOKEN_IDENTITY_SIZE + 16) // bytes beside the content

// Characters of a token for `size` bytes of content, without the NUL.
#define TOKEN_LENGTH(size) ((((size) + TOKEN_OVERHEAD) * 4 + 2) / 3)

// The keys: const after loading, any thread. They lie in locked memory between guard pages where
// the system allows it, and are wiped when freed.
struct token_keys;

// Reads the files, each of exactly 32 bytes: the first key seals, all open. No file at all gives
// one random key, which ends with the process. DSNET_EIO (cannot be read, not a regular file),
// DSNET_EVALUE (another size, all zeros, given twice), DSNET_ENOMEM; the error names the file. A
// file that other users may read is taken, and the log says so.
int token_keys_load(struct token_keys **keys, const struct option_list *files,
                    struct dsnet_error *error);
// NULL is allowed.
void token_keys_free(struct token_keys *keys);

// out = TOKEN_LENGTH(size) characters and a NUL. `now_ms` is since 1970. False when memory is out.
bool token_seal(const struct token_keys *keys, const uint8_t identity[TOKEN_IDENTITY_SIZE],
                uint64_t now_ms, const void *content, size_t size, char *out);

enum token_outcome {
  TOKEN_OPENED,
  TOKEN_BAD,         // altered, cut, of another version, sealed under a key that is not here
  TOKEN_EXPIRED,     // older than max_age_ms, or from too far ahead
  TOKEN_WRONG_MODEL, // of another identity or size of content
  TOKEN_NOMEM,
};

// Fills content [size] if it returns TOKEN_OPENED; otherwise `content` is untouched. Looks at age
// and identity only when the token is genuine.
enum token_outcome token_open(const struct token_keys *keys,
                              const uint8_t identity[TOKEN_IDENTITY_SIZE], uint64_t now_ms,
                              uint64_t max_age_ms, const char *token, size_t length, void *content,
                              size_t size);

#endif
