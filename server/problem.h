// SPDX-License-Identifier: Apache-2.0
// The kinds of problem the HTTP interface reports (RFC 9457), in one table. Clients tell them apart
// by `type`, which never changes once released; titles are for people.
#ifndef DSNET_SERVER_PROBLEM_H
#define DSNET_SERVER_PROBLEM_H

#define PROBLEM_TYPE_PREFIX "/problems#"

// name, status, type after the prefix, title
#define PROBLEMS(X)                                                                                \
  X(BAD_REQUEST, 400, "bad-request", "The request is malformed")                                   \
  X(BAD_PARAMETER, 400, "bad-parameter", "A query parameter or header has no meaning here")        \
  X(HANDSHAKE, 400, "bad-handshake", "The WebSocket handshake is not one of this protocol")        \
  X(TOKEN, 401, "token-needed", "The operator's token is needed")                                  \
  X(OPERATOR, 403, "operator-only", "Only an operator may see this")                               \
  X(ORIGIN, 403, "origin-not-allowed", "Pages of this origin may not do this")                     \
  X(NOT_FOUND, 404, "not-found", "There is nothing at this address")                               \
  X(NO_MODEL, 404, "model-not-found", "There is no model of that name")                            \
  X(NO_JOB, 404, "job-not-found", "There is no job of that name")                                  \
  X(METHOD, 405, "method-not-allowed", "This address does not take that method")                   \
  X(NOT_ACCEPTABLE, 406, "not-acceptable",                                                         \
    "There is no form of this that the Accept header takes")                                       \
  X(NOT_DONE, 409, "job-not-done", "The job has no result")                                        \
  X(MODEL_CHANGED, 409, "model-changed", "The job was computed by another model of that name")     \
  X(LENGTH, 411, "length-required", "The request needs a body with a length, or in chunks")        \
  X(TOO_LARGE, 413, "content-too-large", "The body is larger than this address takes")             \
  X(MEDIA_TYPE, 415, "media-type", "The body is of a type that this address does not take")        \
  X(RANGE, 416, "range", "No byte of the asked range exists")                                      \
  X(KEY_REUSED, 422, "key-reused", "The idempotency key belongs to another request")               \
  X(UPGRADE, 426, "upgrade-required", "This address speaks WebSocket")                             \
  X(INTERNAL, 500, "internal", "The server failed")                                                \
  X(NOT_READY, 503, "not-ready", "The server is starting or ending")                               \
  X(AT_LIMIT, 503, "at-limit", "The server is at a limit")                                         \
  X(NO_JOBS, 503, "jobs-unavailable", "This server keeps no jobs now")                             \
  X(NO_SPACE, 507, "no-space", "There is no space left for this")

enum problem {
#define X(name, status, type, title) PROBLEM_##name,
  PROBLEMS(X)
#undef X
      PROBLEM_COUNT
};

unsigned problem_status(enum problem problem);
const char *problem_type(enum problem problem); // with the prefix
const char *problem_title(enum problem problem);

#endif
