// SPDX-License-Identifier: Apache-2.0
// The life of a connection. A session ends exactly once, in on_closed; all roads there go through
// session_finish or session_fail.
#include "stream/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "stream/upgrade.h"

#define CLOSE_PATIENCE 2000000000ull // ns for the server's half of the closing handshake

static void connect_next(struct session *session);

static void on_closed(uv_handle_t *handle) {
  struct session *session = handle->data;
  if (session->state == SESSION_CONNECTING) { // this address failed, there is another
    connect_next(session);
    return;
  }
  session->state = SESSION_DONE;
  transfer_deinit(session);
  stream_session_done(session->stream, session);
}

static void close_socket(struct session *session) {
  if (!uv_is_closing((uv_handle_t *)&session->tcp))
    uv_close((uv_handle_t *)&session->tcp, on_closed);
}

static void put_close(struct session *session, uint16_t code) {
  uint8_t payload[2] = {(uint8_t)(code >> 8), (uint8_t)code};
  outbox_put_frame(&session->outbox, WEBSOCKET_CLOSE, payload, code == 1005 ? 0 : 2);
  outbox_flush(&session->outbox); // an error shows when the socket is read or closed
}

void session_fail(struct session *session, enum stream_outcome outcome, uint16_t close_code,
                  const char *format, ...) {
  if (session->state >= SESSION_CLOSING)
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(session->failure, sizeof session->failure, format, arguments);
  va_end(arguments);
  session->outcome = outcome;
  bool framed = session->state == SESSION_OPENING || session->state == SESSION_STREAMING;
  session->state = SESSION_CLOSING;
  if (framed && close_code)
    put_close(session, close_code);
  close_socket(session);
}

void session_finish(struct session *session) {
  session->state = SESSION_CLOSING;
  session->last_progress = uv_hrtime();
  put_close(session, 1000);
}

static void on_drained(void *owner, int status) {
  struct session *session = owner;
  if (status < 0)
    session_fail(session, STREAM_CLOSED, 0, "sending failed: %s", uv_strerror(status));
  else if (session->state == SESSION_STREAMING)
    transfer_send(session, uv_hrtime());
}

static void flush(struct session *session) {
  int status = outbox_flush(&session->outbox);
  if (status < 0)
    session_fail(session, STREAM_CLOSED, 0, "sending failed: %s", uv_strerror(status));
}

static void send_open(struct session *session) {
  const struct stream_options *options = session->stream->options;
  struct message message = {.type = MESSAGE_OPEN};
  message_open_init(&message.open);
  snprintf(message.open.model, sizeof message.open.model, "%s", options->model);
  memcpy(message.open.betas, session->clip->betas, sizeof message.open.betas);
  message.open.fps = STREAM_FPS;
  char text[4096];
  size_t length = message_write(&message, text, sizeof text);
  session->state = SESSION_OPENING;
  session->last_progress = uv_hrtime();
  session->websocket.message_max = MESSAGE_SIZE_MAX;
  if (length == 0 ||
      !outbox_put_frame(&session->outbox, WEBSOCKET_TEXT, (const uint8_t *)text, length))
    session_fail(session, STREAM_INTERNAL, 1001, "the open message could not be written");
  else
    flush(session);
}

static void take_opened(struct session *session, const struct message_opened *opened,
                        uint64_t now) {
  if (session->state != SESSION_OPENING) {
    session_fail(session, STREAM_PROTOCOL, 1002, "the server sent \"opened\" twice");
    return;
  }
  if (opened->fps != STREAM_FPS) {
    session_fail(session, STREAM_PROTOCOL, 1002, "the server answers at %g Hz, %d was asked for",
                 opened->fps, STREAM_FPS);
    return;
  }
  session->opened = *opened;
  session->state = SESSION_STREAMING;
  session->last_progress = now;
  transfer_start(session, now);
}

static void take_message(struct session *session, uint64_t now) {
  struct message message;
  char why[256];
  enum wire_error error = message_read((const char *)session->gathered, session->gathered_size,
                                       &message, why, sizeof why);
  if (error == WIRE_BAD_TYPE)
    return; // a newer server may tell more than this client knows
  if (error != WIRE_OK)
    session_fail(session, STREAM_PROTOCOL, 1002, "the server's message is not understood: %s", why);
  else if (message.type == MESSAGE_OPENED)
    take_opened(session, &message.opened, now);
  else if (message.type == MESSAGE_OPEN)
    session_fail(session, STREAM_PROTOCOL, 1002, "the server sent \"open\"");
  else if (message.type == MESSAGE_CHECKPOINT)
    return; // nothing here resumes a session
  else if (message.error.has_seq && session->state == SESSION_STREAMING)
    transfer_take_error(session, &message.error);
  else
    session_fail(session, STREAM_REJECTED, 1000, "the server refused the session: %s: %s",
                 message.error.code, message.error.text);
}

// Puts a text message together. The parser has bounded its size, but by that of a result.
static void take_text(struct session *session, const struct websocket_event *event, uint64_t now) {
  if (event->size > sizeof session->gathered - session->gathered_size) {
    session_fail(session, STREAM_PROTOCOL, 1009, "the server's text message is over %d bytes",
                 MESSAGE_SIZE_MAX);
    return;
  }
  memcpy(session->gathered + session->gathered_size, event->bytes, event->size);
  session->gathered_size += event->size;
  if (event->end) {
    take_message(session, now);
    session->gathered_size = 0;
  }
}

// The server closed before every frame was answered.
static void fail_closed(struct session *session, const struct websocket_event *event,
                        uint16_t code) {
  const uint8_t *reason = event->bytes + (event->size < 2 ? event->size : 2);
  int length = event->size < 2 ? 0 : (int)event->size - 2;
  const char *text = websocket_close_text(code);
  session_fail(session, STREAM_CLOSED, code,
               "the server closed the stream with %u%s%s%s after %zu of %zu frames%s%.*s", code,
               *text ? " (" : "", text, *text ? ")" : "", session->answered, session->clip->frames,
               length ? ": " : "", length, (const char *)reason);
}

static void take_control(struct session *session, const struct websocket_event *event) {
  if (event->opcode == WEBSOCKET_PING && session->state != SESSION_CLOSING) {
    // Without room it is dropped: section 5.5.3 lets the next pong answer for it.
    if (outbox_put_frame(&session->outbox, WEBSOCKET_PONG, event->bytes, event->size))
      flush(session);
  } else if (event->opcode == WEBSOCKET_CLOSE) {
    uint16_t code = websocket_close_code(event->bytes, event->size);
    if (session->state == SESSION_CLOSING)
      close_socket(session);
    else if (!code)
      session_fail(session, STREAM_PROTOCOL, 1002, "the server's close frame is malformed");
    else
      fail_closed(session, event, code);
  }
}

static void take_event(struct session *session, const struct websocket_event *event, uint64_t now) {
  bool closing = session->state == SESSION_CLOSING;
  if (event->type == WEBSOCKET_EVENT_BAD)
    session_fail(session, STREAM_PROTOCOL, event->close_code, "the server broke RFC 6455: %s",
                 event->text);
  else if (event->type == WEBSOCKET_EVENT_CONTROL)
    take_control(session, event);
  else if (event->type == WEBSOCKET_EVENT_DATA && !closing) {
    if (event->opcode == WEBSOCKET_TEXT)
      take_text(session, event, now);
    else if (session->state == SESSION_STREAMING)
      transfer_take(session, event->bytes, event->size, event->end, now);
    else
      session_fail(session, STREAM_PROTOCOL, 1002, "a frame came before \"opened\"");
  }
}

static void take_frames(struct session *session, const uint8_t *bytes, size_t size, uint64_t now) {
  while (size && !uv_is_closing((uv_handle_t *)&session->tcp)) {
    struct websocket_event event;
    size_t used = websocket_read(&session->websocket, bytes, size, &event);
    take_event(session, &event, now);
    bytes += used;
    size -= used;
    if (event.type == WEBSOCKET_EVENT_BAD && session->state == SESSION_CLOSING)
      close_socket(session);
  }
  if (session->state == SESSION_STREAMING)
    transfer_send(session, now);
}

static void take_handshake(struct session *session, const uint8_t *bytes, size_t size,
                           uint64_t now) {
  size_t before = session->gathered_size;
  size_t piece =
      sizeof session->gathered - before < size ? sizeof session->gathered - before : size;
  memcpy(session->gathered + before, bytes, piece);
  session->gathered_size += piece;
  struct upgrade_response response;
  switch (upgrade_response_read((const char *)session->gathered, session->gathered_size,
                                session->key, &response)) {
  case UPGRADE_MORE:
    break;
  case UPGRADE_REFUSED:
    session_fail(session, STREAM_REFUSED, 0, "%s", response.text);
    break;
  case UPGRADE_BAD:
    session_fail(session, STREAM_HANDSHAKE, 0, "%s", response.text);
    break;
  case UPGRADE_DONE:
    session->gathered_size = 0;
    send_open(session);
    size_t used = response.head_size - before;
    take_frames(session, bytes + used, size - used, now);
    break;
  }
}

static void fail_ended(struct session *session, ssize_t status) {
  const char *how = status == UV_EOF ? "ended" : uv_strerror((int)status);
  if (session->state == SESSION_CLOSING)
    close_socket(session);
  else if (session->state == SESSION_UPGRADING)
    session_fail(session, STREAM_CLOSED, 0, "the connection was lost in the handshake: %s", how);
  else
    session_fail(session, STREAM_CLOSED, 0,
                 "the connection was lost without a close frame after %zu of %zu frames: %s",
                 session->answered, session->clip->frames, how);
}

static void on_read(uv_stream_t *tcp, ssize_t size, const uv_buf_t *buffer) {
  struct session *session = tcp->data;
  if (size < 0) {
    fail_ended(session, size);
    return;
  }
  uint64_t now = uv_hrtime();
  if (session->state == SESSION_UPGRADING)
    take_handshake(session, (const uint8_t *)buffer->base, (size_t)size, now);
  else
    take_frames(session, (const uint8_t *)buffer->base, (size_t)size, now);
  stream_pace(session->stream, uv_hrtime());
}

static void on_allocate(uv_handle_t *tcp, size_t suggested, uv_buf_t *buffer) {
  (void)suggested;
  struct session *session = tcp->data;
  *buffer = uv_buf_init((char *)session->stream->receive, STREAM_RECEIVE_SIZE);
}

static void on_connected(uv_connect_t *connect, int status) {
  struct session *session = connect->data;
  if (session->state != SESSION_CONNECTING)
    return; // it has failed meanwhile and is being closed
  if (status < 0) {
    if (++session->address < session->stream->address_count)
      close_socket(session); // on_closed tries the next one
    else
      session_fail(session, STREAM_CONNECT, 0, "cannot connect to %s: %s",
                   session->stream->options->url.authority, uv_strerror(status));
    return;
  }
  const struct stream_options *options = session->stream->options;
  session->state = SESSION_UPGRADING;
  session->last_progress = uv_hrtime();
  uint8_t nonce[16];
  randombytes_buf(nonce, sizeof nonce);
  handshake_key(nonce, session->key);
  char request[OUTBOX_SIZE];
  size_t length =
      upgrade_request_write(request, sizeof request, &options->url, session->key, options->token);
  uv_tcp_nodelay(&session->tcp, 1);
  if (length == 0 || !outbox_put_bytes(&session->outbox, request, length))
    session_fail(session, STREAM_INTERNAL, 0, "the handshake is too long");
  else if ((status = uv_read_start((uv_stream_t *)&session->tcp, on_allocate, on_read)) < 0)
    session_fail(session, STREAM_INTERNAL, 0, "reading failed: %s", uv_strerror(status));
  else
    flush(session);
}

static void connect_next(struct session *session) {
  struct stream *stream = session->stream;
  uv_tcp_init(&stream->loop, &session->tcp); // fails only for address families it is not given
  session->tcp.data = session->connect.data = session;
  const struct sockaddr *address = (struct sockaddr *)&stream->addresses[session->address];
  int status = uv_tcp_connect(&session->connect, &session->tcp, address, on_connected);
  if (status < 0)
    on_connected(&session->connect, status);
}

void session_start(struct session *session) {
  session->state = SESSION_CONNECTING;
  session->last_progress = uv_hrtime();
  session->outbox.stream = (uv_stream_t *)&session->tcp;
  session->outbox.masks = &session->stream->masks;
  session->outbox.on_drained = on_drained;
  session->outbox.owner = session;
  connect_next(session);
}

void session_check_time(struct session *session, uint64_t now) {
  static const char *const waits[] = {
      [SESSION_CONNECTING] = "no connection",
      [SESSION_UPGRADING] = "no answer to the handshake",
      [SESSION_OPENING] = "no answer to \"open\"",
      [SESSION_STREAMING] = "no result",
  };
  uint64_t idle = now > session->last_progress ? now - session->last_progress : 0;
  if (session->state == SESSION_DONE)
    return;
  if (session->state == SESSION_CLOSING) {
    if (idle > CLOSE_PATIENCE) // the frames are all there, so this is no failure
      close_socket(session);
    return;
  }
  double timeout = session->stream->options->timeout;
  if ((double)idle * 1e-9 > timeout)
    session_fail(session, STREAM_TIMEOUT, 1001, "%s within %g s after %zu of %zu frames",
                 waits[session->state], timeout, session->answered, session->clip->frames);
}
