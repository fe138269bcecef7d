// SPDX-License-Identifier: Apache-2.0
#include "utf8.h"

// Starts a sequence: how many bytes follow, and what the first of them may be (RFC 3629, section
// 4).
static bool start(struct utf8_state *state, uint8_t byte) {
  state->low = 0x80;
  state->high = 0xBF;
  if (byte < 0x80)
    return true;
  if (byte < 0xC2 || byte > 0xF4)
    return false;
  state->pending = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  if (byte == 0xE0)
    state->low = 0xA0; // shorter forms exist below
  else if (byte == 0xED)
    state->high = 0x9F; // surrogates above
  else if (byte == 0xF0)
    state->low = 0x90;
  else if (byte == 0xF4)
    state->high = 0x8F; // beyond U+10FFFF above
  return true;
}

bool utf8_feed(struct utf8_state *state, const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (!state->pending) {
      if (!start(state, bytes[i]))
        return false;
      continue;
    }
    if (bytes[i] < state->low || bytes[i] > state->high)
      return false;
    state->pending--;
    state->low = 0x80;
    state->high = 0xBF;
  }
  return true;
}

bool utf8_complete(const struct utf8_state *state) {
  return !state->pending;
}

bool utf8_valid(const uint8_t *bytes, size_t size) {
  struct utf8_state state = {0};
  return utf8_feed(&state, bytes, size) && utf8_complete(&state);
}
