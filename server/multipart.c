// SPDX-License-Identifier: Apache-2.0
#include "multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

// The value of a parameter of a header field, "; name=value" or "; name=\"value\"", into `value`.
// Returns its length, or -1 when it is missing or does not fit.
static int read_parameter(const char *field, const char *name, char *value, size_t size) {
  size_t name_size = strlen(name), length = 0;
  for (const char *at = strchr(field, ';'); at; at = strchr(at, ';')) {
    at += 1 + strspn(at + 1, " \t");
    if (strncasecmp(at, name, name_size) != 0 || at[name_size] != '=')
      continue;
    at += name_size + 1;
    bool quoted = *at == '"';
    at += quoted;
    for (; *at && (quoted ? *at != '"' : !strchr("; \t", *at)); at++) {
      if (quoted && *at == '\\' && at[1])
        at++;
      if (length + 1 >= size)
        return -1;
      value[length++] = *at;
    }
    value[length] = 0;
    return quoted && *at != '"' ? -1 : (int)length;
  }
  return -1;
}

int multipart_init(struct multipart *multipart, const char *content_type, const char *field,
                   struct dsnet_error *error) {
  char boundary[MULTIPART_BOUNDARY_MAX + 1];
  int length = read_parameter(content_type, "boundary", boundary, sizeof boundary);
  if (length < 1 || strpbrk(boundary, "\r\n"))
    return dsnet_error_set(error, DSNET_EFORMAT,
                           "Content-Type names no boundary of 1 to %d characters",
                           MULTIPART_BOUNDARY_MAX);
  *multipart = (struct multipart){.field = field, .matched = 2}; // as if a line had ended
  multipart->delimiter_size =
      (size_t)snprintf(multipart->delimiter, sizeof multipart->delimiter, "\r\n--%s", boundary);
  return 0;
}

// Whether the head at hand is that of the wanted part. It ends with an empty line.
static bool is_wanted(struct multipart *multipart) {
  static const char name[] = "Content-Disposition:";
  char value[64];
  multipart->head[multipart->head_size] = 0;
  for (char *line = multipart->head; line;) {
    char *end = strstr(line, "\r\n");
    if (end)
      *end = 0;
    if (!strncasecmp(line, name, sizeof name - 1))
      return read_parameter(line, "name", value, sizeof value) >= 0 &&
             !strcmp(value, multipart->field);
    line = end ? end + 2 : NULL;
  }
  return false;
}

static int end_head(struct multipart *multipart, struct dsnet_error *error) {
  multipart->wanted = is_wanted(multipart);
  if (multipart->wanted && multipart->found)
    return dsnet_error_set(error, DSNET_EFORMAT, "the form has the part \"%s\" twice",
                           multipart->field);
  multipart->found |= multipart->wanted;
  multipart->state = MULTIPART_CONTENT;
  multipart->matched = 0;
  return 0;
}

// One character behind a delimiter or of a head.
static int take_head(struct multipart *multipart, char c, struct dsnet_error *error) {
  if (multipart->head_size + 1 >= sizeof multipart->head)
    return dsnet_error_set(error, DSNET_EFORMAT, "a part of the form has a head of over %d bytes",
                           MULTIPART_HEAD_MAX);
  char *head = multipart->head;
  head[multipart->head_size++] = c;
  size_t size = multipart->head_size;
  if (multipart->state == MULTIPART_DELIMITED) {
    if (size == 2 && !memcmp(head, "--", 2))
      multipart->state = MULTIPART_END;
    else if (size >= 2 && !memcmp(head + size - 2, "\r\n", 2))
      multipart->state = MULTIPART_HEAD; // the line's end stays, so that an empty head is seen
    else if (c != '-' && c != '\r' && c != ' ' && c != '\t')
      return dsnet_error_set(error, DSNET_EFORMAT, "the form has a malformed delimiter");
    if (multipart->state == MULTIPART_HEAD) {
      memcpy(head, "\r\n", 2);
      multipart->head_size = 2;
    }
    return 0;
  }
  return size >= 4 && !memcmp(head + size - 4, "\r\n\r\n", 4) ? end_head(multipart, error) : 0;
}

// Content up to where the delimiter begins to match, or the next character of a match. Returns how
// many bytes were used.
static int take_content(struct multipart *multipart, const char *data, size_t size, size_t *used,
                        multipart_sink *sink, void *user) {
  if (!multipart->matched) {
    const char *end = memchr(data, '\r', size);
    *used = end ? (size_t)(end - data) : size;
    multipart->matched = end ? 1 : 0;
    int result = multipart->wanted && *used ? sink(user, data, *used) : 0;
    *used += end ? 1 : 0;
    return result;
  }
  if (*data == multipart->delimiter[multipart->matched]) {
    *used = 1;
    if (++multipart->matched == multipart->delimiter_size) {
      multipart->state = MULTIPART_DELIMITED;
      multipart->head_size = 0;
      multipart->wanted = false;
    }
    return 0;
  }
  // What had matched was content after all; this character is looked at again. The delimiter has
  // its only CR at the beginning, so no match can have begun inside.
  size_t held = multipart->matched;
  multipart->matched = 0;
  *used = 0;
  return multipart->wanted ? sink(user, multipart->delimiter, held) : 0;
}

int multipart_take(struct multipart *multipart, const char *data, size_t size, multipart_sink *sink,
                   void *user, struct dsnet_error *error) {
  int result = 0;
  for (size_t at = 0, used; result == 0 && at < size; at += used) {
    used = 1;
    switch (multipart->state) {
    case MULTIPART_CONTENT:
      result = take_content(multipart, data + at, size - at, &used, sink, user);
      break;
    case MULTIPART_DELIMITED:
    case MULTIPART_HEAD:
      result = take_head(multipart, data[at], error);
      break;
    case MULTIPART_END: // an epilogue says nothing
      used = size - at;
      break;
    }
  }
  return result;
}

int multipart_finish(const struct multipart *multipart, struct dsnet_error *error) {
  if (multipart->state != MULTIPART_END)
    return dsnet_error_set(error, DSNET_EFORMAT, "the form is not complete");
  if (!multipart->found)
    return dsnet_error_set(error, DSNET_EFORMAT, "the form has no part \"%s\"", multipart->field);
  return 0;
}
