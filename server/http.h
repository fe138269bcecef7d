// SPDX-License-Identifier: Apache-2.0
// The HTTP side: libmicrohttpd, driven through its epoll descriptor by the event loop. It parses
// requests and owns every socket but those of streams, which get descriptors of their own. Event
// loop only.
//
// libmicrohttpd in this mode has no way to wake itself, and its epoll set is edge-triggered. So it
// runs when its descriptor is readable, when its own time-out says so (asked after every run), and
// when http_run_soon was called.
#ifndef DSNET_SERVER_HTTP_H
#define DSNET_SERVER_HTTP_H

#include <stddef.h>

#include "base/error.h"

struct http;
struct server;

// Binds the address of the settings and starts to accept.
int http_new(struct http **http, struct server *server, struct dsnet_error *error);
const char *http_url(const struct http *http);

// Lets libmicrohttpd run in the loop's next turn; any number of calls make one run.
void http_run_soon(struct http *http);

// Cuts connections that have not delivered a request in time, or whose transfers do not move.
void http_sweep(struct http *http);

// Requests whose answer has not been sent to its end.
size_t http_busy(const struct http *http);

// Closes the loop's handles. http_free when the loop has ended.
void http_stop(struct http *http);
void http_free(struct http *http);

#endif
