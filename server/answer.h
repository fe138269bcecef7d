// SPDX-License-Identifier: Apache-2.0
// An HTTP answer before it is given to the HTTP library: status, headers, and a body that is in
// memory, or read piece by piece while it is sent. Errors are problem documents (RFC 9457), whose
// `detail` is there again as `error`, where clients of the Open Inference Protocol look.
#ifndef DSNET_SERVER_ANSWER_H
#define DSNET_SERVER_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "problem.h"

#define ANSWER_HEADERS_MAX 8
#define ANSWER_TEXT_MAX    640 // bytes of all header values
#define ANSWER_ETAG_MAX    80
#define RETRY_AFTER        "2" // seconds; a session or a drain seldom ends sooner

#define ANSWER_SIZE_UNKNOWN UINT64_MAX // sent in chunks until the reader ends it

enum answer_read {
  ANSWER_END = -1,    // no more; only of a body of unknown size
  ANSWER_FAILED = -2, // the connection is cut, so that nobody takes the part for the whole
  ANSWER_WAIT = 0,    // nothing yet: the connection sleeps until request_resume
};

// Where a body comes from that is not in memory. Event loop only.
struct answer_source {
  // Up to `size` bytes from `offset` on; returns how many, or an enum answer_read.
  ssize_t (*read)(void *user, uint64_t offset, char *data, size_t size);
  void (*close)(void *user); // once, when the answer is done with, sent or not
  void *user;
};

struct answer {
  unsigned status;  // 0: none yet
  bool later;       // the handler will give it by request_complete
  const char *type; // media type
  char *body;       // malloc'd; NULL for none
  uint64_t size;    // of the body, or of what the source has
  struct answer_source source;
  size_t block;               // bytes the source likes to be asked for at once
  char etag[ANSWER_ETAG_MAX]; // with its quotes; empty for none, and then no ranges either
  struct {
    const char *name;
    size_t value; // in text
  } headers[ANSWER_HEADERS_MAX];
  size_t header_count;
  char text[ANSWER_TEXT_MAX];
  size_t text_size;
};

// Each fills an answer that starts from {0}; when memory is out it is a 500 without a body.
void answer_text(struct answer *answer, unsigned status, const char *text);
void answer_metrics(struct answer *answer, char *text); // takes the text, NULL when memory is out
void answer_json(struct answer *answer, unsigned status, json_t *document); // takes the document
void answer_problem(struct answer *answer, enum problem problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Takes `body`, which is released with free().
void answer_bytes(struct answer *answer, unsigned status, const char *type, char *body,
                  size_t size);
void answer_empty(struct answer *answer, unsigned status);
// 200 with a body that is read while it is sent. With an `etag` (quotes included) it may be asked
// for in part, and the source is then read from where the part begins.
void answer_stream(struct answer *answer, const char *type, uint64_t size, const char *etag,
                   const struct answer_source *source, size_t block);
// The answer comes from request_complete; the connection sleeps until then.
void answer_later(struct answer *answer);

// `name` is a constant; the value is copied. All values together fit ANSWER_TEXT_MAX, or the answer
// becomes a 500.
void answer_header(struct answer *answer, const char *name, const char *value);
const char *answer_header_value(const struct answer *answer, size_t index);
void answer_deinit(struct answer *answer);

#endif
