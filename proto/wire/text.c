// SPDX-License-Identifier: Apache-2.0
#include "wire/text.h"

#include <stdint.h>
#include <string.h>

// Bytes of the valid UTF-8 sequence at `in`, or 0. Stops at a NUL, which continues no sequence.
static size_t sequence_length(const unsigned char *in) {
  uint32_t value, least;
  size_t length;
  if (in[0] < 0x80)
    return 1;
  if ((in[0] & 0xe0) == 0xc0)
    length = 2, value = in[0] & 0x1f, least = 0x80;
  else if ((in[0] & 0xf0) == 0xe0)
    length = 3, value = in[0] & 0x0f, least = 0x800;
  else if ((in[0] & 0xf8) == 0xf0)
    length = 4, value = in[0] & 0x07, least = 0x10000;
  else
    return 0;
  for (size_t i = 1; i < length; i++) {
    if ((in[i] & 0xc0) != 0x80)
      return 0;
    value = value << 6 | (in[i] & 0x3f);
  }
  int surrogate = value >= 0xd800 && value <= 0xdfff;
  return value < least || value > 0x10ffff || surrogate ? 0 : length;
}

// U+0000 to U+001F, U+007F, and the C1 controls U+0080 to U+009F, which terminals obey too.
static int is_control(const unsigned char *in) {
  return in[0] < 0x20 || in[0] == 0x7f || (in[0] == 0xc2 && in[1] < 0xa0);
}

void text_copy_line(char *out, size_t size, const char *in) {
  const unsigned char *at = (const unsigned char *)in;
  size_t used = 0;
  while (*at) {
    size_t length = sequence_length(at);
    int replaced = length == 0 || is_control(at);
    size_t width = replaced ? 1 : length;
    if (used + width + 1 > size)
      break;
    if (replaced)
      out[used] = '?';
    else
      memcpy(out + used, at, length);
    used += width;
    at += length ? length : 1;
  }
  out[used] = 0;
}
