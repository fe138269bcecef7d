// SPDX-License-Identifier: Apache-2.0
#include "request.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

const char *request_header(const struct request *request, const char *name) {
  return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *request_query(const struct request *request, const char *name) {
  const char *value = NULL;
  size_t size;
  if (MHD_lookup_connection_value_n(request->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name),
                                    &value, &size) == MHD_NO)
    return NULL;
  return value ? value : "";
}

bool request_query_number(const struct request *request, const char *name, uint64_t min,
                          uint64_t max, uint64_t *value, struct answer *answer) {
  const char *text = request_query(request, name);
  if (!text)
    return true;
  size_t digits = strspn(text, "0123456789");
  uint64_t number = strtoull(text, NULL, 10);
  if (digits && digits < 19 && !text[digits] && number >= min && number <= max) {
    *value = number;
    return true;
  }
  answer_problem(answer, PROBLEM_BAD_PARAMETER,
                 "%s: a whole number from %" PRIu64 " to %" PRIu64 " is needed", name, min, max);
  return false;
}

bool request_query_choice(const struct request *request, const char *name, const char *choices,
                          size_t *index, struct answer *answer) {
  const char *text = request_query(request, name);
  if (!text)
    return true;
  size_t length = strlen(text), place = 0;
  for (const char *word = choices;; place++) {
    size_t span = strcspn(word, "|");
    if (span == length && !memcmp(word, text, span)) {
      *index = place;
      return true;
    }
    if (!word[span])
      break;
    word += span + 1;
  }
  answer_problem(answer, PROBLEM_BAD_PARAMETER, "%s: it must be one of %s", name, choices);
  return false;
}

struct query_check {
  const char *names;
  uint32_t seen; // bit i: names' i-th word
  struct answer *answer;
};

// The place of a word among space-separated ones, or -1.
static int place_of(const char *names, const char *word, size_t length) {
  for (int place = 0; *names; place++) {
    size_t span = strcspn(names, " ");
    if (span == length && !memcmp(names, word, length))
      return place;
    names += span;
    names += strspn(names, " ");
  }
  return -1;
}

static enum MHD_Result check_parameter(void *user, enum MHD_ValueKind kind, const char *name,
                                       size_t name_size, const char *value, size_t value_size) {
  (void)kind;
  struct query_check *check = user;
  int place = place_of(check->names, name, name_size);
  if (place < 0)
    answer_problem(check->answer, PROBLEM_BAD_PARAMETER,
                   "there is no query parameter of that name here; known are: %s", check->names);
  else if (check->seen & 1U << place)
    answer_problem(check->answer, PROBLEM_BAD_PARAMETER, "%s: it is given twice", name);
  else if (value && memchr(value, 0, value_size))
    answer_problem(check->answer, PROBLEM_BAD_PARAMETER, "%s: there is a NUL in it", name);
  else
    check->seen |= 1U << place;
  return check->answer->status ? MHD_NO : MHD_YES;
}

bool request_check_query(const struct request *request, const char *names, struct answer *answer) {
  struct query_check check = {.names = names, .answer = answer};
  MHD_get_connection_values_n(request->connection, MHD_GET_ARGUMENT_KIND, check_parameter, &check);
  return !answer->status;
}
