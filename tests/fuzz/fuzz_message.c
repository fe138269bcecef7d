// SPDX-License-Identifier: Apache-2.0
// Any bytes as a text message: what is accepted can be written, and reads back as the same bytes.
#include "wire/message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct message message, back;
  static char text[2 * MESSAGE_SIZE_MAX], again[2 * MESSAGE_SIZE_MAX];
  char why[64];
  if (message_read((const char *)data, size, &message, why, sizeof why) != WIRE_OK)
    return 0;
  size_t length = message_write(&message, text, sizeof text);
  if (length == 0 || message_read(text, length, &back, why, sizeof why) != WIRE_OK)
    abort();
  if (message_write(&back, again, sizeof again) != length || memcmp(text, again, length) != 0)
    abort();
  return 0;
}
