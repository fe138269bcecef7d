// SPDX-License-Identifier: Apache-2.0
#include "answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DETAIL_MAX 512

void answer_bytes(struct answer *answer, unsigned status, const char *type, char *body,
                  size_t size) {
  answer->status = body ? status : 500;
  answer->type = type;
  answer->body = body;
  answer->size = body ? size : 0;
}

static void set_text(struct answer *answer, unsigned status, const char *type, char *text) {
  answer_bytes(answer, status, type, text, text ? strlen(text) : 0);
}

void answer_text(struct answer *answer, unsigned status, const char *text) {
  set_text(answer, status, "text/plain; charset=utf-8", strdup(text));
}

void answer_metrics(struct answer *answer, char *text) {
  set_text(answer, 200, "text/plain; version=0.0.4; charset=utf-8", text);
}

void answer_json(struct answer *answer, unsigned status, json_t *document) {
  set_text(answer, status, "application/json",
           document ? json_dumps(document, JSON_COMPACT) : NULL);
  json_decref(document);
}

void answer_problem(struct answer *answer, enum problem problem, const char *format, ...) {
  char detail[DETAIL_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  json_t *text = json_string(detail); // none when it was cut inside a character
  if (!text)
    text = json_string(problem_title(problem));
  answer_json(answer, problem_status(problem),
              json_pack("{s:s, s:s, s:i, s:O, s:o}", "type", problem_type(problem), "title",
                        problem_title(problem), "status", (int)problem_status(problem), "detail",
                        text, "error", text));
  answer->type = "application/problem+json";
}

void answer_empty(struct answer *answer, unsigned status) {
  answer->status = status;
}

void answer_stream(struct answer *answer, const char *type, uint64_t size, const char *etag,
                   const struct answer_source *source, size_t block) {
  answer->status = 200;
  answer->type = type;
  answer->size = size;
  answer->source = *source;
  answer->block = block;
  if (etag)
    snprintf(answer->etag, sizeof answer->etag, "%s", etag);
}

void answer_later(struct answer *answer) {
  answer->later = true;
}

void answer_header(struct answer *answer, const char *name, const char *value) {
  size_t size = strlen(value) + 1;
  if (answer->header_count == ANSWER_HEADERS_MAX || size > ANSWER_TEXT_MAX - answer->text_size) {
    answer_deinit(answer);
    answer->status = 500;
    return;
  }
  memcpy(answer->text + answer->text_size, value, size);
  answer->headers[answer->header_count].name = name;
  answer->headers[answer->header_count++].value = answer->text_size;
  answer->text_size += size;
}

const char *answer_header_value(const struct answer *answer, size_t index) {
  return answer->text + answer->headers[index].value;
}

void answer_deinit(struct answer *answer) {
  free(answer->body);
  if (answer->source.close)
    answer->source.close(answer->source.user);
  *answer = (struct answer){0};
}
