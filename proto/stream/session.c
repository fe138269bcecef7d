// SPDX-License-Identifier: Apache-2.0
// The life of a session. It ends exactly once, in end(); all roads there go through leave() and the
// closing of its connection.
#include "stream/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "stream/backoff.h"

#define CLOSE_PATIENCE 2000000000ull // ns for the server's half of the closing handshake

static void connect_now(struct session *session);

// Leaving ----------------------------------------------------------------------------------------

static void on_timer_closed(uv_handle_t *timer) {
  struct session *session = timer->data;
  stream_session_done(session->stream, session);
}

static void end(struct session *session) {
  session->state = SESSION_DONE;
  transfer_deinit(&session->transfer);
  uv_close((uv_handle_t *)&session->retry, on_timer_closed);
}

// Ends the connection because of what session->failure says; on_closed goes on.
static void leave(struct session *session, enum stream_outcome outcome, bool passing,
                  uint16_t close_code) {
  bool waiting = session->state == SESSION_WAITING;
  session->outcome = outcome;
  session->passing = passing;
  session->state = SESSION_LEAVING;
  if (waiting)
    end(session);
  else
    connection_abort(&session->connection, close_code);
}

__attribute__((format(printf, 2, 0))) static void say(struct session *session, const char *format,
                                                      va_list arguments) {
  vsnprintf(session->failure, sizeof session->failure, format, arguments);
}

void session_fail(struct session *session, enum stream_outcome outcome, uint16_t close_code,
                  const char *format, ...) {
  if (session->state >= SESSION_LEAVING) {
    session->passing = false; // whatever it leaves for, it does not come back
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  say(session, format, arguments);
  va_end(arguments);
  leave(session, outcome, false, close_code);
}

// The same where another try may go better.
__attribute__((format(printf, 4, 5))) static void lose(struct session *session,
                                                       enum stream_outcome outcome,
                                                       uint16_t close_code, const char *format,
                                                       ...) {
  if (session->state >= SESSION_LEAVING)
    return;
  va_list arguments;
  va_start(arguments, format);
  say(session, format, arguments);
  va_end(arguments);
  leave(session, outcome, true, close_code);
}

void session_finish(struct session *session) {
  const struct transfer *transfer = &session->transfer;
  session->outcome = transfer->refusals ? STREAM_FRAME_REFUSED : STREAM_OK;
  session->passing = false;
  snprintf(session->failure, sizeof session->failure, "%s", transfer->refusal);
  session->state = SESSION_LEAVING;
  session->last_progress = uv_hrtime();
  connection_finish(&session->connection);
}

// Trying again -----------------------------------------------------------------------------------

void session_progress(struct session *session, uint64_t now) {
  session->last_progress = now;
  session->tries = 0;
  session->lost_at = 0;
}

// Tries that may follow each other. A session that never had a connection asks each server once,
// whether it may reconnect or not.
static unsigned tries_allowed(const struct session *session) {
  unsigned tries = session->stream->options->reconnect.tries;
  unsigned others = (unsigned)session->stream->servers.count - 1;
  return session->was_opened || tries > others ? tries : others;
}

// Chooses the server of the next try. Returns when it may begin.
static uint64_t choose_server(struct session *session, uint64_t now) {
  struct servers *servers = &session->stream->servers;
  uint64_t random = (uint64_t)randombytes_random() << 32 | randombytes_random();
  uint64_t delay = backoff_delay(session->tries / (unsigned)servers->count, random);
  servers_look_up(servers, session->server, &session->stream->loop);
  session->server = servers_next(servers, session->server, now);
  uint64_t not_before = servers->list[session->server].not_before;
  // Jitter here, too: the server has told everybody the same.
  return not_before > now + delay ? not_before + random % BACKOFF_BASE : now + delay;
}

__attribute__((format(printf, 2, 3))) static void append_failure(struct session *session,
                                                                 const char *format, ...) {
  size_t length = strlen(session->failure);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(session->failure + length, sizeof session->failure - length, format, arguments);
  va_end(arguments);
}

static void on_retry(uv_timer_t *timer) {
  connect_now(timer->data);
}

// Whether another try was begun.
static bool try_again(struct session *session) {
  struct stream *stream = session->stream;
  uint64_t now = uv_hrtime();
  if (!session->lost_at)
    session->lost_at = now;
  if (!session->passing || tries_allowed(session) == 0)
    return false;
  double outage = (double)(now - session->lost_at) * 1e-9;
  if (session->tries == tries_allowed(session)) {
    append_failure(session, "; gave up after %u more tries in %.1f s", session->tries, outage);
    return false;
  }
  uint64_t when = choose_server(session, now);
  const struct stream_reconnect *reconnect = &stream->options->reconnect;
  double limit = reconnect->tries ? reconnect->seconds : stream->options->timeout;
  if ((double)(when - session->lost_at) * 1e-9 > limit) {
    append_failure(session, "; the next try, after %.1f s, would be over the limit of %g s",
                   (double)(when - session->lost_at) * 1e-9, limit);
    return false;
  }
  display_note(&stream->display, now, "session %zu: %s; trying %s in %.1f s", session->index,
               session->failure, stream->servers.list[session->server].url->authority,
               (double)(when - now) * 1e-9);
  session->tries++;
  session->state = SESSION_WAITING;
  uv_update_time(&stream->loop);
  uv_timer_start(&session->retry, on_retry, (when - now + 999999) / 1000000, 0);
  return true;
}

// The messages -----------------------------------------------------------------------------------

static void send_open(struct session *session) {
  const struct stream_options *options = session->stream->options;
  struct message message = {.type = MESSAGE_OPEN};
  struct message_open *open = &message.open;
  message_open_init(open);
  snprintf(open->model, sizeof open->model, "%s", options->model);
  memcpy(open->betas, session->clip->betas, sizeof open->betas);
  open->fps = options->fps;
  open->output = options->output;
  open->encoding = options->encoding;
  open->delivery = options->delivery;
  open->glitch = options->glitch;
  open->checkpoint_every = options->checkpoint_every;
  if (session->transfer.resume_token)
    snprintf(open->resume, sizeof open->resume, "%s", session->transfer.resume_token);
  char text[MESSAGE_SIZE_MAX];
  size_t length = message_write(&message, text, sizeof text);
  session->state = SESSION_OPENING;
  session->last_progress = uv_hrtime();
  if (length == 0 || !connection_send(&session->connection, WEBSOCKET_TEXT, text, length))
    session_fail(session, STREAM_INTERNAL, 1001, "the open message could not be written");
  else
    connection_flush(&session->connection);
}

static void on_open(void *owner) {
  send_open(owner);
}

// What a server that goes on with the stream must agree with.
static bool check_reopened(struct session *session, const struct message_opened *opened) {
  const struct message_opened *first = &session->opened;
  uint32_t next = session->transfer.base + (uint32_t)session->transfer.resume_frame;
  if (opened->vertices != first->vertices || opened->latents != first->latents)
    session_fail(session, STREAM_PROTOCOL, 1000,
                 "the server went on with another model: %u vertices and %u latents instead of %u "
                 "and %u",
                 opened->vertices, opened->latents, first->vertices, first->latents);
  else if (opened->next_seq != next)
    session_fail(session, STREAM_PROTOCOL, 1002, "the server went on at seq %u instead of %u",
                 opened->next_seq, next);
  return session->state == SESSION_OPENING;
}

static void take_opened(struct session *session, const struct message_opened *opened,
                        uint64_t now) {
  double fps = session->stream->options->fps;
  if (session->state != SESSION_OPENING) {
    session_fail(session, STREAM_PROTOCOL, 1002, "the server sent \"opened\" twice");
    return;
  }
  if (opened->fps != fps) {
    session_fail(session, STREAM_PROTOCOL, 1002, "the server answers at %g Hz, %g was asked for",
                 opened->fps, fps);
    return;
  }
  if (session->was_opened ? !check_reopened(session, opened)
                          : !transfer_prepare(session, opened, now))
    return;
  if (session->was_opened) {
    session->stream->summary->reconnects++;
    session->stream->summary->restarts += session->transfer.resume_frame == 0;
  } else {
    session->opened = *opened;
    session->was_opened = true;
  }
  session->state = SESSION_STREAMING;
  session->last_progress = now;
  transfer_start(session, now);
}

// An answer to "open". A token that nobody takes is not needed: the stream can be sent again.
static void take_refusal(struct session *session, const struct message_error *error) {
  bool resuming = session->state == SESSION_OPENING && session->transfer.resume_token;
  if (resuming && (!strcmp(error->code, wire_error_code(WIRE_BAD_TOKEN)) ||
                   !strcmp(error->code, wire_error_code(WIRE_EXPIRED_TOKEN)))) {
    display_note(&session->stream->display, uv_hrtime(),
                 "session %zu: the server refused the state token (%s: %s); every frame is sent "
                 "again",
                 session->index, error->code, error->text);
    transfer_forget_checkpoint(&session->transfer);
    send_open(session);
    return;
  }
  // Another server may still have the model that the stream was begun with, or room.
  if ((resuming && !strcmp(error->code, wire_error_code(WIRE_WRONG_MODEL))) ||
      !strcmp(error->code, wire_error_code(WIRE_OVERLOADED)))
    lose(session, STREAM_REJECTED, 1000, "the server refused the session: %s: %s", error->code,
         error->text);
  else
    session_fail(session, STREAM_REJECTED, 1000, "the server refused the session: %s: %s",
                 error->code, error->text);
}

static void take_error(struct session *session, const struct message_error *error) {
  if (error->has_seq && session->state == SESSION_STREAMING)
    transfer_take_error(session, error);
  else
    take_refusal(session, error);
}

static void on_text(void *owner, const char *text, size_t size) {
  struct session *session = owner;
  struct message message;
  char why[256];
  enum wire_error error = message_read(text, size, &message, why, sizeof why);
  if (error == WIRE_BAD_TYPE)
    return; // a newer server may tell more than this client knows
  if (error != WIRE_OK) {
    session_fail(session, STREAM_PROTOCOL, 1002, "the server's message is not understood: %s", why);
    return;
  }
  switch (message.type) {
  case MESSAGE_OPENED:
    take_opened(session, &message.opened, uv_hrtime());
    break;
  case MESSAGE_CHECKPOINT:
    if (session->state == SESSION_STREAMING)
      transfer_take_checkpoint(session, &message.checkpoint);
    break;
  case MESSAGE_ERROR:
    take_error(session, &message.error);
    break;
  default: // of no interest to this client
    break;
  }
}

static void on_binary(void *owner, const uint8_t *bytes, size_t size, bool end) {
  struct session *session = owner;
  uint64_t now = uv_hrtime();
  if (session->state == SESSION_STREAMING)
    transfer_take(session, bytes, size, end, now);
  else if (session->state == SESSION_OPENING)
    session_fail(session, STREAM_PROTOCOL, 1002, "a frame came before \"opened\"");
  stream_pace(session->stream, now);
}

// The connection ---------------------------------------------------------------------------------

static void on_room(void *owner) {
  struct session *session = owner;
  if (session->state == SESSION_STREAMING)
    transfer_send(session, uv_hrtime());
}

static void on_lost(void *owner, const struct connection_loss *loss) {
  struct session *session = owner;
  if (session->state >= SESSION_LEAVING)
    return;
  if (loss->retry_after > 0)
    session->stream->servers.list[session->server].not_before =
        uv_hrtime() + (uint64_t)(loss->retry_after * 1e9);
  snprintf(session->failure, sizeof session->failure, "%s", loss->text);
  if (session->was_opened)
    append_failure(session, ", after %zu of %zu frames", session->transfer.answered,
                   session->frames);
  leave(session, loss->outcome, loss->passing, 0);
}

static void on_closed(void *owner) {
  struct session *session = owner;
  if (!try_again(session))
    end(session);
}

static const struct connection_callbacks connection_callbacks = {
    .open = on_open,
    .text = on_text,
    .binary = on_binary,
    .room = on_room,
    .lost = on_lost,
    .closed = on_closed,
};

static void connect_now(struct session *session) {
  struct stream *stream = session->stream;
  session->state = SESSION_CONNECTING;
  session->last_progress = uv_hrtime();
  if (!connection_start(&session->connection, &stream->servers.list[session->server]))
    on_closed(session);
}

void session_start(struct session *session) {
  struct stream *stream = session->stream;
  session->connection.shared = &stream->shared;
  session->connection.callbacks = &connection_callbacks;
  session->connection.owner = session;
  session->server = session->index % stream->servers.count;
  uv_timer_init(&stream->loop, &session->retry); // cannot fail
  session->retry.data = session;
  connect_now(session);
}

void session_check_time(struct session *session, uint64_t now) {
  uint64_t idle = now > session->last_progress ? now - session->last_progress : 0;
  if (session->state == SESSION_LEAVING) {
    if (idle > CLOSE_PATIENCE) // the frames are all there, so this is no failure
      connection_abort(&session->connection, 0);
    return;
  }
  double timeout = session->stream->options->timeout;
  if (session->state == SESSION_WAITING || session->state == SESSION_DONE ||
      (double)idle * 1e-9 <= timeout)
    return;
  if (session->state == SESSION_STREAMING)
    lose(session, STREAM_TIMEOUT, 1001, "no result within %g s, after %zu of %zu frames", timeout,
         session->transfer.answered, session->frames);
  else if (session->state == SESSION_OPENING)
    lose(session, STREAM_TIMEOUT, 1001, "no answer to \"open\" within %g s", timeout);
  else
    lose(session, STREAM_TIMEOUT, 0, "%s %s within %g s",
         session->connection.state == CONNECTION_CONNECTING ? "no connection to"
                                                            : "no answer to the handshake from",
         session->stream->servers.list[session->server].url->authority, timeout);
}
