// SPDX-License-Identifier: Apache-2.0
// The addresses of the HTTP interface in one table: method, path, who may, what the query and the
// body may be, and the function behind it.
#ifndef DSNET_SERVER_ROUTES_H
#define DSNET_SERVER_ROUTES_H

#include "request.h"
#include "server.h"

enum method {
  METHOD_NONE = 0,
  METHOD_GET = 1,
  METHOD_POST = 2,
  METHOD_DELETE = 4,
  METHOD_HEAD = 8,     // of every GET but the stream's; the HTTP side leaves the body out
  METHOD_OPTIONS = 16, // of every address, in no row of the table
};

enum route_kind {
  ROUTE_OPEN,
  ROUTE_OPERATOR, // for whoever has the operator's token
  ROUTE_LISTING,  // likewise, if this server has such a token: it tells of other clients' doings
  ROUTE_STREAM,   // the WebSocket endpoint
};

// How a route takes a body. Any of the functions may fill the answer, which refuses the request:
// what is still to come of the body is not given to the handler any more.
struct route_body {
  const char *types; // media types, space-separated; others are refused with 415
  bool untyped;      // a body without a Content-Type is taken too
  uint64_t (*limit)(const struct server *server); // bytes; more is refused with 413 at once
  // When the header fields are there; sets request->state and release. May be NULL.
  void (*begin)(struct request *request, struct answer *answer);
  // Each piece of the body as it arrives.
  void (*take)(struct request *request, const void *data, size_t size, struct answer *answer);
};

struct route {
  enum method method;
  const char *path; // '*' stands for one segment that is not empty
  enum route_kind kind;
  const char *query; // parameters it takes, space-separated; NULL: whatever there is is ignored
  const struct route_body *body; // NULL: takes none; a small one is read and ignored
  // When the whole request is there.
  void (*answer)(struct request *request, struct answer *answer);
};

// METHOD_NONE for one that no address takes.
enum method route_method(const char *method);

// The route of a path and method, NULL when there is none. `*allowed` is the set of methods that
// the path has, 0 for a path that is not there. The stream's route takes any method but OPTIONS,
// for the handshake to refuse. Fills the request's parameters.
const struct route *route_find(enum method method, const char *path, struct request *request,
                               unsigned *allowed);

// "GET, HEAD, OPTIONS".
#define ROUTE_ALLOW_SIZE 48
void route_allow(unsigned allowed, char text[ROUTE_ALLOW_SIZE]);

// The 413 of a body of more than `limit` bytes.
void route_too_large(uint64_t limit, struct answer *answer);

// Finds the route and checks all that can be checked before the body: address, method, token,
// query, and type and length of the body. Fills the answer when the request is refused, or is an
// OPTIONS, and returns NULL then.
const struct route *route_begin(struct request *request, const char *method, const char *path,
                                struct answer *answer);

#endif
