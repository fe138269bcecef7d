// SPDX-License-Identifier: Apache-2.0
// ws-echo [PORT]: dsnetd's WebSocket layer (server/websocket.h) and opening handshake
// (server/upgrade.h) with nothing behind them: every message comes back as it is. Made for
// conformance suites; serves 127.0.0.1, on a free port unless one is given, until it is killed.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "upgrade.h"
#include "websocket.h"

#define MAX_MESSAGE    (16u << 20)
#define MAX_HEAD       8192
#define MAX_QUEUED     32 // messages that wait before nothing more is read
#define READS_PER_TURN 16

struct peer {
  int fd, events;
  int reads_left;
  bool upgraded, sending_ended;
  uv_poll_t poll;
  struct websocket ws;
  size_t head_size, head_read;
  char head[MAX_HEAD + 1]; // the request, and then frames that came with it, up to head_read
};

struct listener {
  int fd;
  uv_poll_t poll;
  struct websocket_spare spare;
};

struct echo {
  struct outgoing outgoing;
  uint8_t bytes[];
};

static void free_peer(uv_handle_t *poll) {
  free(poll->data);
}

static void leave(struct peer *peer) {
  uv_poll_stop(&peer->poll);
  close(peer->fd);
  websocket_deinit(&peer->ws);
  uv_close((uv_handle_t *)&peer->poll, free_peer);
}

// Messages ---------------------------------------------------------------------------------------

static ssize_t read_peer(void *user, uint8_t *bytes, size_t size) {
  struct peer *peer = user;
  size_t early = peer->head_size - peer->head_read;
  if (early) {
    size = size < early ? size : early;
    memcpy(bytes, peer->head + peer->head_read, size);
    peer->head_read += size;
    return (ssize_t)size;
  }
  if (peer->reads_left <= 0)
    return 0;
  ssize_t count = recv(peer->fd, bytes, size, MSG_DONTWAIT);
  if (count < 0)
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
  peer->reads_left = (size_t)count < size ? 0 : peer->reads_left - 1;
  return count > 0 ? count : -1;
}

static void release_echo(struct outgoing *outgoing, void *user) {
  (void)user;
  free((char *)outgoing - offsetof(struct echo, outgoing));
}

static void echo_message(void *user, bool text, const uint8_t *bytes, size_t size) {
  struct peer *peer = user;
  struct echo *echo = malloc(sizeof *echo + WEBSOCKET_HEADER_MAX + size);
  if (!echo) {
    websocket_fail(&peer->ws, WEBSOCKET_INTERNAL, "out of memory");
    return;
  }
  uint8_t *payload = echo->bytes + WEBSOCKET_HEADER_MAX;
  if (size)
    memcpy(payload, bytes, size);
  size_t header =
      text ? websocket_text_header(payload, size) : websocket_binary_header(payload, size);
  echo->outgoing =
      (struct outgoing){.bytes = payload - header, .size = header + size, .release = release_echo};
  websocket_queue(&peer->ws, &echo->outgoing);
  peer->ws.paused = peer->ws.queued >= MAX_QUEUED;
}

static const struct websocket_callbacks callbacks = {.read = read_peer, .message = echo_message};

// The opening handshake --------------------------------------------------------------------------

static void answer_refusal(struct peer *peer, const struct upgrade_answer *answer) {
  char text[512];
  int length = snprintf(text, sizeof text,
                        "HTTP/1.1 %u Refused\r\nConnection: close\r\n%s"
                        "Content-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s",
                        answer->status,
                        answer->status == 426 ? "Upgrade: websocket\r\n"
                                                "Sec-WebSocket-Version: 13\r\n"
                                              : "",
                        strlen(answer->reason), answer->reason);
  send(peer->fd, text, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool answer_upgrade(struct peer *peer, const struct upgrade_answer *answer) {
  char text[256];
  int length = snprintf(text, sizeof text,
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                        "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
                        answer->accept);
  return send(peer->fd, text, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) == length;
}

// Notes a header line, which is cut into pieces.
static void read_header(struct upgrade_request *request, char *line) {
  const char *name = strsep(&line, ":");
  if (!line)
    return;
  line += strspn(line, " \t");
  for (size_t end = strlen(line); end && strchr(" \t", line[end - 1]); end--)
    line[end - 1] = 0;
  upgrade_header(request, name, line);
}

// Decides about the request whose lines stand in `text`, which is cut into pieces.
static void decide(char *text, struct upgrade_answer *answer) {
  // No subprotocol is spoken here, and none is answered.
  struct upgrade_request request = {.protocol_offered = true};
  char *rest = text, *line = strsep(&rest, "\r\n");
  const char *method = strsep(&line, " "), *target = strsep(&line, " "), *version = line;
  while (rest)
    read_header(&request, strsep(&rest, "\r\n"));
  upgrade_decide(&request, method, target && version ? version : "", &(struct option_list){0},
                 answer);
}

// Reads the request, and answers it when it is whole. False when the connection is over.
static bool shake_hands(struct peer *peer) {
  struct upgrade_answer answer = {.status = 431, .reason = "the headers are too long"};
  ssize_t count =
      recv(peer->fd, peer->head + peer->head_size, MAX_HEAD - peer->head_size, MSG_DONTWAIT);
  if (count <= 0)
    return count < 0 && (errno == EAGAIN || errno == EINTR);
  peer->head_size += (size_t)count;
  peer->head[peer->head_size] = 0;
  char *end = strstr(peer->head, "\r\n\r\n");
  if (!end && peer->head_size < MAX_HEAD)
    return true;
  if (end) {
    *end = 0;
    peer->head_read = (size_t)(end + 4 - peer->head);
    decide(peer->head, &answer);
  }
  peer->upgraded = answer.status == 101 && answer_upgrade(peer, &answer);
  if (answer.status != 101)
    answer_refusal(peer, &answer);
  return peer->upgraded;
}

// Progress ---------------------------------------------------------------------------------------

// Writes until the socket takes no more. False when the connection is broken.
static bool write_peer(struct peer *peer) {
  struct iovec vectors[16];
  for (int count; (count = websocket_output(&peer->ws, vectors, 16));) {
    const struct msghdr message = {.msg_iov = vectors, .msg_iovlen = (size_t)count};
    ssize_t written = sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0)
      return errno == EAGAIN || errno == EINTR;
    websocket_written(&peer->ws, (size_t)written);
  }
  return true;
}

// After a close frame that says what was wrong: ends our half and waits for the peer's, since
// closing with bytes unread would reset the connection and take that frame with it.
static bool linger(struct peer *peer) {
  if (!peer->sending_ended)
    shutdown(peer->fd, SHUT_WR);
  peer->sending_ended = true;
  char unread[4096];
  ssize_t count;
  while ((count = recv(peer->fd, unread, sizeof unread, MSG_DONTWAIT)) > 0)
    ;
  return count < 0 && (errno == EAGAIN || errno == EINTR);
}

// Reads, echoes and closes as far as the socket allows. False when the connection is over.
static bool advance(struct peer *peer) {
  struct websocket *ws = &peer->ws;
  bool more;
  do {
    websocket_receive(ws);
    if (ws->close_received)
      websocket_close(ws, ws->close_received, "");
    else if (ws->violation)
      websocket_close(ws, ws->violation, ws->violated);
    if (!write_peer(peer))
      return false;
    more = ws->paused && ws->queued < MAX_QUEUED;
    ws->paused = ws->queued >= MAX_QUEUED;
  } while (more);
  if (ws->close_sent && (ws->failed || ws->violation))
    return linger(peer);
  return !ws->ended && !(ws->close_sent && ws->close_received);
}

static int events_wanted(struct peer *peer) {
  struct iovec vector;
  int events = websocket_output(&peer->ws, &vector, 1) ? UV_WRITABLE : 0;
  bool reading = !peer->ws.paused && (!peer->ws.stopped || peer->ws.close_sent);
  return events | (reading ? UV_READABLE : 0);
}

static void on_peer(uv_poll_t *poll, int status, int events) {
  (void)events;
  struct peer *peer = poll->data;
  peer->reads_left = READS_PER_TURN;
  bool alive = status >= 0 && (peer->upgraded || shake_hands(peer));
  if (alive && peer->upgraded)
    alive = advance(peer);
  if (!alive)
    leave(peer);
  else if ((events = events_wanted(peer)) != peer->events)
    uv_poll_start(poll, peer->events = events, on_peer);
}

static void on_listener(uv_poll_t *poll, int status, int events) {
  (void)status, (void)events;
  struct listener *listener = poll->data;
  int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  struct peer *peer = fd >= 0 ? calloc(1, sizeof *peer) : NULL;
  if (!peer) {
    if (fd >= 0)
      close(fd);
    return;
  }
  websocket_init(&peer->ws, MAX_MESSAGE, &listener->spare, &callbacks, peer);
  peer->fd = fd;
  peer->poll.data = peer;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  uv_poll_init(poll->loop, &peer->poll, fd);
  uv_poll_start(&peer->poll, peer->events = UV_READABLE, on_peer);
}

int main(int argc, char **argv) {
  struct listener listener = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 0)};
  socklen_t size = sizeof address;
  uv_loop_t *loop = uv_default_loop();
  listener.poll.data = &listener;
  if (listener.fd < 0 ||
      setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
      bind(listener.fd, (struct sockaddr *)&address, size) || listen(listener.fd, SOMAXCONN) ||
      getsockname(listener.fd, (struct sockaddr *)&address, &size) || !loop ||
      uv_poll_init(loop, &listener.poll, listener.fd) ||
      uv_poll_start(&listener.poll, UV_READABLE, on_listener)) {
    perror("ws-echo");
    return 1;
  }
  printf("ws://127.0.0.1:%u\n", ntohs(address.sin_port));
  fflush(stdout);
  return uv_run(loop, UV_RUN_DEFAULT);
}
