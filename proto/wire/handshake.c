// SPDX-License-Identifier: Apache-2.0
#include "wire/handshake.h"

#include <stddef.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Base64 with padding (RFC 4648). `out` holds 4 * ceil(size / 3) + 1 bytes.
static void base64(const uint8_t *bytes, size_t size, char *out) {
  for (size_t i = 0; i < size; i += 3) {
    size_t left = size - i;
    uint32_t group = (uint32_t)bytes[i] << 16;
    group |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
    group |= left > 2 ? bytes[i + 2] : 0;
    *out++ = alphabet[group >> 18];
    *out++ = alphabet[group >> 12 & 63];
    *out++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
    *out++ = left > 2 ? alphabet[group & 63] : '=';
  }
  *out = 0;
}

static uint32_t rotate_left(uint32_t value, int bits) {
  return value << bits | value >> (32 - bits);
}

static void sha1_block(uint32_t h[5], const uint8_t block[64]) {
  uint32_t w[80];
  for (int t = 0; t < 16; t++)
    w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
           (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
  for (int t = 16; t < 80; t++)
    w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
  for (int t = 0; t < 80; t++) {
    uint32_t f, k;
    if (t < 20)
      f = (b & c) | (~b & d), k = 0x5A827999;
    else if (t < 40)
      f = b ^ c ^ d, k = 0x6ED9EBA1;
    else if (t < 60)
      f = (b & c) | (b & d) | (c & d), k = 0x8F1BBCDC;
    else
      f = b ^ c ^ d, k = 0xCA62C1D6;
    uint32_t next = rotate_left(a, 5) + f + e + w[t] + k;
    e = d;
    d = c;
    c = rotate_left(b, 30);
    b = a;
    a = next;
  }
  h[0] += a;
  h[1] += b;
  h[2] += c;
  h[3] += d;
  h[4] += e;
}

// SHA-1 (FIPS 180-4) of a key and the GUID: 60 bytes, so that the padding makes two blocks. It
// protects nothing here; the handshake only needs both sides to compute the same.
static void sha1_60(const uint8_t message[60], uint8_t digest[20]) {
  uint32_t h[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  uint8_t blocks[128] = {0};
  memcpy(blocks, message, 60);
  blocks[60] = 0x80;
  blocks[126] = 60 * 8 >> 8;
  blocks[127] = 60 * 8 & 0xFF;
  sha1_block(h, blocks);
  sha1_block(h, blocks + 64);
  for (int i = 0; i < 20; i++)
    digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

void handshake_key(const uint8_t nonce[16], char out[HANDSHAKE_KEY_LENGTH + 1]) {
  base64(nonce, 16, out);
}

bool handshake_key_valid(const char *key) {
  if (strlen(key) != HANDSHAKE_KEY_LENGTH || key[22] != '=' || key[23] != '=')
    return false;
  for (int i = 0; i < 22; i++)
    if (!strchr(alphabet, key[i]))
      return false;
  // 16 bytes fill 21 characters and two bits of the last one; its other four bits are zero.
  return ((strchr(alphabet, key[21]) - alphabet) & 15) == 0;
}

void handshake_accept(const char *key, char out[HANDSHAKE_ACCEPT_LENGTH + 1]) {
  static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  uint8_t message[60], digest[20];
  memcpy(message, key, HANDSHAKE_KEY_LENGTH);
  memcpy(message + HANDSHAKE_KEY_LENGTH, guid, sizeof guid - 1);
  sha1_60(message, digest);
  base64(digest, sizeof digest, out);
}
