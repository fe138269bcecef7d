// SPDX-License-Identifier: Apache-2.0
#include "stream/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

// Room for some results on their way. What the kernel begins with holds one or two, and over the
// loopback, whose segments are as large, a receiver that has fallen behind by a few frames
// announces room so seldom (RFC 9293, 3.8.6.2.2) that it never catches up.
#define RECEIVE_BUFFER (1 << 20)

static void on_poll(uv_poll_t *poll, int status, int events);

static void on_closed(uv_handle_t *poll) {
  struct link *link = poll->data;
  link->callbacks->closed(link->owner);
}

// Watches for input, and for room while something waits to be sent.
static void arm(struct link *link) {
  bool waits = !link->connected || !outbox_is_empty(&link->outbox);
  int events = UV_READABLE | (waits ? UV_WRITABLE : 0);
  if (events == link->armed)
    return;
  link->armed = events;
  uv_poll_start(&link->poll, events, on_poll); // fails only for another handle's descriptor
}

static int pending_error(const struct link *link) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
    error = errno;
  return uv_translate_sys_error(error);
}

static void finish_connecting(struct link *link) {
  int status = pending_error(link);
  if (status < 0) {
    link->callbacks->failed(link->owner, status);
    return;
  }
  link->connected = true;
  arm(link);
  link->callbacks->connected(link->owner);
}

static void send_waiting(struct link *link) {
  int status = link_flush(link);
  if (status < 0)
    link->callbacks->failed(link->owner, status);
  else if (outbox_is_empty(&link->outbox))
    link->callbacks->drained(link->owner);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
  struct link *link = poll->data;
  if (!link->connected) {
    finish_connecting(link);
    return;
  }
  // With an error, too: what came before it is read first.
  if (status < 0 || events & UV_READABLE)
    link->callbacks->readable(link->owner);
  if (!link->closing && status < 0) {
    int error = pending_error(link);
    link->callbacks->failed(link->owner, error ? error : status);
  } else if (!link->closing && events & UV_WRITABLE) {
    send_waiting(link);
  }
}

int link_open(struct link *link, uv_loop_t *loop, const struct sockaddr *address) {
  socklen_t size =
      address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  link->outbox.used = 0;
  link->connected = link->closing = false;
  link->armed = 0;
  link->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (link->fd < 0)
    return uv_translate_sys_error(errno);
  // Latency counts, not the number of packets; a failure costs only speed.
  setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  setsockopt(link->fd, SOL_SOCKET, SO_RCVBUF, &(int){RECEIVE_BUFFER}, sizeof(int));
  int status = 0;
  if (connect(link->fd, address, size) != 0 && errno != EINPROGRESS)
    status = uv_translate_sys_error(errno);
  if (status == 0)
    status = uv_poll_init(loop, &link->poll, link->fd);
  if (status < 0) {
    close(link->fd);
    link->fd = -1;
    return status;
  }
  link->poll.data = link;
  arm(link);
  return 0;
}

// The answer of recv in this file's terms.
static ssize_t received(ssize_t count) {
  if (count > 0)
    return count;
  if (count == 0)
    return UV_EOF;
  return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : uv_translate_sys_error(errno);
}

static ssize_t receive(struct link *link, void *bytes, size_t size, int flags) {
  ssize_t count;
  do
    count = recv(link->fd, bytes, size, flags | MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  return received(count);
}

ssize_t link_read(struct link *link, void *bytes, size_t size) {
  return receive(link, bytes, size, 0);
}

ssize_t link_discard(struct link *link, void *scratch, size_t size) {
  return receive(link, scratch, size, MSG_TRUNC);
}

int link_flush(struct link *link) {
  ssize_t sent = link->connected ? outbox_flush(&link->outbox, link->fd) : 0;
  if (sent < 0)
    return uv_translate_sys_error((int)-sent);
  arm(link);
  return 0;
}

void link_close(struct link *link) {
  if (link->closing)
    return;
  link->closing = true;
  uv_close((uv_handle_t *)&link->poll, on_closed); // no longer watches the descriptor
  close(link->fd);
  link->fd = -1;
}
