// SPDX-License-Identifier: Apache-2.0
// An HTTP request as the handlers of the route table see it. It lives from its header fields to the
// end of its answer. Event loop only.
#ifndef DSNET_SERVER_REQUEST_H
#define DSNET_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answer.h"

#define REQUEST_PARAMETERS_MAX 2
#define REQUEST_PARAMETER_SIZE 128

struct server;
struct MHD_Connection;

struct request {
  struct server *server;
  struct MHD_Connection *connection;
  // The segments that the '*' of the route's path stood for, decoded.
  char parameters[REQUEST_PARAMETERS_MAX][REQUEST_PARAMETER_SIZE];
  // A handler's own; `release` is called with it once, when the request is over, however it ends.
  void *state;
  void (*release)(void *state);
};

// The first header field of that name, or NULL.
const char *request_header(const struct request *request, const char *name);
// A query parameter, decoded; "" when it has no value, NULL when it is not there. Routes say which
// ones they take; others, repeated ones and those with a NUL inside are refused before a handler
// runs.
const char *request_query(const struct request *request, const char *name);
// A whole number. Leaves *value alone when it is not there; when it is not within bounds, fills the
// answer and returns false.
bool request_query_number(const struct request *request, const char *name, uint64_t min,
                          uint64_t max, uint64_t *value, struct answer *answer);
// One of the words of "a|b|c"; *index is its place in the list, and left alone when the parameter
// is not there. Otherwise fills the answer and returns false.
bool request_query_choice(const struct request *request, const char *name, const char *choices,
                          size_t *index, struct answer *answer);

// Fills the answer and returns false unless every query parameter is one of the space-separated
// `names`, once.
bool request_check_query(const struct request *request, const char *names, struct answer *answer);

// For a handler that called answer_later: gives the answer, which is taken. The request is over
// soon afterwards; do not touch it again.
void request_complete(struct request *request, struct answer *answer);
// For a source that returned ANSWER_WAIT: asks it again. More calls than waits do no harm.
void request_resume(struct request *request);

#endif
