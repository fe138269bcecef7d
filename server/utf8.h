// SPDX-License-Identifier: Apache-2.0
// UTF-8 checked byte by byte, across any cut into chunks (RFC 3629: no overlong forms, no
// surrogates, nothing over U+10FFFF), so that a bad text is refused at its first wrong byte.
#ifndef DSNET_SERVER_UTF8_H
#define DSNET_SERVER_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct utf8_state {
  uint8_t pending;   // continuation bytes still to come
  uint8_t low, high; // bounds of the next one
};

// Starts from {0}. False at the first byte that cannot be part of a valid text.
bool utf8_feed(struct utf8_state *state, const uint8_t *bytes, size_t size);
// Whether the text may end here.
bool utf8_complete(const struct utf8_state *state);
bool utf8_valid(const uint8_t *bytes, size_t size);

#endif
