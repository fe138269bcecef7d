// SPDX-License-Identifier: Apache-2.0
// The computed part of the WebSocket opening handshake (RFC 6455, section 4): the key a client
// sends and the answer that proves the server understood it. Used by dsnetd and dsnet-stream. No
// I/O, no allocation, any thread.
#ifndef DSNET_WIRE_HANDSHAKE_H
#define DSNET_WIRE_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#define HANDSHAKE_KEY_LENGTH    24 // base64 of 16 bytes
#define HANDSHAKE_ACCEPT_LENGTH 28 // base64 of a SHA-1

// out = base64 of the 16 bytes, the value of Sec-WebSocket-Key.
void handshake_key(const uint8_t nonce[16], char out[HANDSHAKE_KEY_LENGTH + 1]);

// Whether `key` is exactly the base64 of 16 bytes.
bool handshake_key_valid(const char *key);

// out = base64(SHA-1(key + the protocol's GUID)), the value of Sec-WebSocket-Accept. `key` must be
// valid.
void handshake_accept(const char *key, char out[HANDSHAKE_ACCEPT_LENGTH + 1]);

#endif
