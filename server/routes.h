// SPDX-License-Identifier: Apache-2.0
// The addresses of the HTTP interface in one table, and the documents behind them.
#ifndef DSNET_SERVER_ROUTES_H
#define DSNET_SERVER_ROUTES_H

#include "answer.h"
#include "server.h"

enum route_kind {
  ROUTE_NONE,     // there is nothing at this address
  ROUTE_DOCUMENT, // GET and HEAD
  ROUTE_OPERATOR, // the same, for whoever has the operator's token
  ROUTE_STREAM,   // the WebSocket endpoint
};

struct route {
  const char *path; // a trailing '*' stands for one segment that is not empty
  enum route_kind kind;
  // `parameter` is the segment that '*' stood for.
  void (*answer)(const struct server *server, const char *parameter, struct answer *answer);
};

// The route of a path, NULL when there is none; *parameter points into the path.
const struct route *route_find(const char *path, const char **parameter);

// Answers a request of any method for anything but an accepted handshake.
// `authorization` is that header, or NULL.
void route_answer(const struct server *server, const char *method, const char *path,
                  const char *authorization, struct answer *answer);

#endif
