// SPDX-License-Identifier: Apache-2.0
// An HTTP answer before it is given to the HTTP library: status, body and headers. Errors are
// problem documents (RFC 9457).
#ifndef DSNET_SERVER_ANSWER_H
#define DSNET_SERVER_ANSWER_H

#include <jansson.h>
#include <stddef.h>

#define ANSWER_HEADERS_MAX 4
#define RETRY_AFTER        "2" // seconds; a session or a drain seldom ends sooner

struct answer {
  unsigned status;
  const char *type; // media type
  char *body;       // malloc'd; NULL for none
  size_t size;
  struct {
    const char *name, *value; // constants
  } headers[ANSWER_HEADERS_MAX];
  size_t header_count;
};

// Each fills an answer that starts from {0}; when memory is out it is a 500 without a body.
void answer_text(struct answer *answer, unsigned status, const char *text);
void answer_metrics(struct answer *answer, char *text); // takes the text, NULL when memory is out
void answer_json(struct answer *answer, unsigned status, json_t *document); // takes the document
void answer_problem(struct answer *answer, unsigned status, const char *detail);
void answer_header(struct answer *answer, const char *name, const char *value);
void answer_deinit(struct answer *answer);

#endif
