// SPDX-License-Identifier: Apache-2.0
#include "answer.h"

#include <stdlib.h>
#include <string.h>

static const char *title(unsigned status) {
  static const struct {
    unsigned status;
    const char *text;
  } titles[] = {
      {400, "Bad Request"},      {401, "Unauthorized"},       {403, "Forbidden"},
      {404, "Not Found"},        {405, "Method Not Allowed"}, {413, "Content Too Large"},
      {426, "Upgrade Required"}, {500, "Internal Error"},     {503, "Service Unavailable"},
  };
  for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
    if (titles[i].status == status)
      return titles[i].text;
  return "Error";
}

static void set_body(struct answer *answer, unsigned status, const char *type, char *body) {
  answer->status = body ? status : 500;
  answer->type = type;
  answer->body = body;
  answer->size = body ? strlen(body) : 0;
}

void answer_text(struct answer *answer, unsigned status, const char *text) {
  set_body(answer, status, "text/plain; charset=utf-8", strdup(text));
}

void answer_metrics(struct answer *answer, char *text) {
  set_body(answer, 200, "text/plain; version=0.0.4; charset=utf-8", text);
}

void answer_json(struct answer *answer, unsigned status, json_t *document) {
  set_body(answer, status, "application/json",
           document ? json_dumps(document, JSON_COMPACT) : NULL);
  json_decref(document);
}

void answer_problem(struct answer *answer, unsigned status, const char *detail) {
  answer_json(answer, status,
              json_pack("{s:s, s:s, s:i, s:s}", "type", "about:blank", "title", title(status),
                        "status", (int)status, "detail", detail));
  answer->type = "application/problem+json";
}

void answer_header(struct answer *answer, const char *name, const char *value) {
  if (answer->header_count == ANSWER_HEADERS_MAX)
    return;
  answer->headers[answer->header_count].name = name;
  answer->headers[answer->header_count++].value = value;
}

void answer_deinit(struct answer *answer) {
  free(answer->body);
  *answer = (struct answer){0};
}
