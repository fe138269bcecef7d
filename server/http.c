// SPDX-License-Identifier: Apache-2.0
#include "http.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_private.h"
#include "upgrade.h"
#include "wire/message.h"

// Memory of one connection's request and answer headers, no larger than a browser's headers with
// some cookies need.
#define CONNECTION_MEMORY 6144
// Bytes of a refused request's body that are read so that the connection can go on; after more it
// is answered and closed.
#define DROPPED_MAX (1 << 20)
// Bytes by which a transfer must move before its deadline is put off.
#define PACE 65536

// Driving libmicrohttpd --------------------------------------------------------------------------

static void run(struct http *http);

static void on_timer(uv_timer_t *timer) {
  run(timer->data);
}

static void run(struct http *http) {
  MHD_UNSIGNED_LONG_LONG wait;
  http->again = false;
  MHD_run(http->daemon);
  if (http->stopped)
    return;
  if (http->again)
    uv_timer_start(&http->timer, on_timer, 0, 0);
  else if (MHD_get_timeout(http->daemon, &wait) == MHD_YES)
    uv_timer_start(&http->timer, on_timer, wait, 0);
  else
    uv_timer_stop(&http->timer);
}

static void on_readable(uv_poll_t *poll, int status, int events) {
  (void)status;
  (void)events;
  run(poll->data);
}

void http_run_soon(struct http *http) {
  http->again = true; // when called inside a run, which would set the timer otherwise
  if (!http->stopped)
    uv_timer_start(&http->timer, on_timer, 0, 0);
}

static void log_from_library(void *user, const char *format, va_list arguments) {
  struct http *http = user;
  char text[512];
  vsnprintf(text, sizeof text, format, arguments);
  text[strcspn(text, "\n")] = 0;
  log_client_event(&http->server->log_limit, uv_now(&http->server->loop), LOG_LEVEL_DEBUG, "http",
                   NULL, "%s", text);
}

// Time-outs ---------------------------------------------------------------------------------------
// libmicrohttpd's own time-out starts anew with every byte, so a client that trickles would stay.

void client_owe_nothing(struct client *client) {
  if (!client->owing)
    return;
  *client->link = client->next;
  if (client->next)
    client->next->link = client->link;
  else
    client->owing->end = client->link;
  client->owing = NULL;
}

void client_owe(struct client *client, struct owing *owing) {
  client_owe_nothing(client);
  client->deadline = uv_now(&client->http->server->loop) + owing->ms;
  client->owing = owing;
  client->next = NULL;
  client->link = owing->end;
  *owing->end = client;
  owing->end = &client->next;
}

static void owing_init(struct owing *owing, double seconds) {
  owing->end = &owing->first;
  owing->ms = (uint64_t)(seconds * 1000);
}

static void cut_late(struct http *http, struct owing *owing, const char *event, const char *text) {
  uint64_t now = uv_now(&http->server->loop);
  while (owing->first && owing->first->deadline <= now) {
    struct client *client = owing->first;
    client_owe_nothing(client);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    // libmicrohttpd sees the end of the stream and cleans up.
    if (info)
      shutdown(info->connect_fd, SHUT_RDWR);
    log_client_event(&http->server->log_limit, now, LOG_LEVEL_INFO, event, NULL, "%s", text);
  }
}

void http_sweep(struct http *http) {
  cut_late(http, &http->requests, "request_timeout",
           "a connection was cut that had not sent its request in time");
  cut_late(http, &http->transfers, "transfer_timeout",
           "a connection was cut whose upload or download did not move");
}

// Sleeping connections ---------------------------------------------------------------------------

void exchange_sleep(struct exchange *exchange) {
  struct http *http = exchange->client->http;
  client_owe_nothing(exchange->client);
  exchange->asleep = true;
  exchange->next = http->asleep;
  exchange->link = &http->asleep;
  if (http->asleep)
    http->asleep->link = &exchange->next;
  http->asleep = exchange;
  MHD_suspend_connection(exchange->client->connection);
}

void exchange_wake(struct exchange *exchange) {
  struct http *http = exchange->client->http;
  if (!exchange->asleep)
    return;
  exchange->asleep = false;
  *exchange->link = exchange->next;
  if (exchange->next)
    exchange->next->link = exchange->link;
  client_owe(exchange->client, &http->transfers);
  MHD_resume_connection(exchange->client->connection);
  http_run_soon(http); // the library would not notice
}

static struct exchange *exchange_of(struct request *request) {
  return (struct exchange *)(void *)((char *)request - offsetof(struct exchange, request));
}

void request_complete(struct request *request, struct answer *answer) {
  struct exchange *exchange = exchange_of(request);
  exchange->answer = *answer;
  *answer = (struct answer){0};
  exchange_wake(exchange);
}

void request_resume(struct request *request) {
  exchange_wake(exchange_of(request));
}

// Connections ------------------------------------------------------------------------------------

static void end_upgrading(struct client *client) {
  if (client->upgrading)
    client->http->server->upgrading--;
  client->upgrading = false;
}

static void release_state(struct exchange *exchange) {
  if (exchange->request.release)
    exchange->request.release(exchange->request.state);
  exchange->request.release = NULL;
}

static void end_exchange(struct client *client) {
  struct exchange *exchange = client->exchange;
  if (!exchange)
    return;
  client->exchange = NULL;
  client->http->exchanges--;
  release_state(exchange);
  answer_deinit(&exchange->answer);
  free(exchange);
}

static void on_connection(void *user, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code) {
  struct client *client = *socket_context;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    *socket_context = client = calloc(1, sizeof *client);
    if (!client) // refused when its request comes
      return;
    client->http = user;
    client->connection = connection;
    client_owe(client, &client->http->requests);
    return;
  }
  // At its connection limit libmicrohttpd stops listening. It cleans up at the end of a run and
  // listens again at the beginning of the next, which nothing else would bring about.
  http_run_soon(user);
  if (client) {
    client_owe_nothing(client);
    end_exchange(client);
    end_upgrading(client);
    free(client);
    *socket_context = NULL;
  }
}

static void on_completed(void *user, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode code) {
  (void)user;
  (void)connection;
  (void)code;
  struct client *client = *request;
  if (!client)
    return;
  *request = NULL;
  end_exchange(client);
  client_owe(client, &client->http->requests); // a kept connection owes its next request
}

// Streams ----------------------------------------------------------------------------------------

static struct stream_peer peer_of(struct MHD_Connection *connection) {
  struct stream_peer peer = {0};
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (!info || !info->client_addr)
    return peer;
  peer.family = info->client_addr->sa_family;
  if (peer.family == AF_INET6)
    memcpy(peer.address, &((const struct sockaddr_in6 *)(const void *)info->client_addr)->sin6_addr,
           16);
  else
    memcpy(peer.address, &((const struct sockaddr_in *)(const void *)info->client_addr)->sin_addr,
           4);
  return peer;
}

// The stream gets a descriptor of its own, and the library may close its one: a connection there
// takes 7 kB, and each that ends costs a walk over all that are upgraded.
static void on_upgraded(void *user, struct MHD_Connection *connection, void *request,
                        const char *extra, size_t extra_size, MHD_socket fd,
                        struct MHD_UpgradeResponseHandle *handle) {
  struct http *http = user;
  struct client *client = request;
  struct server *server = http->server;
  end_upgrading(client);
  end_exchange(client);
  client_owe_nothing(client);
  struct stream_peer peer = peer_of(connection);
  int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own >= 0)
    workers_give(server->workers, own, &peer, extra, extra_size);
  else
    log_client_event(&server->log_limit, uv_now(&server->loop), LOG_LEVEL_WARN, "stream_refused",
                     NULL, "out of descriptors");
  MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
  http_run_soon(http); // the library would not notice
}

static enum MHD_Result accept_stream(struct client *client, const char *accept) {
  struct server *server = client->http->server;
  // libmicrohttpd adds "Connection: Upgrade" itself; a second one makes some browsers close.
  struct MHD_Response *response = MHD_create_response_for_upgrade(on_upgraded, client->http);
  if (!response)
    return MHD_NO;
  MHD_add_response_header(response, "Upgrade", "websocket");
  MHD_add_response_header(response, "Sec-WebSocket-Accept", accept);
  MHD_add_response_header(response, "Sec-WebSocket-Protocol", WIRE_SUBPROTOCOL);
  enum MHD_Result result =
      MHD_queue_response(client->connection, MHD_HTTP_SWITCHING_PROTOCOLS, response);
  MHD_destroy_response(response);
  if (result == MHD_YES) {
    client->upgrading = true;
    server->upgrading++;
  }
  return result;
}

static enum MHD_Result note_header(void *user, enum MHD_ValueKind kind, const char *name,
                                   const char *value) {
  (void)kind;
  upgrade_header(user, name, value ? value : "");
  return MHD_YES;
}

static enum problem handshake_problem(unsigned status) {
  switch (status) {
  case 403:
    return PROBLEM_ORIGIN;
  case 405:
    return PROBLEM_METHOD;
  case 426:
    return PROBLEM_UPGRADE;
  default:
    return PROBLEM_HANDSHAKE;
  }
}

static enum problem refusal_problem(enum refusal refusal) {
  return refusal == REFUSAL_DRAINING || refusal == REFUSAL_WARMING ? PROBLEM_NOT_READY
                                                                   : PROBLEM_AT_LIMIT;
}

static enum MHD_Result handshake_stream(struct client *client, const char *method,
                                        const char *version) {
  struct server *server = client->http->server;
  struct upgrade_request request = {0};
  struct upgrade_answer decision;
  struct answer *answer = &client->exchange->answer;
  MHD_get_connection_values(client->connection, MHD_HEADER_KIND, note_header, &request);
  upgrade_decide(&request, method, version, &server->config->allowed_origins, &decision);
  struct stream_peer peer = peer_of(client->connection);
  enum refusal refusal = decision.status == 101 ? server_refusal(server, &peer) : REFUSAL_HANDSHAKE;
  if (refusal == REFUSAL_NONE)
    return accept_stream(client, decision.accept);
  server->metrics.refused[refusal]++;
  if (refusal != REFUSAL_HANDSHAKE) {
    answer_problem(answer, refusal_problem(refusal), "%s", refusal_text(refusal));
    answer_header(answer, "Retry-After", RETRY_AFTER);
  } else {
    answer_problem(answer, handshake_problem(decision.status), "%s", decision.reason);
    if (decision.status == 405)
      answer_header(answer, "Allow", "GET");
    if (decision.status == 426) {
      answer_header(answer, "Upgrade", "websocket");
      answer_header(answer, "Sec-WebSocket-Version", "13");
    }
  }
  log_client_event(&server->log_limit, uv_now(&server->loop), LOG_LEVEL_INFO, "stream_refused",
                   NULL, "%s",
                   refusal == REFUSAL_HANDSHAKE ? decision.reason : refusal_text(refusal));
  return http_send(client->exchange);
}

// Requests ---------------------------------------------------------------------------------------

// The exchange's route refuses it, or has done so. What a client still has to send is read if it is
// little, for the connection to go on. Handlers are done with it.
static void refuse(struct exchange *exchange, uint64_t to_come) {
  exchange->route = NULL;
  release_state(exchange);
  if (exchange->answer.status == problem_status(PROBLEM_TOO_LARGE) || to_come > DROPPED_MAX)
    http_send_early(exchange);
}

static enum MHD_Result begin_request(struct client *client, const char *method, const char *path) {
  struct http *http = client->http;
  struct exchange *exchange = client->exchange = calloc(1, sizeof *exchange);
  if (!exchange)
    return MHD_NO;
  http->exchanges++;
  http->server->metrics.requests++;
  exchange->client = client;
  exchange->request.server = http->server;
  exchange->request.connection = client->connection;
  exchange->head = !strcmp(method, "HEAD");
  exchange->preflight = !strcmp(method, "OPTIONS") &&
                        request_header(&exchange->request, "Access-Control-Request-Method");
  const struct route *route = route_begin(&exchange->request, method, path, &exchange->answer);
  exchange->route = route;
  if (route && route->body) {
    client_owe(client, &http->transfers);
    if (route->body->begin)
      route->body->begin(&exchange->request, &exchange->answer);
  }
  const char *length = request_header(&exchange->request, "Content-Length");
  uint64_t to_come = length ? strtoull(length, NULL, 10) : 0;
  if (route && !route->body && to_come > DROPPED_MAX)
    route_too_large(DROPPED_MAX, &exchange->answer);
  if (!exchange->answer.status)
    return MHD_YES;
  exchange->route = NULL;
  const char *expect = request_header(&exchange->request, "Expect");
  if (expect && !strcasecmp(expect, "100-continue"))
    return http_send(exchange); // the body has not been sent, and will not be
  refuse(exchange, to_come);
  return MHD_YES;
}

static void take_body(struct exchange *exchange, const char *data, size_t size) {
  const struct route *route = exchange->route;
  exchange->body += size;
  if (exchange->cut_short)
    return;
  if (!route || !route->body) {
    if (exchange->body > DROPPED_MAX) {
      if (!exchange->answer.status)
        route_too_large(DROPPED_MAX, &exchange->answer);
      refuse(exchange, UINT64_MAX);
    }
    return;
  }
  uint64_t limit = route->body->limit(exchange->request.server);
  if (exchange->body - exchange->paced >= PACE) {
    exchange->paced = exchange->body;
    client_owe(exchange->client, &exchange->client->http->transfers);
  }
  if (exchange->body > limit)
    route_too_large(limit, &exchange->answer);
  else
    route->body->take(&exchange->request, data, size, &exchange->answer);
  if (exchange->answer.status)
    refuse(exchange, UINT64_MAX);
}

static enum MHD_Result end_request(struct exchange *exchange, const char *method,
                                   const char *version) {
  if (exchange->cut_short)
    return MHD_NO;
  if (exchange->answer.status)
    return http_send(exchange);
  if (exchange->route->kind == ROUTE_STREAM)
    return handshake_stream(exchange->client, method, version);
  exchange->route->answer(&exchange->request, &exchange->answer);
  if (!exchange->answer.later)
    return http_send(exchange);
  exchange->answer.later = false;
  exchange_sleep(exchange);
  return MHD_YES;
}

// Called once when the headers are there, once for each piece of a body, once at its end, and again
// after a sleep.
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request) {
  (void)user;
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  struct client *client = info ? info->socket_context : NULL;
  if (!client)
    return MHD_NO;
  if (!client->exchange) {
    *request = client;
    return begin_request(client, method, path);
  }
  if (*upload_size) {
    take_body(client->exchange, upload, *upload_size);
    *upload_size = 0;
    return MHD_YES;
  }
  return end_request(client->exchange, method, version);
}

// Starting and ending ----------------------------------------------------------------------------

static int bind_address(const struct config *config, struct sockaddr_storage *address,
                        struct dsnet_error *error) {
  char service[16];
  snprintf(service, sizeof service, "%lld", config->port);
  const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                 .ai_socktype = SOCK_STREAM};
  struct addrinfo *found = NULL;
  if (getaddrinfo(config->listen, service, &hints, &found))
    return dsnet_error_set(error, DSNET_EVALUE,
                           "--listen: \"%s\" is not a numeric IPv4 or IPv6 address",
                           config->listen);
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  socklen_t length = sizeof *address;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
      bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, SOMAXCONN) ||
      getsockname(fd, (struct sockaddr *)address, &length)) {
    dsnet_error_set(error, DSNET_EIO, "cannot listen on %s port %s: %s", config->listen, service,
                    strerror(errno));
    if (fd >= 0)
      close(fd);
    fd = DSNET_EIO;
  }
  freeaddrinfo(found);
  return fd;
}

static void write_url(struct http *http, const struct sockaddr_storage *address) {
  char host[INET6_ADDRSTRLEN] = "";
  bool six = address->ss_family == AF_INET6;
  const struct sockaddr_in *in4 = (const void *)address;
  const struct sockaddr_in6 *in6 = (const void *)address;
  inet_ntop(address->ss_family, six ? (const void *)&in6->sin6_addr : &in4->sin_addr, host,
            sizeof host);
  snprintf(http->url, sizeof http->url, six ? "http://[%s]:%u" : "http://%s:%u", host,
           ntohs(six ? in6->sin6_port : in4->sin_port));
}

static struct MHD_Daemon *start_daemon(struct http *http, int fd, bool six) {
  unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_UPGRADE | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
  return MHD_start_daemon(
      flags | (six ? MHD_USE_IPv6 : 0), 0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER,
      log_from_library, http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
      config_connections(http->server->config), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
      MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

int http_new(struct http **out, struct server *server, struct dsnet_error *error) {
  *out = NULL;
  struct http *http = calloc(1, sizeof *http);
  if (!http)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  http->server = server;
  owing_init(&http->requests, server->config->handshake_timeout);
  owing_init(&http->transfers, server->config->transfer_timeout);
  struct sockaddr_storage address;
  int fd = bind_address(server->config, &address, error);
  if (fd < 0) {
    free(http);
    return fd;
  }
  write_url(http, &address);
  http->daemon = start_daemon(http, fd, address.ss_family == AF_INET6);
  if (!http->daemon) {
    close(fd);
    free(http);
    return dsnet_error_set(error, DSNET_EIO, "cannot start the HTTP library");
  }
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
  http->poll.data = http->timer.data = http;
  uv_timer_init(&server->loop, &http->timer);
  if (!info || uv_poll_init(&server->loop, &http->poll, info->epoll_fd)) {
    uv_close((uv_handle_t *)&http->timer, NULL);
    uv_run(&server->loop, UV_RUN_NOWAIT);
    http_free(http);
    return dsnet_error_set(error, DSNET_EIO, "cannot poll the HTTP library");
  }
  uv_poll_start(&http->poll, UV_READABLE, on_readable);
  http_run_soon(http);
  *out = http;
  return 0;
}

const char *http_url(const struct http *http) {
  return http->url;
}

size_t http_busy(const struct http *http) {
  return http->exchanges;
}

void http_stop(struct http *http) {
  if (http->stopped)
    return;
  http->stopped = true;
  uv_close((uv_handle_t *)&http->poll, NULL);
  uv_close((uv_handle_t *)&http->timer, NULL);
}

void http_free(struct http *http) {
  if (!http)
    return;
  http->stopped = true;
  // libmicrohttpd aborts the process over a connection that is still suspended.
  while (http->asleep) {
    if (!http->asleep->answer.status)
      http->asleep->cut_short = true; // nobody will answer it any more
    exchange_wake(http->asleep);
  }
  MHD_run(http->daemon); // it has not done with what was upgraded last
  MHD_stop_daemon(http->daemon);
  free(http);
}
