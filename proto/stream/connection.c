// SPDX-License-Identifier: Apache-2.0
#include "stream/connection.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "stream/upgrade.h"

// Read ahead of a payload that will be skipped: a few text messages or headers, hardly a payload.
#define GLANCE_SIZE 512

// Leaving ----------------------------------------------------------------------------------------

void connection_abort(struct connection *connection, uint16_t code) {
  if (connection->state == CONNECTION_CLOSED)
    return;
  if (connection->state == CONNECTION_OPEN && code) {
    const uint8_t payload[2] = {(uint8_t)(code >> 8), (uint8_t)code};
    connection_send(connection, WEBSOCKET_CLOSE, payload, code == 1005 ? 0 : 2);
    link_flush(&connection->link); // as far as it goes
  }
  connection->state = CONNECTION_CLOSED;
  link_close(&connection->link);
}

// Tells the owner of the loss and closes with `code`.
__attribute__((format(printf, 4, 5))) static void lose(struct connection *connection,
                                                       struct connection_loss loss, uint16_t code,
                                                       const char *format, ...) {
  if (connection->state == CONNECTION_CLOSED)
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(loss.text, sizeof loss.text, format, arguments);
  va_end(arguments);
  connection_abort(connection, code);
  connection->callbacks->lost(connection->owner, &loss);
}

void connection_finish(struct connection *connection) {
  static const uint8_t normal[2] = {1000 >> 8, 1000 & 0xff};
  connection_send(connection, WEBSOCKET_CLOSE, normal, sizeof normal);
  connection_flush(connection);
  if (connection->state == CONNECTION_OPEN)
    connection->state = CONNECTION_CLOSING;
}

// The end of the connection as the network tells it. While closing it is what was asked for.
static void end(struct connection *connection, const char *how) {
  const struct connection_loss loss = {.outcome = STREAM_CLOSED, .passing = true};
  if (connection->state == CONNECTION_CLOSING)
    connection_abort(connection, 0);
  else if (connection->state == CONNECTION_UPGRADING)
    lose(connection, loss, 0, "the connection was lost in the handshake: %s", how);
  else
    lose(connection, loss, 0, "the connection was lost without a close frame: %s", how);
}

// Sending ----------------------------------------------------------------------------------------

bool connection_has_room(const struct connection *connection, size_t size) {
  return outbox_has_room(&connection->link.outbox, WEBSOCKET_BINARY, size);
}

bool connection_send(struct connection *connection, enum websocket_opcode opcode, const void *bytes,
                     size_t size) {
  if (!outbox_put_frame(&connection->link.outbox, &connection->shared->masks, opcode, bytes, size))
    return false;
  connection->shared->bytes_sent += size;
  return true;
}

void connection_flush(struct connection *connection) {
  int status = link_flush(&connection->link);
  if (status < 0)
    end(connection, uv_strerror(status));
}

// Messages ---------------------------------------------------------------------------------------

// Whether a close that the server began may be followed by a better try: it went away, restarts, is
// overloaded or failed. The other codes of RFC 6455 say that this client is not wanted as it is.
static bool is_passing(uint16_t code) {
  return code == 1000 || code == 1001 || code == 1005 || (code >= 1011 && code <= 1014);
}

static void take_close(struct connection *connection, const struct websocket_event *event) {
  uint16_t code = websocket_close_code(event->bytes, event->size);
  if (connection->state == CONNECTION_CLOSING) {
    connection_abort(connection, 0);
    return;
  }
  if (!code) {
    lose(connection, (struct connection_loss){.outcome = STREAM_PROTOCOL}, 1002,
         "the server's close frame is malformed");
    return;
  }
  int length = event->size < 2 ? 0 : (int)event->size - 2;
  const char *text = websocket_close_text(code);
  lose(connection, (struct connection_loss){.outcome = STREAM_CLOSED, .passing = is_passing(code)},
       code, "the server closed the stream with %u%s%s%s%s%.*s", code, *text ? " (" : "", text,
       *text ? ")" : "", length ? ": " : "", length, length ? (const char *)event->bytes + 2 : "");
}

static void take_control(struct connection *connection, const struct websocket_event *event) {
  if (event->opcode == WEBSOCKET_CLOSE)
    take_close(connection, event);
  // Without room a ping is dropped: section 5.5.3 lets the next pong answer for it.
  else if (event->opcode == WEBSOCKET_PING && connection->state == CONNECTION_OPEN &&
           connection_send(connection, WEBSOCKET_PONG, event->bytes, event->size))
    connection_flush(connection);
}

// Puts a text message together. The parser has bounded its size, but by that of a result.
static void take_text(struct connection *connection, const struct websocket_event *event) {
  if (event->size > sizeof connection->gathered - connection->gathered_size) {
    lose(connection, (struct connection_loss){.outcome = STREAM_PROTOCOL}, 1009,
         "the server's text message is over %d bytes", MESSAGE_SIZE_MAX);
    return;
  }
  memcpy(connection->gathered + connection->gathered_size, event->bytes, event->size);
  size_t size = connection->gathered_size += event->size;
  if (!event->end)
    return;
  connection->gathered_size = 0;
  connection->callbacks->text(connection->owner, (const char *)connection->gathered, size);
}

static void take_binary(struct connection *connection, const struct websocket_event *event) {
  const uint8_t *bytes = connection->skipping ? NULL : event->bytes;
  connection->callbacks->binary(connection->owner, bytes, event->size, event->end);
  if (event->end) // only now: a message in one piece may have been skipped by that call
    connection->skipping = false;
}

static void take_event(struct connection *connection, const struct websocket_event *event) {
  if (event->type == WEBSOCKET_EVENT_BAD && connection->state == CONNECTION_CLOSING)
    connection_abort(connection, 0);
  else if (event->type == WEBSOCKET_EVENT_BAD)
    lose(connection, (struct connection_loss){.outcome = STREAM_PROTOCOL}, event->close_code,
         "the server broke RFC 6455: %s", event->text);
  else if (event->type == WEBSOCKET_EVENT_CONTROL)
    take_control(connection, event);
  else if (event->type == WEBSOCKET_EVENT_DATA && connection->state == CONNECTION_OPEN) {
    if (event->opcode == WEBSOCKET_TEXT)
      take_text(connection, event);
    else
      take_binary(connection, event);
  }
}

static void take_frames(struct connection *connection, const uint8_t *bytes, size_t size) {
  while (size && connection->state != CONNECTION_CLOSED) {
    struct websocket_event event;
    connection->websocket.message_max = connection->message_max;
    size_t used = websocket_read(&connection->websocket, bytes, size, &event);
    take_event(connection, &event);
    bytes += used;
    size -= used;
  }
}

void connection_skip(struct connection *connection) {
  connection->skipping = true;
}

// Handshake --------------------------------------------------------------------------------------

static bool is_passing_status(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

static void take_handshake(struct connection *connection, const uint8_t *bytes, size_t size) {
  size_t before = connection->gathered_size;
  size_t room = sizeof connection->gathered - before;
  memcpy(connection->gathered + before, bytes, room < size ? room : size);
  connection->gathered_size += room < size ? room : size;
  struct upgrade_response response;
  switch (upgrade_response_read((const char *)connection->gathered, connection->gathered_size,
                                connection->key, &response)) {
  case UPGRADE_MORE:
    break;
  case UPGRADE_REFUSED:
    lose(connection,
         (struct connection_loss){.outcome = STREAM_REFUSED,
                                  .passing = is_passing_status(response.status),
                                  .retry_after = response.retry_after},
         0, "%s", response.text);
    break;
  case UPGRADE_BAD:
    lose(connection, (struct connection_loss){.outcome = STREAM_HANDSHAKE}, 0, "%s", response.text);
    break;
  case UPGRADE_DONE:
    connection->gathered_size = 0;
    connection->state = CONNECTION_OPEN;
    connection->callbacks->open(connection->owner);
    size_t used = response.head_size - before;
    take_frames(connection, bytes + used, size - used);
    break;
  }
}

// The link ---------------------------------------------------------------------------------------

static void on_connected(void *owner) {
  struct connection *connection = owner;
  const struct connection_shared *shared = connection->shared;
  uint8_t nonce[16];
  randombytes_buf(nonce, sizeof nonce);
  handshake_key(nonce, connection->key);
  char request[OUTBOX_SIZE];
  size_t length = upgrade_request_write(request, sizeof request, connection->server->url,
                                        connection->key, shared->token);
  connection->state = CONNECTION_UPGRADING;
  if (length == 0 || !outbox_put_bytes(&connection->link.outbox, request, length))
    lose(connection, (struct connection_loss){.outcome = STREAM_INTERNAL}, 0,
         "the handshake is too long");
  else
    connection_flush(connection);
}

static void take_bytes(struct connection *connection, const uint8_t *bytes, size_t size) {
  if (connection->state == CONNECTION_UPGRADING)
    take_handshake(connection, bytes, size);
  else
    take_frames(connection, bytes, size);
}

// Lets the kernel drop what is left of a payload that is not wanted.
static void discard(struct connection *connection) {
  struct connection_shared *shared = connection->shared;
  uint64_t left = websocket_payload_left(&connection->websocket);
  size_t most = left < CONNECTION_RECEIVE_SIZE ? (size_t)left : CONNECTION_RECEIVE_SIZE;
  ssize_t size = link_discard(&connection->link, shared->receive, most);
  if (size < 0) {
    end(connection, size == UV_EOF ? "it ended" : uv_strerror((int)size));
    return;
  }
  if (size == 0)
    return;
  shared->bytes_received += (uint64_t)size;
  struct websocket_event event;
  websocket_pass(&connection->websocket, (size_t)size, &event);
  take_event(connection, &event);
}

static bool may_discard(const struct connection *connection) {
  return connection->state == CONNECTION_OPEN && connection->skipping &&
         websocket_payload_left(&connection->websocket) > 0;
}

// One read a turn, so that one busy connection does not hold up the others; the poll is
// level-triggered and comes back for more.
static void on_readable(void *owner) {
  struct connection *connection = owner;
  struct connection_shared *shared = connection->shared;
  if (may_discard(connection)) {
    discard(connection);
    return;
  }
  size_t most = connection->discards ? GLANCE_SIZE : CONNECTION_RECEIVE_SIZE;
  ssize_t size = link_read(&connection->link, shared->receive, most);
  if (size < 0) {
    end(connection, size == UV_EOF ? "it ended" : uv_strerror((int)size));
    return;
  }
  shared->bytes_received += (uint64_t)size;
  take_bytes(connection, shared->receive, (size_t)size);
  if (may_discard(connection))
    discard(connection);
}

static void on_drained(void *owner) {
  struct connection *connection = owner;
  if (connection->state == CONNECTION_OPEN)
    connection->callbacks->room(connection->owner);
}

static void on_failed(void *owner, int status) {
  struct connection *connection = owner;
  if (connection->state != CONNECTION_CONNECTING)
    end(connection, uv_strerror(status));
  else if (connection->address + 1 < connection->server->address_count)
    link_close(&connection->link); // on_closed tries the next one
  else
    lose(connection, (struct connection_loss){.outcome = STREAM_CONNECT, .passing = true}, 0,
         "cannot connect to %s: %s", connection->server->url->authority, uv_strerror(status));
}

static bool open_link(struct connection *connection);

static void on_closed(void *owner) {
  struct connection *connection = owner;
  if (connection->state == CONNECTION_CONNECTING) { // this address failed, there is another
    connection->address++;
    if (open_link(connection))
      return;
  }
  connection->callbacks->closed(connection->owner);
}

// Connects to the first address, from the current one on, that does not fail at once.
static bool open_link(struct connection *connection) {
  const struct server *server = connection->server;
  int status;
  for (;; connection->address++) {
    const struct sockaddr *address = (struct sockaddr *)&server->addresses[connection->address];
    status = link_open(&connection->link, connection->shared->loop, address);
    if (status == 0)
      return true;
    if (connection->address + 1 >= server->address_count) // they may have become fewer meanwhile
      break;
  }
  struct connection_loss loss = {.outcome = STREAM_CONNECT, .passing = true};
  snprintf(loss.text, sizeof loss.text, "cannot connect to %s: %s", server->url->authority,
           uv_strerror(status));
  connection->state = CONNECTION_CLOSED;
  connection->callbacks->lost(connection->owner, &loss);
  return false;
}

static const struct link_callbacks link_callbacks = {
    .connected = on_connected,
    .readable = on_readable,
    .drained = on_drained,
    .failed = on_failed,
    .closed = on_closed,
};

bool connection_start(struct connection *connection, const struct server *server) {
  connection->server = server;
  connection->address = 0;
  connection->state = CONNECTION_CONNECTING;
  connection->message_max = MESSAGE_SIZE_MAX;
  connection->skipping = connection->discards = false;
  connection->gathered_size = 0;
  connection->websocket = (struct websocket){0};
  connection->link.callbacks = &link_callbacks;
  connection->link.owner = connection;
  return open_link(connection);
}
