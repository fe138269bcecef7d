// SPDX-License-Identifier: Apache-2.0
#include "negotiate.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char blanks[] = " \t";

// The length of the media type at the beginning of a field, without its parameters.
static size_t type_length(const char *text) {
  size_t length = strcspn(text, ";,");
  while (length && strchr(blanks, text[length - 1]))
    length--;
  return length;
}

// The q of one element's parameters, 1 without one.
static double quality(const char *element, size_t length) {
  for (size_t i = 0; i + 2 < length; i++) {
    if (element[i] != ';')
      continue;
    const char *name = element + i + 1 + strspn(element + i + 1, blanks);
    if (!strncasecmp(name, "q=", 2))
      return strtod(name + 2, NULL);
  }
  return 1;
}

// How exactly a range of types names a type: 3 for itself, 2 for "text/*", 1 for everything, 0 for
// not at all.
static int precision(const char *range, size_t length, const char *type, size_t type_size) {
  if (length == type_size && !strncasecmp(range, type, length))
    return 3;
  if (length == 3 && !memcmp(range, "*/*", 3))
    return 1;
  bool any = length > 2 && !memcmp(range + length - 2, "/*", 2);
  return any && type_size >= length && !strncasecmp(range, type, length - 1) ? 2 : 0;
}

// The q of the range that names a type most exactly, 0 when none does.
static double type_quality(const char *accept, const char *type) {
  int best = 0;
  double best_quality = 0;
  size_t type_size = type_length(type);
  while (*accept) {
    accept += strspn(accept, " \t,");
    size_t span = strcspn(accept, ",");
    int here = precision(accept, type_length(accept), type, type_size);
    if (here > best) {
      best = here;
      best_quality = quality(accept, span);
    }
    accept += span;
  }
  return best_quality;
}

bool negotiate_accepts(const char *accept, const char *type) {
  return !accept || !*accept || type_quality(accept, type) > 0;
}

bool negotiate_prefers(const char *accept, const char *type, const char *other) {
  return accept && type_quality(accept, type) > type_quality(accept, other);
}

// "gzip" itself decides, else "*".
bool negotiate_takes_gzip(const char *field) {
  double named = -1, any = 0;
  while (field && *field) {
    field += strspn(field, " \t,");
    size_t span = strcspn(field, ","), length = type_length(field);
    if (length == 4 && !strncasecmp(field, "gzip", 4))
      named = quality(field, span);
    else if (length == 1 && *field == '*')
      any = quality(field, span);
    field += span;
  }
  return (named >= 0 ? named : any) > 0;
}

bool negotiate_is_type(const char *content_type, const char *types) {
  size_t length = type_length(content_type);
  while (*types) {
    size_t span = strcspn(types, " ");
    if (span == length && !strncasecmp(types, content_type, length))
      return true;
    types += span;
    types += strspn(types, " ");
  }
  return false;
}

bool negotiate_matches(const char *field, const char *etag) {
  size_t length = strlen(etag);
  if (!field)
    return false;
  if (!strcmp(field, "*"))
    return true;
  while (*field) {
    field += strspn(field, " \t,");
    if (!strncmp(field, "W/", 2))
      field += 2;
    size_t span = strcspn(field, " \t,");
    if (span == length && !memcmp(field, etag, length))
      return true;
    field += span;
  }
  return false;
}

// Digits only; false when there are none or too many.
static bool read_number(const char **text, uint64_t *number) {
  size_t digits = strspn(*text, "0123456789");
  if (!digits || digits > 18)
    return false;
  *number = strtoull(*text, NULL, 10);
  *text += digits;
  return true;
}

enum negotiate_part negotiate_range(const char *range, const char *if_range, const char *etag,
                                    uint64_t size, uint64_t *first, uint64_t *last) {
  static const char unit[] = "bytes=";
  uint64_t a = 0, b = 0;
  if (!range || strncasecmp(range, unit, sizeof unit - 1) != 0 ||
      (if_range && strcmp(if_range, etag)))
    return NEGOTIATE_WHOLE;
  range += sizeof unit - 1;
  bool has_first = read_number(&range, &a);
  if (*range++ != '-')
    return NEGOTIATE_WHOLE;
  bool has_last = read_number(&range, &b);
  if (*range || (!has_first && !has_last) || (has_first && has_last && b < a))
    return NEGOTIATE_WHOLE;
  if (!has_first) { // the last b bytes
    a = b < size ? size - b : 0;
    b = b ? size : 0;
  }
  if (a >= size || (!has_first && !b))
    return NEGOTIATE_NO_PART;
  *first = a;
  *last = (has_first && !has_last) || b >= size ? size - 1 : b;
  return NEGOTIATE_PART;
}
