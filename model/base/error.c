// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *dsnet_code_text(int code) {
  switch (code) {
  case DSNET_OK:
    return "success";
#define X(name, number, text)                                                                      \
  case DSNET_E##name:                                                                              \
    return text;
    DSNET_ERRORS(X)
#undef X
  }
  return "unknown error";
}

// Keeps a message one printable line: file and array names in it come from outside.
static void make_one_line(char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f)
      *text = '?';
}

void dsnet_error_record(struct dsnet_error *error, enum dsnet_code code, const char *format, ...) {
  if (!error || error->code != DSNET_OK)
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  make_one_line(error->text);
  error->code = code;
}

int dsnet_error_prefix(struct dsnet_error *error, const char *format, ...) {
  if (!error || error->code == DSNET_OK)
    return error ? error->code : DSNET_OK;
  char whole[2 * sizeof error->text];
  va_list arguments;
  va_start(arguments, format);
  int used = vsnprintf(whole, sizeof error->text, format, arguments);
  va_end(arguments);
  size_t prefix = used < 0 ? 0 : strlen(whole);
  snprintf(whole + prefix, sizeof whole - prefix, ": %s", error->text);
  memcpy(error->text, whole, sizeof error->text - 1); // what does not fit is cut off
  error->text[sizeof error->text - 1] = 0;
  make_one_line(error->text);
  return error->code;
}
