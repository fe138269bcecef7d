// SPDX-License-Identifier: Apache-2.0
// The header of an npy member: a strict parser for the one form of Python dictionary that NumPy
// writes, and the writer of the same.
#include "io/npy.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define ALIGNMENT 64

// What is left of the header's text.
struct cursor {
  const char *at, *end;
};

static void skip_space(struct cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
    c->at++;
}

// Takes `symbol`, after spaces, if it is next.
static bool take(struct cursor *c, char symbol) {
  skip_space(c);
  if (c->at == c->end || *c->at != symbol)
    return false;
  c->at++;
  return true;
}

static bool take_word(struct cursor *c, const char *word) {
  size_t length = strlen(word);
  skip_space(c);
  if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length))
    return false;
  c->at += length;
  return true;
}

// A string in either kind of quotes. Escapes are refused: no type or key needs one.
static bool take_string(struct cursor *c, const char **text, size_t *length) {
  skip_space(c);
  if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
    return false;
  char quote = *c->at++;
  *text = c->at;
  while (c->at < c->end && *c->at != quote && *c->at != '\\' && *c->at != '\n')
    c->at++;
  if (c->at == c->end || *c->at != quote)
    return false;
  *length = (size_t)(c->at++ - *text);
  return true;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool take_size(struct cursor *c, size_t *size) {
  skip_space(c);
  if (c->at == c->end || !is_digit(*c->at))
    return false;
  for (*size = 0; c->at < c->end && is_digit(*c->at); c->at++)
    if (__builtin_mul_overflow(*size, 10, size) ||
        __builtin_add_overflow(*size, (size_t)(*c->at - '0'), size))
      return false;
  if (c->at < c->end && *c->at == 'L') // Python 2 wrote its long integers so
    c->at++;
  return true;
}

// Passes over the list that describes a record type, which is never read.
static bool skip_list(struct cursor *c) {
  const char *text;
  size_t length;
  int depth = 0;
  do {
    skip_space(c);
    if (c->at == c->end)
      return false;
    if (*c->at == '\'' || *c->at == '"') {
      if (!take_string(c, &text, &length))
        return false;
      continue;
    }
    depth += *c->at == '[' || *c->at == '(';
    depth -= *c->at == ']' || *c->at == ')';
    c->at++;
  } while (depth > 0);
  return true;
}

// (), (3,), (3, 4), (3, 4,): one value in parentheses without a comma is no tuple.
static bool take_shape(struct cursor *c, size_t *dimensions, size_t *shape) {
  bool comma = false;
  *dimensions = 0;
  if (!take(c, '('))
    return false;
  while (!take(c, ')')) {
    if ((*dimensions && !comma) || *dimensions == NPY_DIMENSIONS_MAX ||
        !take_size(c, &shape[*dimensions]))
      return false;
    ++*dimensions;
    comma = take(c, ',');
  }
  return *dimensions != 1 || comma;
}

static bool take_type(struct cursor *c, struct npy_info *info) {
  const char *text;
  size_t length;
  skip_space(c);
  if (c->at < c->end && *c->at == '[') {
    info->kind = NPY_OTHER;
    return skip_list(c);
  }
  return take_string(c, &text, &length) && npy_type_parse(text, length, info) == 0;
}

static bool take_order(struct cursor *c, bool *fortran_order) {
  *fortran_order = take_word(c, "True");
  return *fortran_order || take_word(c, "False");
}

// Kinds whose elements have only certain widths; another one (a 16-byte float) is never read.
static enum npy_kind kind_of_width(char letter, size_t width) {
  switch (letter) {
  case 'f':
    return width == 2 || width == 4 || width == 8 ? NPY_FLOAT : NPY_OTHER;
  case 'i':
  case 'u':
    return width == 1 || width == 2 || width == 4 || width == 8 ? (enum npy_kind)letter : NPY_OTHER;
  case 'b':
    return width == 1 ? NPY_BOOL : NPY_OTHER;
  case 'U':
  case 'S':
    return (enum npy_kind)letter;
  default:
    return NPY_OTHER;
  }
}

int npy_type_parse(const char *text, size_t length, struct npy_info *info) {
  if (length < 2 || !memchr("<>=|", text[0], 4) || !memchr("fiubUScOMmV", text[1], 11))
    return DSNET_EFORMAT;
  struct cursor c = {text + 2, text + length};
  char letter = text[1];
  size_t width = 0;
  bool sized = take_size(&c, &width);
  bool whole = c.at == c.end || ((letter == 'M' || letter == 'm') && *c.at == '[');
  if (!whole || (!sized && letter != 'O') || width > NPY_ELEMENT_MAX / 4)
    return DSNET_EFORMAT;
  info->kind = kind_of_width(letter, width);
  info->width = letter == 'U' ? 4 * width : width;
  info->big_endian = text[0] == '>';
  return 0;
}

int npy_shape_set(struct npy_info *info, size_t dimensions, const size_t *shape,
                  struct dsnet_error *error) {
  size_t count = 1, bytes;
  bool empty = false, fits = true;
  for (size_t i = 0; i < dimensions; i++) {
    info->shape[i] = shape[i];
    empty |= shape[i] == 0;
    fits = fits && memory_multiply(count, shape[i], &count);
  }
  if (empty)
    count = 0;
  if (!empty && (!fits || !memory_multiply(count, info->width, &bytes) || bytes > SIZE_MAX / 2))
    return dsnet_error_set(error, DSNET_EFORMAT, "its shape is larger than memory can be");
  info->dimensions = dimensions;
  info->count = count;
  return 0;
}

int npy_header_parse(const char *text, size_t length, struct npy_info *info,
                     struct dsnet_error *error) {
  struct cursor c = {text, text + length};
  bool have_type = false, have_order = false, have_shape = false, comma = true;
  size_t dimensions = 0, shape[NPY_DIMENSIONS_MAX] = {0};
  *info = (struct npy_info){0};
  if (!take(&c, '{'))
    return dsnet_error_set(error, DSNET_EFORMAT, "its npy header is not a dictionary");
  while (!take(&c, '}')) {
    const char *key = "";
    size_t size = 0;
    bool valid = comma && take_string(&c, &key, &size) && take(&c, ':');
    if (valid && !have_type && size == 5 && !memcmp(key, "descr", 5))
      valid = have_type = take_type(&c, info);
    else if (valid && !have_order && size == 13 && !memcmp(key, "fortran_order", 13))
      valid = have_order = take_order(&c, &info->fortran_order);
    else if (valid && !have_shape && size == 5 && !memcmp(key, "shape", 5))
      valid = have_shape = take_shape(&c, &dimensions, shape);
    else
      valid = false;
    if (!valid)
      return dsnet_error_set(error, DSNET_EFORMAT, "its npy header is malformed");
    comma = take(&c, ',');
  }
  skip_space(&c);
  if (c.at != c.end || !have_type || !have_order || !have_shape)
    return dsnet_error_set(error, DSNET_EFORMAT, "its npy header is malformed");
  return npy_shape_set(info, dimensions, shape, error);
}

size_t npy_header_format(const char *type, size_t dimensions, const size_t *shape,
                         char text[NPY_HEADER_TEXT_MAX]) {
  char tuple[NPY_DIMENSIONS_MAX * 24] = "";
  size_t used = 0;
  for (size_t i = 0; i < dimensions; i++)
    used += (size_t)snprintf(tuple + used, sizeof tuple - used, "%s%zu", i ? ", " : "", shape[i]);
  if (dimensions == 1)
    snprintf(tuple + used, sizeof tuple - used, ",");
  size_t start = NPY_PREFIX_SIZE + 2;
  size_t end =
      start + (size_t)snprintf(text + start, NPY_HEADER_TEXT_MAX - start,
                               "{'descr': '%.16s', 'fortran_order': False, 'shape': (%s), }", type,
                               tuple);
  size_t length = (end + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  memset(text + end, ' ', length - end);
  text[length - 1] = '\n';
  memcpy(text, "\x93NUMPY\x01\x00", NPY_PREFIX_SIZE);
  text[NPY_PREFIX_SIZE] = (char)((length - start) & 0xff);
  text[NPY_PREFIX_SIZE + 1] = (char)((length - start) >> 8);
  return length;
}

size_t npy_bytes(const struct npy_info *info) {
  return info->count * info->width;
}
