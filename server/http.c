// SPDX-License-Identifier: Apache-2.0
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "routes.h"
#include "server.h"
#include "upgrade.h"
#include "wire/message.h"

// Memory of one connection's request and answer headers. It stays allocated through a session, so
// it is no larger than a browser's headers with some cookies need.
#define CONNECTION_MEMORY 6144
// Bytes of a request body that are read before the answer; nothing takes a body yet, but an answer
// given before it was read would be lost with the connection.
#define BODY_MAX (1 << 20)

// One TCP connection as long as libmicrohttpd has it.
struct client {
  struct http *http;
  struct MHD_Connection *connection;
  struct client *next, **link; // in http->first, those that owe a request, oldest deadline first
  uint64_t deadline;           // loop time, ms
  uint64_t body;               // bytes of the current request's body so far
  bool in_request;             // its headers were read
  bool upgrading;              // counted in server->upgrading
};

struct http {
  struct server *server;
  struct MHD_Daemon *daemon;
  uv_poll_t poll;
  uv_timer_t timer;
  bool stopped;
  bool again; // another run is needed, whatever MHD_get_timeout says
  struct client *first, **end;
  char url[INET6_ADDRSTRLEN + 32];
};

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

// Time-outs of requests --------------------------------------------------------------------------
// libmicrohttpd's own time-out starts anew with every byte, so a client that trickles would stay.

static void owe_request(struct client *client) {
  struct http *http = client->http;
  double seconds = http->server->config->handshake_timeout;
  client->deadline = uv_now(&http->server->loop) + (uint64_t)(seconds * 1000);
  client->next = NULL;
  client->link = http->end;
  *http->end = client;
  http->end = &client->next;
}

static void owe_nothing(struct client *client) {
  if (!client->link)
    return;
  *client->link = client->next;
  if (client->next)
    client->next->link = client->link;
  else
    client->http->end = client->link;
  client->link = NULL;
}

void http_sweep(struct http *http) {
  uint64_t now = uv_now(&http->server->loop);
  while (http->first && http->first->deadline <= now) {
    struct client *client = http->first;
    owe_nothing(client);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    // libmicrohttpd sees the end of the stream and cleans up.
    if (info)
      shutdown(info->connect_fd, SHUT_RDWR);
    log_client_event(&http->server->log_limit, now, LOG_LEVEL_INFO, "request_timeout", NULL,
                     "a connection was cut that had not sent its request in time");
  }
}

static void end_upgrading(struct client *client) {
  if (client->upgrading)
    client->http->server->upgrading--;
  client->upgrading = false;
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
    owe_request(client);
    return;
  }
  // At its connection limit libmicrohttpd stops listening. It cleans up at the end of a run and
  // listens again at the beginning of the next, which nothing else would bring about.
  http_run_soon(user);
  if (client) {
    owe_nothing(client);
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
  client->in_request = false;
  client->body = 0;
  owe_nothing(client);
  owe_request(client); // a kept connection owes its next request
}

// Answers ----------------------------------------------------------------------------------------

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct answer *answer) {
  struct MHD_Response *response =
      MHD_create_response_from_buffer(answer->size, answer->body, MHD_RESPMEM_MUST_COPY);
  unsigned status = answer->status;
  enum MHD_Result result = MHD_NO;
  if (response) {
    if (answer->body)
      MHD_add_response_header(response, "Content-Type", answer->type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    for (size_t i = 0; i < answer->header_count; i++)
      MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value);
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
  }
  answer_deinit(answer);
  return result;
}

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

static void on_upgraded(void *user, struct MHD_Connection *connection, void *request,
                        const char *extra, size_t extra_size, MHD_socket fd,
                        struct MHD_UpgradeResponseHandle *handle) {
  struct http *http = user;
  struct client *client = request;
  struct server *server = http->server;
  end_upgrading(client);
  owe_nothing(client);
  struct stream_peer peer = peer_of(connection);
  workers_give(server->workers, fd, &peer, handle, extra, extra_size);
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

static enum MHD_Result answer_stream(struct client *client, const char *method,
                                     const char *version) {
  struct server *server = client->http->server;
  struct upgrade_request request = {0};
  struct upgrade_answer decision;
  struct answer answer = {0};
  MHD_get_connection_values(client->connection, MHD_HEADER_KIND, note_header, &request);
  upgrade_decide(&request, method, version, &server->config->allowed_origins, &decision);
  struct stream_peer peer = peer_of(client->connection);
  enum refusal refusal = decision.status == 101 ? server_refusal(server, &peer) : REFUSAL_HANDSHAKE;
  if (refusal == REFUSAL_NONE)
    return accept_stream(client, decision.accept);
  server->metrics.refused[refusal]++;
  if (refusal != REFUSAL_HANDSHAKE) {
    answer_problem(&answer, 503, refusal_text(refusal));
    answer_header(&answer, "Retry-After", RETRY_AFTER);
  } else {
    answer_problem(&answer, decision.status, decision.reason);
    if (decision.status == 405)
      answer_header(&answer, "Allow", "GET");
    if (decision.status == 426) {
      answer_header(&answer, "Upgrade", "websocket");
      answer_header(&answer, "Sec-WebSocket-Version", "13");
    }
  }
  log_client_event(&server->log_limit, uv_now(&server->loop), LOG_LEVEL_INFO, "stream_refused",
                   NULL, "%s",
                   refusal == REFUSAL_HANDSHAKE ? decision.reason : refusal_text(refusal));
  return send_answer(client->connection, &answer);
}

static enum MHD_Result answer_request(struct client *client, const char *method, const char *path,
                                      const char *version) {
  const char *parameter;
  const struct route *route = route_find(path, &parameter);
  struct answer answer = {0};
  client->http->server->metrics.requests++;
  if (client->body > BODY_MAX)
    answer_problem(&answer, 413, "no address takes a body of this size");
  else if (route && route->kind == ROUTE_STREAM)
    return answer_stream(client, method, version);
  else
    route_answer(client->http->server, method, path,
                 MHD_lookup_connection_value(client->connection, MHD_HEADER_KIND, "Authorization"),
                 &answer);
  return send_answer(client->connection, &answer);
}

// Called once when the headers are there, once for each piece of a body, and once at its end.
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request) {
  (void)user;
  (void)upload;
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  struct client *client = info ? info->socket_context : NULL;
  if (!client)
    return MHD_NO;
  if (!client->in_request) {
    client->in_request = true;
    *request = client;
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    if (length && strtoull(length, NULL, 10) > BODY_MAX) {
      client->body = BODY_MAX + 1; // refused before it is sent; this closes the connection
      return answer_request(client, method, path, version);
    }
    return MHD_YES;
  }
  if (*upload_size) {
    client->body += *upload_size;
    *upload_size = 0;
    return MHD_YES;
  }
  return answer_request(client, method, path, version);
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
  unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG;
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
  http->end = &http->first;
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
  MHD_run(http->daemon); // closes the sockets that streams have given back
  MHD_stop_daemon(http->daemon);
  free(http);
}
