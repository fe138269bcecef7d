// SPDX-License-Identifier: Apache-2.0
// The inside of the HTTP side, shared by http.c and http_send.c.
#ifndef DSNET_SERVER_HTTP_PRIVATE_H
#define DSNET_SERVER_HTTP_PRIVATE_H

#include <arpa/inet.h>
#include <microhttpd.h>
#include <uv.h>

#include "http.h"
#include "request.h"
#include "routes.h"

// Clients that owe something, all within the same time: oldest deadline first.
struct owing {
  struct client *first, **end;
  uint64_t ms;
};

// One request, from its header fields to the end of its answer.
struct exchange {
  struct request request;
  struct client *client;
  const struct route *route; // NULL: refused, and `answer` says why
  struct answer answer;
  uint64_t body;  // bytes so far
  uint64_t paced; // bytes when the deadline was last put off
  bool head;      // a HEAD: no body
  bool preflight; // an OPTIONS in which a browser asks what a page may do
  bool cut_short; // answered before the body's end; the rest is read and dropped
  bool asleep;    // suspended; in http->asleep
  struct exchange *next, **link;
};

// One TCP connection as long as libmicrohttpd has it.
struct client {
  struct http *http;
  struct MHD_Connection *connection;
  struct owing *owing; // the list it is in, or NULL
  struct client *next, **link;
  uint64_t deadline; // loop time, ms
  struct exchange *exchange;
  bool upgrading; // counted in server->upgrading
};

struct http {
  struct server *server;
  struct MHD_Daemon *daemon;
  uv_poll_t poll;
  uv_timer_t timer;
  bool stopped;
  bool again;             // another run is needed, whatever MHD_get_timeout says
  struct owing requests;  // who owe header fields and small bodies
  struct owing transfers; // who owe the next piece of a long body, or room for one of an answer
  struct exchange *asleep;
  size_t exchanges;
  char url[INET6_ADDRSTRLEN + 32];
};

// Puts a client's deadline off, in the list given.
void client_owe(struct client *client, struct owing *owing);
void client_owe_nothing(struct client *client);
// Suspends the connection until exchange_wake.
void exchange_sleep(struct exchange *exchange);
void exchange_wake(struct exchange *exchange);

// Queues the answer of the exchange, which is taken.
enum MHD_Result http_send(struct exchange *exchange);
// Sends it past the library while the request's body is still coming, and half-closes the
// connection: what the client has sent is read and dropped, because closing over unread bytes would
// reset the connection and with it the answer.
void http_send_early(struct exchange *exchange);

#endif
