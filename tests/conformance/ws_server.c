// SPDX-License-Identifier: Apache-2.0
#include "ws_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "upgrade.h"
#include "websocket.h"

#define MAX_HEAD       8192
#define READS_PER_TURN 16

// A thread with a loop, which gets the sockets of new peers through a pipe.
struct ws_thread {
  const struct ws_server_settings *settings;
  int pipe[2];
  uv_loop_t loop;
  uv_poll_t poll; // of the pipe
  struct websocket_spare spare;
  pthread_t id;
};

struct ws_peer {
  struct ws_thread *thread;
  uintptr_t word;
  int fd, events;
  int reads_left;
  bool upgraded, sending_ended;
  uv_poll_t poll;
  struct websocket ws;
  size_t head_size, head_read;
  char head[MAX_HEAD + 1]; // the request, and then frames that came with it, up to head_read
};

struct websocket *ws_peer_socket(struct ws_peer *peer) {
  return &peer->ws;
}

uintptr_t *ws_peer_word(struct ws_peer *peer) {
  return &peer->word;
}

static void free_peer(uv_handle_t *poll) {
  free(poll->data);
}

static void leave(struct ws_peer *peer) {
  uv_poll_stop(&peer->poll);
  close(peer->fd);
  websocket_deinit(&peer->ws);
  uv_close((uv_handle_t *)&peer->poll, free_peer);
}

// Messages ---------------------------------------------------------------------------------------

static ssize_t read_peer(void *user, uint8_t *bytes, size_t size) {
  struct ws_peer *peer = user;
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

static bool is_full(const struct ws_peer *peer) {
  return peer->ws.queued >= peer->thread->settings->max_queued;
}

static void on_message(void *user, bool text, const uint8_t *bytes, size_t size) {
  struct ws_peer *peer = user;
  peer->thread->settings->message(peer, text, bytes, size);
  peer->ws.paused = is_full(peer);
}

static const struct websocket_callbacks callbacks = {.read = read_peer, .message = on_message};

// The opening handshake --------------------------------------------------------------------------

static void answer_refusal(struct ws_peer *peer, const struct upgrade_answer *answer) {
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

static bool answer_upgrade(struct ws_peer *peer, const struct upgrade_answer *answer) {
  char text[512];
  const char *protocol = peer->thread->settings->subprotocol;
  int length = snprintf(text, sizeof text,
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                        "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n%s%s%s\r\n",
                        answer->accept, protocol ? "Sec-WebSocket-Protocol: " : "",
                        protocol ? protocol : "", protocol ? "\r\n" : "");
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

// Decides about the request whose lines stand in `text`, which is cut into pieces. A subprotocol
// has to be offered where one is spoken.
static void decide(char *text, bool subprotocol, struct upgrade_answer *answer) {
  struct upgrade_request request = {.protocol_offered = !subprotocol};
  char *rest = text, *line = strsep(&rest, "\r\n");
  const char *method = strsep(&line, " "), *target = strsep(&line, " "), *version = line;
  while (rest)
    read_header(&request, strsep(&rest, "\r\n"));
  upgrade_decide(&request, method, target && version ? version : "", &(struct option_list){0},
                 answer);
}

// Reads the request, and answers it when it is whole. False when the connection is over.
static bool shake_hands(struct ws_peer *peer) {
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
    decide(peer->head, peer->thread->settings->subprotocol, &answer);
  }
  peer->upgraded = answer.status == 101 && answer_upgrade(peer, &answer);
  if (answer.status != 101)
    answer_refusal(peer, &answer);
  return peer->upgraded;
}

// Progress ---------------------------------------------------------------------------------------

// Writes until the socket takes no more. False when the connection is broken.
static bool write_peer(struct ws_peer *peer) {
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
static bool linger(struct ws_peer *peer) {
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
static bool advance(struct ws_peer *peer) {
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
    more = ws->paused && !is_full(peer);
    ws->paused = is_full(peer);
  } while (more);
  if (ws->close_sent && (ws->failed || ws->violation))
    return linger(peer);
  return !ws->ended && !(ws->close_sent && ws->close_received);
}

static int events_wanted(struct ws_peer *peer) {
  struct iovec vector;
  int events = websocket_output(&peer->ws, &vector, 1) ? UV_WRITABLE : 0;
  bool reading = !peer->ws.paused && (!peer->ws.stopped || peer->ws.close_sent);
  return events | (reading ? UV_READABLE : 0);
}

static void on_peer(uv_poll_t *poll, int status, int events) {
  (void)events;
  struct ws_peer *peer = poll->data;
  peer->reads_left = READS_PER_TURN;
  bool alive = status >= 0 && (peer->upgraded || shake_hands(peer));
  if (alive && peer->upgraded)
    alive = advance(peer);
  if (!alive)
    leave(peer);
  else if ((events = events_wanted(peer)) != peer->events)
    uv_poll_start(poll, peer->events = events, on_peer);
}

static void start_peer(struct ws_thread *thread, int fd) {
  struct ws_peer *peer = calloc(1, sizeof *peer);
  if (!peer || uv_poll_init(&thread->loop, &peer->poll, fd)) {
    free(peer);
    close(fd);
    return;
  }
  websocket_init(&peer->ws, thread->settings->max_message, &thread->spare, &callbacks, peer);
  peer->thread = thread;
  peer->fd = fd;
  peer->poll.data = peer;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  if (thread->settings->send_buffer)
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &thread->settings->send_buffer, sizeof(int));
  uv_poll_start(&peer->poll, peer->events = UV_READABLE, on_peer);
}

// Threads ----------------------------------------------------------------------------------------

static void on_pipe(uv_poll_t *poll, int status, int events) {
  (void)status, (void)events;
  struct ws_thread *thread = poll->data;
  int fd;
  if (read(thread->pipe[0], &fd, sizeof fd) == sizeof fd)
    start_peer(thread, fd);
}

static void *run_thread(void *user) {
  struct ws_thread *thread = user;
  uv_run(&thread->loop, UV_RUN_DEFAULT);
  return NULL;
}

static bool start_thread(struct ws_thread *thread, const struct ws_server_settings *settings) {
  thread->settings = settings;
  thread->poll.data = thread;
  return !pipe(thread->pipe) && !uv_loop_init(&thread->loop) &&
         !uv_poll_init(&thread->loop, &thread->poll, thread->pipe[0]) &&
         !uv_poll_start(&thread->poll, UV_READABLE, on_pipe) &&
         !pthread_create(&thread->id, NULL, run_thread, thread);
}

static int listen_on(uint16_t port) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
      bind(fd, (struct sockaddr *)&address, size) || listen(fd, SOMAXCONN) ||
      getsockname(fd, (struct sockaddr *)&address, &size))
    return -1;
  printf("ws://127.0.0.1:%u\n", ntohs(address.sin_port));
  fflush(stdout);
  return fd;
}

int ws_server_run(const struct ws_server_settings *settings, uint16_t port) {
  struct ws_thread *threads = calloc(settings->threads, sizeof *threads);
  bool ready = threads != NULL;
  for (unsigned i = 0; i < settings->threads && ready; i++)
    ready = start_thread(&threads[i], settings);
  int listener = ready ? listen_on(port) : -1;
  if (listener < 0) {
    perror(settings->name);
    return 1;
  }
  for (unsigned turn = 0;; turn++) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && write(threads[turn % settings->threads].pipe[1], &fd, sizeof fd) != sizeof fd)
      close(fd);
  }
}
