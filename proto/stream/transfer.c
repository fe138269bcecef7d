// SPDX-License-Identifier: Apache-2.0
// The frames of a session: sending them in time and within the window, and holding every result
// against the frame it answers. Results come in the order of the frames; a frame that the server
// refused has an error message in its place, which may come before earlier results.
#include "stream/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PERIOD 16666667ull // ns of a frame at 60 Hz
#define LATE   2000000ull  // ns: twice the timer's grain
#define TIMER  500000ull   // ns: a frame due this soon is sent now, not a timer tick later

static uint32_t seq_of(const struct session *session, size_t frame) {
  return session->opened.next_seq + (uint32_t)frame;
}

static uint64_t due(const struct session *session, size_t frame) {
  return session->start + (uint64_t)((double)frame * (1e9 / STREAM_FPS));
}

static struct flight *flight_of(struct session *session, size_t frame) {
  return &session->flights[frame % session->stream->window];
}

// The sessions of a run share one time grid, on which each has its own offset: however their
// connections came about, their frames are spread evenly over the period.
static uint64_t first_due(const struct session *session, uint64_t now) {
  const struct stream *stream = session->stream;
  uint64_t grid = stream->epoch + PERIOD * session->index / stream->options->sessions;
  uint64_t steps = now > grid ? (now - grid + PERIOD - 1) / PERIOD : 0;
  return grid + steps * PERIOD;
}

// What the first session that opens says holds for the summary.
static bool prepare_summary(struct session *session) {
  struct stream_summary *summary = session->stream->summary;
  if (summary->opened)
    return true;
  summary->largest = memory_alloc(session->opened.vertices, sizeof *summary->largest);
  if (!summary->largest)
    return false;
  summary->opened = true;
  summary->trained = session->opened.trained;
  summary->vertices = session->opened.vertices;
  snprintf(summary->model, sizeof summary->model, "%s", session->opened.model);
  return true;
}

static int start_recording(struct session *session, struct dsnet_error *error) {
  const struct stream_options *options = session->stream->options;
  char path[4096];
  if (!options->output)
    return 0;
  int status =
      recording_path(path, sizeof path, options->output, session->index, options->sessions, error);
  if (status == 0)
    status = recording_open(&session->recording, path, session->clip->frames,
                            session->opened.vertices, error);
  return status;
}

void transfer_start(struct session *session, uint64_t now) {
  struct stream *stream = session->stream;
  uint32_t vertices = session->opened.vertices;
  session->flights = memory_alloc(stream->window, sizeof *session->flights);
  struct dsnet_error error = {0};
  if (!session->flights || !prepare_summary(session)) {
    session_fail(session, STREAM_INTERNAL, 1001, "out of memory");
    return;
  }
  if (start_recording(session, &error) != 0) {
    session_fail(session, STREAM_RECORDING, 1001, "%s", error.text);
    return;
  }
  size_t frame = frame_result_size(FRAME_DISPLACEMENT, FRAME_F32, vertices, 0);
  session->websocket.message_max = frame > MESSAGE_SIZE_MAX ? frame : MESSAGE_SIZE_MAX;
  // Sessions of one clip get the same results, so one of each clip is enough to measure.
  bool measured = session->index < stream->clip_count && vertices == stream->summary->vertices;
  session->result.vertices = vertices;
  session->result.largest = measured ? stream->summary->largest : NULL;
  result_begin(&session->result);
  session->start = first_due(session, now);
  transfer_send(session, now);
}

static void put_frame(struct session *session, uint64_t now) {
  struct stream *stream = session->stream;
  size_t k = session->sent++;
  struct flight *flight = flight_of(session, k);
  uint64_t when = due(session, k);
  bool late = stream->options->real_rate && now > when + LATE;
  *flight = (struct flight){.timestamp = (double)now * 1e-9, .since = late ? when : now};
  struct frame_pose pose = {.header = {.seq = seq_of(session, k), .timestamp = flight->timestamp}};
  memcpy(pose.pose, session->clip->pose + k * FRAME_POSE_JOINTS * 3, sizeof pose.pose);
  memcpy(pose.trans, session->clip->trans + 3 * k, sizeof pose.trans);
  uint8_t bytes[FRAME_POSE_SIZE_MAX];
  size_t size = frame_pose_write(&pose, bytes);
  outbox_put_frame(&session->outbox, WEBSOCKET_BINARY, bytes, size); // transfer_send saw the room
  stream->summary->sent++;
  if (!stream->first_send)
    stream->first_send = now;
}

void transfer_send(struct session *session, uint64_t now) {
  const struct stream *stream = session->stream;
  size_t before = session->sent;
  if (session->sent == session->answered) // nothing was owed until now
    session->last_progress = now;
  while (session->sent < session->clip->frames &&
         session->sent - session->answered < stream->window &&
         outbox_has_room(&session->outbox, WEBSOCKET_BINARY, FRAME_POSE_SIZE_MAX) &&
         (!stream->options->real_rate || due(session, session->sent) <= now + TIMER))
    put_frame(session, now);
  int status = session->sent > before ? outbox_flush(&session->outbox) : 0;
  if (status < 0)
    session_fail(session, STREAM_CLOSED, 0, "sending failed after %zu of %zu frames: %s",
                 session->answered, session->clip->frames, uv_strerror(status));
}

// All frames are answered. The file is finished before the session counts as good.
static void finish(struct session *session) {
  struct dsnet_error error = {0};
  struct recording *recording = session->recording;
  session->recording = NULL;
  if (recording && session->refused)
    recording_abort(recording);
  else if (recording &&
           recording_close(recording, STREAM_FPS, session->opened.model, &error) != 0) {
    session_fail(session, STREAM_RECORDING, 1001, "%s", error.text);
    return;
  }
  session_finish(session);
}

// Moves past the frame just answered and past refused ones behind it.
static void advance(struct session *session) {
  while (session->answered < session->sent && flight_of(session, session->answered)->refused)
    session->answered++;
  if (session->answered == session->clip->frames)
    finish(session);
}

static bool check_header(struct session *session) {
  const struct frame_header *header = &session->header;
  size_t k = session->answered;
  if (header->kind != FRAME_DISPLACEMENT || header->encoding != FRAME_F32 || header->count != 0)
    session_fail(session, STREAM_PROTOCOL, 1002,
                 "frame %zu came with kind %u, encoding %u, count %u instead of a displacement", k,
                 header->kind, header->encoding, header->count);
  else if (k == session->sent)
    session_fail(session, STREAM_PROTOCOL, 1002, "a result with seq %u came that nothing asked for",
                 header->seq);
  else if (header->seq != seq_of(session, k))
    session_fail(session, STREAM_PROTOCOL, 1002, "a result came with seq %u instead of %u",
                 header->seq, seq_of(session, k));
  else if (memcmp(&header->timestamp, &flight_of(session, k)->timestamp, sizeof(double)) != 0)
    session_fail(session, STREAM_PROTOCOL, 1002, "result %zu does not echo its frame's timestamp",
                 k);
  return session->state == SESSION_STREAMING;
}

static void take_result_end(struct session *session, uint64_t now) {
  struct stream *stream = session->stream;
  size_t k = session->answered;
  if (!result_is_complete(&session->result)) {
    session_fail(session, STREAM_PROTOCOL, 1002, "result %zu is shorter than %u vertices", k,
                 session->opened.vertices);
    return;
  }
  if (!result_is_finite(&session->result)) {
    session_fail(session, STREAM_NOT_FINITE, 1007, "result %zu has a number that is not finite", k);
    return;
  }
  uint64_t latency = now - flight_of(session, k)->since;
  histogram_record(&stream->summary->latency, latency);
  stream->summary->received++;
  stream->summary->deadline_misses += stream->options->real_rate && latency > PERIOD;
  stream->last_receive = session->last_progress = now;
  if (session->recording)
    recording_end_frame(session->recording, session->header.seq, (double)latency * 1e-9);
  session->has_header = false;
  result_begin(&session->result);
  session->answered++;
  advance(session);
}

void transfer_take(struct session *session, const uint8_t *bytes, size_t size, bool end,
                   uint64_t now) {
  struct dsnet_error error = {0};
  if (!session->has_header &&
      result_take_header(&session->result, &bytes, &size, &session->header)) {
    session->has_header = true;
    if (!check_header(session))
      return;
  }
  if (!result_take_payload(&session->result, bytes, size)) {
    session_fail(session, STREAM_PROTOCOL, 1002, "result %zu is longer than %u vertices",
                 session->answered, session->opened.vertices);
    return;
  }
  if (session->recording && recording_append(session->recording, bytes, size, &error) != 0) {
    session_fail(session, STREAM_RECORDING, 1001, "%s", error.text);
    return;
  }
  if (end)
    take_result_end(session, now);
}

void transfer_take_error(struct session *session, const struct message_error *error) {
  size_t k = error->seq - session->opened.next_seq; // wraps for what was never sent
  if (k < session->answered || k >= session->sent || flight_of(session, k)->refused) {
    session_fail(session, STREAM_PROTOCOL, 1002, "an error came for seq %u, which is not in flight",
                 error->seq);
    return;
  }
  flight_of(session, k)->refused = true;
  session->stream->summary->refused++;
  if (session->refused++ == 0) {
    session->outcome = STREAM_FRAME_REFUSED;
    snprintf(session->failure, sizeof session->failure, "the server refused frame %zu: %s: %s", k,
             error->code, error->text);
  }
  advance(session);
}

void transfer_deinit(struct session *session) {
  recording_abort(session->recording);
  session->recording = NULL;
  free(session->flights);
  session->flights = NULL;
}
