// SPDX-License-Identifier: Apache-2.0
// The names and texts of stream errors, from the one table in frame.h.
#include "wire/frame.h"

const char *wire_error_code(enum wire_error error) {
  switch (error) {
#define X(name, code, text)                                                                        \
  case WIRE_##name:                                                                                \
    return code;
    WIRE_ERRORS(X)
#undef X
  }
  return "internal";
}

const char *wire_error_text(enum wire_error error) {
  switch (error) {
#define X(name, code, text)                                                                        \
  case WIRE_##name:                                                                                \
    return text;
    WIRE_ERRORS(X)
#undef X
  }
  return "unknown error";
}
