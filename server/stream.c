// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

// Answers other than results that may wait unsent before the socket is no longer read.
#define REPLIES_MAX 16
// Reads of one turn, so that a client that sends without end does not hold up the others.
#define READS_PER_TURN    16
#define VECTORS_PER_WRITE 16
// What the kernel begins with holds less than two results, and a peer that acknowledges late (40
// ms) would hold up the third; what it may grow to would hide from `latest` that a peer has fallen
// behind.
#define SEND_BUFFER (512 * 1024)

enum stream_state {
  STREAM_SERVING,
  STREAM_FINISHING, // takes no more frames; closes when those taken are answered
  STREAM_CLOSING,   // a close frame is queued or sent; waits for the peer's, until `deadline`
  STREAM_GONE,      // the handle is being closed
};

struct stream {
  struct streams *streams;
  struct stream *next, **link; // in streams->first
  struct stream *next_dirty;   // while results are handed out
  bool dirty;
  bool blocked; // the socket took less than it was given
  enum stream_state state;
  int events; // that the poll handle is armed for
  int reads_left;
  bool sending_ended; // our half of the connection was shut
  uint16_t finish_code;
  const char *finish_reason; // a constant
  // Loop times, ms.
  uint64_t last_message; // of the client
  uint64_t last_heard;   // any bytes of the client's
  uint64_t last_ping;
  uint64_t last_sent; // a message queued
  uint64_t opened;
  uint64_t deadline; // loop time, ms; of finishing and closing
  struct stream_socket *socket;
  size_t extra_read; // of the bytes that came with the handshake
  uv_poll_t poll;
  struct websocket ws;
  struct session session;
};

static uint64_t now(const struct stream *stream) {
  return uv_now(stream->streams->loop);
}

static const char *stream_name(const struct stream *stream) {
  return stream->session.track ? stream->session.id : NULL;
}

static void log_stream(const struct stream *stream, enum log_level level, const char *event,
                       const char *text) {
  log_client_event(stream->streams->log_limit, now(stream), level, event, stream_name(stream), "%s",
                   text);
}

// Leaving ----------------------------------------------------------------------------------------

static void handle_closed(uv_handle_t *poll) {
  struct stream *stream = poll->data;
  struct streams *streams = stream->streams;
  // Only now: the descriptor's number may be reused as soon as it is closed.
  streams->give_back(streams->user, stream->socket);
  streams->leaving--;
  free(stream);
}

static void stream_leave(struct stream *stream, const char *why) {
  if (stream->state == STREAM_GONE)
    return;
  log_stream(stream, stream->session.track ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, "stream_ended", why);
  stream->state = STREAM_GONE;
  struct streams *streams = stream->streams;
  *stream->link = stream->next;
  if (stream->next)
    stream->next->link = stream->link;
  streams->count--;
  streams->leaving++;
  websocket_deinit(&stream->ws); // releases results, so before their track is closed
  session_close(&stream->session);
  uv_close((uv_handle_t *)&stream->poll, handle_closed);
}

static uint64_t milliseconds(double seconds) {
  return (uint64_t)(seconds * 1000);
}

static void start_closing(struct stream *stream, uint16_t code, const char *reason) {
  stream->state = STREAM_CLOSING;
  stream->deadline = now(stream) + milliseconds(stream->streams->config->close_timeout);
  websocket_close(&stream->ws, code, reason);
}

static void start_finishing(struct stream *stream, uint16_t code, const char *reason) {
  if (stream->state != STREAM_SERVING)
    return;
  // Its peer may want to go on elsewhere, or later.
  if (!stream->ws.close_received && !stream->ws.violation)
    session_want_checkpoint(&stream->session);
  stream->state = STREAM_FINISHING;
  stream->finish_code = code;
  stream->finish_reason = reason;
  stream->deadline = now(stream) + milliseconds(stream->streams->config->close_timeout);
  stream->ws.discarding = true;
}

// Receiving --------------------------------------------------------------------------------------

static ssize_t read_extra(struct stream *stream, uint8_t *bytes, size_t size) {
  const struct stream_socket *socket = stream->socket;
  size_t left = socket->extra_size - stream->extra_read;
  if (size > left)
    size = left;
  memcpy(bytes, socket->extra + stream->extra_read, size);
  stream->extra_read += size;
  return (ssize_t)size;
}

static ssize_t read_socket(void *user, uint8_t *bytes, size_t size) {
  struct stream *stream = user;
  if (stream->extra_read < stream->socket->extra_size)
    return read_extra(stream, bytes, size);
  if (stream->reads_left <= 0)
    return 0;
  ssize_t count;
  do
    count = recv(stream->socket->fd, bytes, size, MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  if (count < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  // A short read has emptied the socket; asking again would only cost a call.
  stream->reads_left = (size_t)count < size ? 0 : stream->reads_left - 1;
  stream->last_heard = now(stream);
  if (count > 0)
    stream->streams->services.metrics->bytes_in += (uint64_t)count;
  return count > 0 ? count : -1;
}

static bool has_room(const struct stream *stream) {
  if (stream->session.checkpoint_wanted) // it is of the frames taken so far
    return false;
  size_t frames = (size_t)stream->streams->config->frames_in_flight;
  return session_in_flight(&stream->session) < frames && stream->ws.queued < frames + REPLIES_MAX;
}

static void count_reply(const struct stream *stream, const struct message *reply) {
  struct metrics *metrics = stream->streams->services.metrics;
  metrics->checkpoints += reply->type == MESSAGE_CHECKPOINT;
  metrics->opened += reply->type == MESSAGE_OPENED;
  metrics->resumed += reply->type == MESSAGE_OPENED && stream->session.any_frame;
  for (int i = WIRE_OK + 1; reply->type == MESSAGE_ERROR && i <= WIRE_INTERNAL; i++)
    metrics->errors[i] += !strcmp(reply->error.code, wire_error_code((enum wire_error)i));
}

static void send_reply(struct stream *stream, const struct message *reply) {
  count_reply(stream, reply);
  stream->last_sent = now(stream);
  char text[MESSAGE_SIZE_MAX + 1];
  size_t length = message_write(reply, text, sizeof text);
  if (!length || websocket_queue_text(&stream->ws, text, length)) {
    websocket_fail(&stream->ws, WEBSOCKET_INTERNAL, "out of memory");
    return;
  }
  if (reply->type == MESSAGE_OPENED)
    log_stream(stream, LOG_LEVEL_INFO,
               stream->session.any_frame ? "session_resumed" : "session_opened",
               reply->opened.model);
  else if (reply->type == MESSAGE_ERROR)
    log_client_event(stream->streams->log_limit, now(stream), LOG_LEVEL_INFO, "message_refused",
                     stream_name(stream), "%s: %s", reply->error.code, reply->error.text);
}

static void receive_message(void *user, bool text, const uint8_t *bytes, size_t size) {
  struct stream *stream = user;
  struct streams *streams = stream->streams;
  struct message reply;
  stream->last_message = now(stream);
  uint64_t time = uv_hrtime();
  bool answer =
      text ? session_text(&stream->session, &streams->services, stream, time, (const char *)bytes,
                          size, &reply)
           : session_frame(&stream->session, &streams->services, time, bytes, size, &reply);
  if (answer)
    send_reply(stream, &reply);
  stream->ws.paused = !has_room(stream);
}

static const struct websocket_callbacks websocket_callbacks = {
    .read = read_socket,
    .message = receive_message,
};

// Sending ----------------------------------------------------------------------------------------

// Writes what there is until the socket takes no more. False when the connection is broken.
static bool stream_write(struct stream *stream) {
  struct iovec vectors[VECTORS_PER_WRITE];
  stream->blocked = false;
  for (int count; (count = websocket_output(&stream->ws, vectors, VECTORS_PER_WRITE));) {
    size_t size = 0;
    for (int i = 0; i < count; i++)
      size += vectors[i].iov_len;
    const struct msghdr message = {.msg_iov = vectors, .msg_iovlen = (size_t)count};
    ssize_t written = sendmsg(stream->socket->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
      return false;
    if (written > 0) {
      websocket_written(&stream->ws, (size_t)written);
      stream->streams->services.metrics->bytes_out += (uint64_t)written;
    }
    stream->blocked = written < 0 || (size_t)written < size;
    if (stream->blocked)
      break;
  }
  return true;
}

static bool wants_write(struct stream *stream) {
  struct iovec vector;
  return websocket_output(&stream->ws, &vector, 1) > 0;
}

// Progress ---------------------------------------------------------------------------------------

// Whether the close frame says that something was wrong.
static bool is_broken(const struct websocket *ws) {
  return ws->failed || ws->violation;
}

// After a broken connection's close frame: ends our half and reads on without looking until the
// peer ends its own, or the deadline comes. Closing with bytes unread would reset the connection,
// and the peer might lose the close frame that says what was wrong. False when the peer has ended.
static bool linger(struct stream *stream) {
  if (!stream->sending_ended)
    shutdown(stream->socket->fd, SHUT_WR);
  stream->sending_ended = true;
  uint8_t unread[4096];
  ssize_t count;
  do
    count = read_socket(stream, unread, sizeof unread);
  while (count > 0);
  return count == 0;
}

static void log_broken(const struct stream *stream, uint16_t code, const char *reason, int length) {
  log_client_event(stream->streams->log_limit, now(stream), LOG_LEVEL_INFO, "stream_failed",
                   stream_name(stream), "closed with %u: %.*s", code, length, reason);
}

// Moves to the state that follows from what has happened. False when the stream is over.
static bool change_state(struct stream *stream) {
  struct websocket *ws = &stream->ws;
  if (ws->failed && stream->state != STREAM_CLOSING) {
    log_broken(stream, ws->close_code, (const char *)ws->close_frame + 2,
               ws->close_size > 2 ? ws->close_size - 2 : 0);
    start_closing(stream, ws->close_code, "");
  }
  if (ws->violation && stream->state == STREAM_SERVING) {
    log_broken(stream, ws->violation, ws->violated, (int)strlen(ws->violated));
    start_finishing(stream, ws->violation, ws->violated);
  }
  if (ws->close_received)
    start_finishing(stream, ws->close_received, "");
  if (stream->state == STREAM_FINISHING && !session_in_flight(&stream->session))
    start_closing(stream, stream->finish_code, stream->finish_reason);
  if (ws->close_sent && is_broken(ws))
    return linger(stream);
  if (ws->close_sent && ws->close_received)
    return false;
  return !ws->ended;
}

// What the socket is to be watched for.
static int events_wanted(struct stream *stream) {
  const struct websocket *ws = &stream->ws;
  int events = wants_write(stream) ? UV_WRITABLE : 0;
  if (ws->stopped) // by a close frame or what is wrong; after the latter see linger()
    return is_broken(ws) && ws->close_sent ? events | UV_READABLE : events;
  // A stream that is not read must still notice that its peer has left.
  return events | (ws->paused ? UV_DISCONNECT : UV_READABLE);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void arm(struct stream *stream) {
  int events = events_wanted(stream);
  if (events == stream->events)
    return;
  stream->events = events;
  if (uv_poll_start(&stream->poll, events, on_poll))
    stream_leave(stream, "the socket cannot be polled");
}

// Sends the checkpoint that was asked for, once it can be made.
static void send_checkpoint(struct stream *stream) {
  bool open = stream->state == STREAM_SERVING || stream->state == STREAM_FINISHING;
  if (!open || !session_checkpoint_due(&stream->session))
    return;
  struct message reply;
  session_checkpoint(&stream->session, &stream->streams->services, &reply);
  send_reply(stream, &reply);
  stream->reads_left = 0; // sealing costs more than reading; others have their turn first
}

// Reads on when a stream that was paused has room again. Whether it did.
static bool resume(struct stream *stream) {
  if (!stream->ws.paused || !has_room(stream))
    return false;
  stream->ws.paused = false;
  websocket_receive(&stream->ws);
  return true;
}

// Writes, reads on, and changes state as far as the socket and the session allow.
static void stream_advance(struct stream *stream) {
  bool more;
  do {
    if (!stream_write(stream)) {
      stream_leave(stream, "the peer takes no more data");
      return;
    }
    send_checkpoint(stream);
    more = resume(stream);
    if (!change_state(stream)) {
      stream_leave(stream, stream->ws.close_sent ? "closed" : "the peer has gone");
      return;
    }
  } while (more || (!stream->blocked && wants_write(stream)));
  arm(stream);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
  struct stream *stream = poll->data;
  if (status < 0 || (events & UV_DISCONNECT && stream->ws.paused)) {
    stream_leave(stream, "the peer has gone");
    return;
  }
  stream->reads_left = READS_PER_TURN;
  if (events & UV_READABLE)
    websocket_receive(&stream->ws);
  stream_advance(stream);
}

// All streams ------------------------------------------------------------------------------------

static struct stream *stream_new(struct streams *streams, struct stream_socket *socket) {
  struct stream *stream = calloc(1, sizeof *stream);
  if (!stream)
    return NULL;
  size_t max_message = (size_t)streams->config->max_message;
  websocket_init(&stream->ws, max_message, &streams->spare, &websocket_callbacks, stream);
  if (uv_poll_init(streams->loop, &stream->poll, socket->fd)) {
    free(stream);
    return NULL;
  }
  stream->poll.data = stream;
  stream->streams = streams;
  stream->socket = socket;
  return stream;
}

void stream_start(struct streams *streams, struct stream_socket *socket) {
  // libmicrohttpd clears it when it upgrades, and a frame should not wait for an acknowledgement.
  setsockopt(socket->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  setsockopt(socket->fd, SOL_SOCKET, SO_SNDBUF, &(int){SEND_BUFFER}, sizeof(int));
  struct stream *stream = stream_new(streams, socket);
  if (!stream) {
    log_client_event(streams->log_limit, uv_now(streams->loop), LOG_LEVEL_WARN, "stream_refused",
                     NULL, "out of memory or descriptors for a stream");
    streams->give_back(streams->user, socket);
    return;
  }
  stream->opened = stream->last_message = stream->last_heard = stream->last_sent = now(stream);
  stream->next = streams->first;
  stream->link = &streams->first;
  if (stream->next)
    stream->next->link = &stream->next;
  streams->first = stream;
  streams->count++;
  stream->reads_left = READS_PER_TURN;
  websocket_receive(&stream->ws);
  stream_advance(stream);
}

static void release_result(struct outgoing *outgoing, void *user) {
  struct stream *stream = user;
  void *result = (char *)outgoing - offsetof(struct result, outgoing);
  result_release(stream->streams->services.batcher, result);
}

// A finished result into its stream's queue.
static void deliver(struct stream *stream, uint64_t time, struct result *result) {
  struct session *session = &stream->session;
  struct message reply;
  enum session_take taken = session_take(session, &stream->streams->services, time, result, &reply);
  if (taken == SESSION_NOMEM) {
    result_release(stream->streams->services.batcher, result);
    websocket_fail(&stream->ws, WEBSOCKET_INTERNAL, "out of memory");
    return;
  }
  if (session->latest) {
    size_t skipped = websocket_withdraw(&stream->ws, release_result);
    session->counts.skipped += skipped;
    stream->streams->services.metrics->skipped += skipped;
  }
  stream->last_sent = now(stream);
  result->outgoing.release = release_result;
  websocket_queue(&stream->ws, &result->outgoing);
  if (taken == SESSION_TAKEN_AND_REPLY)
    send_reply(stream, &reply);
}

void streams_deliver(struct streams *streams) {
  // First every result to its stream, then every stream to its socket: a stream that leaves while
  // it writes must not have results further down the list.
  struct stream *dirty = NULL;
  uint64_t time = uv_hrtime();
  for (struct result *result = batcher_take(streams->services.batcher), *next; result;
       result = next) {
    next = result->next;
    struct stream *stream = track_owner(result->track);
    deliver(stream, time, result);
    if (!stream->dirty) {
      stream->dirty = true;
      stream->next_dirty = dirty;
      dirty = stream;
    }
  }
  for (; dirty; dirty = dirty->next_dirty) {
    dirty->dirty = false;
    stream_advance(dirty);
  }
}

// Says something where nothing was said for long. False when the peer must be taken for gone: its
// machine vanished, or the way to it, without a last word. One that is not read, since it reads too
// slowly itself, cannot be heard.
static bool keep_alive(struct stream *stream, uint64_t time) {
  uint64_t interval = milliseconds(stream->streams->config->ping_interval);
  uint64_t silence = time - stream->last_heard;
  if (stream->session.keepalive > 0 &&
      time - stream->last_sent >= milliseconds(stream->session.keepalive))
    send_reply(stream, &(struct message){.type = MESSAGE_KEEPALIVE});
  if (!interval || stream->ws.paused || silence < interval)
    return true;
  if (silence >= 3 * interval)
    return false;
  if (time - stream->last_ping >= interval) {
    stream->last_ping = time;
    websocket_ping(&stream->ws);
  }
  return true;
}

static void sweep_serving(struct stream *stream, uint64_t time) {
  if (!keep_alive(stream, time)) {
    stream->streams->services.metrics->unheard++;
    stream_leave(stream, "the peer answers no ping");
  } else if (time - stream->last_message >= milliseconds(stream->streams->config->idle_timeout)) {
    stream->streams->services.metrics->idle++;
    log_stream(stream, LOG_LEVEL_INFO, "stream_idle", "no message for too long");
    start_finishing(stream, WEBSOCKET_POLICY, "no message for too long");
    stream_advance(stream);
  } else if (!stream->blocked && wants_write(stream)) {
    stream_advance(stream);
  }
}

void streams_sweep(struct streams *streams) {
  uint64_t time = uv_now(streams->loop);
  for (struct stream *stream = streams->first, *next; stream; stream = next) {
    next = stream->next;
    if (stream->state == STREAM_SERVING)
      sweep_serving(stream, time);
    else if (time >= stream->deadline)
      stream_leave(stream, "the peer did not take its close in time");
  }
}

size_t streams_sessions(const struct streams *streams, size_t *in_flight) {
  size_t count = 0;
  *in_flight = 0;
  for (const struct stream *stream = streams->first; stream; stream = stream->next) {
    count += stream->session.track != NULL;
    *in_flight += session_in_flight(&stream->session);
  }
  return count;
}

static json_t *describe(const struct stream *stream, uint64_t time) {
  static const char *const outputs[] = {[FRAME_DISPLACEMENT] = "displacement",
                                        [FRAME_VERTICES] = "vertices",
                                        [FRAME_LATENT] = "latent"};
  static const char *const encodings[] = {
      [FRAME_F32] = "f32", [FRAME_F16] = "f16", [FRAME_I16] = "i16"};
  const struct session *session = &stream->session;
  const struct session_counts *counts = &session->counts;
  double age = (double)(time - stream->opened) / 1000;
  const struct stream_peer *peer = &stream->socket->peer;
  char address[INET6_ADDRSTRLEN] = "";
  inet_ntop(peer->family, peer->address, address, sizeof address);
  return json_pack(
      "{s:s, s:s, s:s, s:f, s:f, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:f}", "session",
      session->id, "model", stream->streams->services.models->items[session->model].name, "address",
      address, "age_seconds", age, "fps", session->fps, "output", outputs[session->output],
      "encoding", encodings[session->encoding], "latest", session->latest, "frames_in",
      (json_int_t)counts->frames_in, "frames_out",
      (json_int_t)(counts->frames_out - counts->skipped), "skipped", (json_int_t)counts->skipped,
      "in_flight", (json_int_t)session_in_flight(session), "unsent", (json_int_t)stream->ws.queued,
      "rate", age > 0 ? (double)counts->frames_in / age : 0);
}

bool streams_describe(const struct streams *streams, json_t *list) {
  uint64_t time = uv_now(streams->loop);
  for (const struct stream *stream = streams->first; stream; stream = stream->next)
    if (stream->session.track && json_array_append_new(list, describe(stream, time)))
      return false;
  return true;
}

void streams_finish(struct streams *streams, uint16_t code, const char *reason) {
  for (struct stream *stream = streams->first, *next; stream; stream = next) {
    next = stream->next;
    start_finishing(stream, code, reason);
    stream_advance(stream);
  }
}

void streams_abort(struct streams *streams) {
  while (streams->first)
    stream_leave(streams->first, "aborted");
  websocket_spare_free(&streams->spare);
}
