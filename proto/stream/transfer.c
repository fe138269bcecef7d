// SPDX-License-Identifier: Apache-2.0
#include "stream/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stream/session.h"

#define LATE  2000000ull // ns: twice the timer's grain
#define TIMER 500000ull  // ns: a frame due this soon is sent now, not a timer tick later

static uint32_t seq_of(const struct session *session, size_t frame) {
  return session->transfer.base + (uint32_t)frame;
}

// The clip's own time: a frame that is sent again says the same.
static double timestamp_of(const struct session *session, size_t frame) {
  return (double)frame / session->stream->options->fps;
}

static uint64_t due(const struct session *session, size_t frame) {
  return session->transfer.start + (uint64_t)(timestamp_of(session, frame) * 1e9);
}

static struct flight *flight_of(struct session *session, size_t frame) {
  return &session->transfer.flights[frame % session->stream->window];
}

static bool *refused_flag(struct session *session, size_t frame) {
  return &session->transfer.refused[frame % session->stream->window];
}

// The sessions of a run share one time grid, on which each has its own offset: however their
// connections came about, their frames are spread evenly over the period.
static uint64_t first_due(const struct session *session, uint64_t now) {
  const struct stream *stream = session->stream;
  uint64_t period = stream->period;
  uint64_t grid = stream->epoch + period * session->index / stream->options->sessions;
  uint64_t steps = now > grid ? (now - grid + period - 1) / period : 0;
  return grid + steps * period;
}

// Preparing --------------------------------------------------------------------------------------

// What the first session that opens says holds for the summary.
static bool prepare_summary(struct stream *stream, const struct message_opened *opened) {
  struct stream_summary *summary = stream->summary;
  if (summary->opened)
    return true;
  if (stream->options->output == FRAME_DISPLACEMENT) {
    summary->largest = memory_alloc(opened->vertices, sizeof *summary->largest);
    if (!summary->largest)
      return false;
  }
  summary->opened = true;
  summary->trained = opened->trained;
  summary->vertices = opened->vertices;
  summary->delay = opened->delay;
  snprintf(summary->model, sizeof summary->model, "%s", opened->model);
  return true;
}

// Sessions of one clip get the same results, so one of each clip is enough to look at.
static bool is_first_of_clip(const struct session *session) {
  return session->index < session->stream->clip_count;
}

static bool allocate(struct session *session, const struct message_opened *opened) {
  const struct stream *stream = session->stream;
  struct transfer *transfer = &session->transfer;
  transfer->flights = memory_alloc(stream->window, sizeof *transfer->flights);
  transfer->refused = memory_alloc(stream->window, sizeof *transfer->refused);
  if (!transfer->flights || !transfer->refused ||
      result_init(&transfer->result, stream->options->output, stream->options->encoding,
                  opened->vertices, opened->latents) != 0)
    return false;
  if (!is_first_of_clip(session) && !transfer->recording && !stream->options->check_all)
    return true;
  transfer->values = memory_alloc(transfer->result.numbers, sizeof *transfer->values);
  return transfer->values != NULL;
}

static int begin_recording(struct session *session, bool first, struct dsnet_error *error) {
  const struct stream *stream = session->stream;
  struct transfer *transfer = &session->transfer;
  const struct recording_shape shape = {.kind = stream->options->output,
                                        .frames = session->frames,
                                        .numbers = transfer->result.numbers};
  if (!transfer->recording)
    return 0;
  // The first session asks for all of them, before any has written.
  double all = (double)stream->summary->wanted * (double)shape.numbers;
  int status = first ? recording_check_space(transfer->recording, all, error) : 0;
  return status == 0 ? recording_begin(transfer->recording, &shape, error) : status;
}

bool transfer_prepare(struct session *session, const struct message_opened *opened, uint64_t now) {
  struct stream *stream = session->stream;
  struct dsnet_error error = {0};
  bool first = !stream->summary->opened;
  if (!allocate(session, opened) || !prepare_summary(stream, opened)) {
    session_fail(session, STREAM_INTERNAL, 1001, "out of memory");
    return false;
  }
  if (begin_recording(session, first, &error) != 0) {
    session_fail(session, STREAM_RECORDING, 1001, "%s", error.text);
    return false;
  }
  session->transfer.base = opened->next_seq;
  session->transfer.start = first_due(session, now);
  return true;
}

// Frames [answered, frame) of a `latest` stream, which no result has come for and none will.
static void skip_to(struct session *session, size_t frame) {
  struct transfer *transfer = &session->transfer;
  for (; transfer->answered < frame; transfer->answered++)
    session->stream->summary->skipped += !flight_of(session, transfer->answered)->refused;
}

void transfer_start(struct session *session, uint64_t now) {
  struct transfer *transfer = &session->transfer;
  size_t frame = FRAME_HEADER_SIZE + transfer->result.payload_size;
  session->connection.message_max = frame > MESSAGE_SIZE_MAX ? frame : MESSAGE_SIZE_MAX;
  session->connection.discards = !transfer->values;
  skip_to(session, transfer->resume_frame);
  transfer->next = transfer->sent = transfer->resume_frame;
  transfer->has_header = false;
  result_begin(&transfer->result);
  transfer_send(session, now);
}

// Sending ----------------------------------------------------------------------------------------

// Notes that frame k is sent: for the first time, or again.
static void note_sent(struct session *session, size_t k, uint64_t now) {
  struct stream *stream = session->stream;
  struct transfer *transfer = &session->transfer;
  *refused_flag(session, k) = false;
  stream->summary->sent++;
  if (k < transfer->furthest) {
    stream->summary->resent++;
    return;
  }
  uint64_t when = due(session, k);
  bool late = stream->options->real_rate && now > when + LATE;
  *flight_of(session, k) = (struct flight){.since = late ? when : now};
  transfer->furthest = k + 1;
  if (!stream->first_send)
    stream->first_send = now;
}

static void put_frame(struct session *session, uint64_t now) {
  size_t k = session->transfer.sent++;
  const struct stream_clip *clip = session->clip;
  struct frame_pose pose = {
      .header = {.seq = seq_of(session, k), .timestamp = timestamp_of(session, k)}};
  size_t at = k % clip->frames;
  memcpy(pose.pose, clip->pose + at * FRAME_POSE_JOINTS * 3, sizeof pose.pose);
  memcpy(pose.trans, clip->trans + 3 * at, sizeof pose.trans);
  uint8_t bytes[FRAME_POSE_SIZE_MAX];
  size_t size = frame_pose_write(&pose, bytes);
  connection_send(&session->connection, WEBSOCKET_BINARY, bytes, size); // there is room
  note_sent(session, k, now);
}

void transfer_send(struct session *session, uint64_t now) {
  const struct stream *stream = session->stream;
  struct transfer *transfer = &session->transfer;
  size_t before = transfer->sent;
  if (transfer->sent == transfer->next) // nothing was owed until now
    session->last_progress = now;
  while (transfer->sent < session->frames && transfer->sent - transfer->next < stream->window &&
         connection_has_room(&session->connection, FRAME_POSE_SIZE_MAX) &&
         (!stream->options->real_rate || due(session, transfer->sent) <= now + TIMER))
    put_frame(session, now);
  if (transfer->sent > before)
    connection_flush(&session->connection);
}

// Receiving --------------------------------------------------------------------------------------

// All frames are answered. The file is finished before the session counts as good.
static void finish(struct session *session) {
  struct dsnet_error error = {0};
  struct recording *recording = session->transfer.recording;
  session->transfer.recording = NULL;
  if (recording && session->transfer.refusals)
    recording_abort(recording);
  else if (recording && recording_close(recording, session->stream->options->fps,
                                        session->opened.model, &error) != 0) {
    session_fail(session, STREAM_RECORDING, 1001, "%s", error.text);
    return;
  }
  session_finish(session);
}

// Moves past the frame just answered and past refused ones behind it.
static void advance(struct session *session) {
  struct transfer *transfer = &session->transfer;
  while (transfer->next < transfer->sent && *refused_flag(session, transfer->next))
    transfer->next++;
  if (transfer->answered < transfer->next)
    transfer->answered = transfer->next;
  if (transfer->answered == session->frames)
    finish(session);
}

static bool check_header(struct session *session) {
  const struct stream_options *options = session->stream->options;
  const struct transfer *transfer = &session->transfer;
  const struct frame_header *header = &transfer->header;
  size_t k = header->seq - transfer->base; // wraps for what was never sent
  bool latest = options->delivery == MESSAGE_DELIVERY_LATEST;
  double timestamp = timestamp_of(session, k);
  if (header->kind != options->output || header->encoding != options->encoding ||
      header->count != 0)
    session_fail(session, STREAM_PROTOCOL, 1002,
                 "frame %zu came with kind %u, encoding %u, count %u instead of kind %u, "
                 "encoding %u, count 0",
                 transfer->next, header->kind, header->encoding, header->count, options->output,
                 options->encoding);
  else if (transfer->next == transfer->sent)
    session_fail(session, STREAM_PROTOCOL, 1002, "a result with seq %u came that nothing asked for",
                 header->seq);
  else if (k != transfer->next && !(latest && k > transfer->next && k < transfer->sent))
    session_fail(session, STREAM_PROTOCOL, 1002, "a result came with seq %u instead of %u",
                 header->seq, seq_of(session, transfer->next));
  else if (memcmp(&header->timestamp, &timestamp, sizeof timestamp) != 0)
    session_fail(session, STREAM_PROTOCOL, 1002, "result %zu does not echo its frame's timestamp",
                 k);
  return session->state == SESSION_STREAMING;
}

// A result's header has come: decides what becomes of its numbers.
static bool take_header(struct session *session) {
  struct transfer *transfer = &session->transfer;
  if (!check_header(session))
    return false;
  transfer->has_header = true;
  transfer->fresh = transfer->header.seq - transfer->base >= transfer->answered;
  transfer->read = transfer->fresh && transfer->values;
  if (!transfer->read)
    connection_skip(&session->connection);
  return true;
}

// Looks at the numbers of frame k and records them. False when the session has failed.
static bool read_numbers(struct session *session, size_t k, uint64_t latency) {
  struct transfer *transfer = &session->transfer;
  const struct stream_summary *summary = session->stream->summary;
  struct dsnet_error error = {0};
  if (!result_decode(&transfer->result, transfer->values)) {
    session_fail(session, STREAM_NOT_FINITE, 1007, "result %zu has a number that is not finite", k);
    return false;
  }
  if (summary->largest && is_first_of_clip(session) &&
      session->opened.vertices == summary->vertices)
    result_note_largest(transfer->values, summary->vertices, summary->largest);
  if (transfer->recording &&
      recording_add(transfer->recording, transfer->values, transfer->header.seq,
                    (double)latency * 1e-9, &error) != 0) {
    session_fail(session, STREAM_RECORDING, 1001, "%s", error.text);
    return false;
  }
  return true;
}

static void count_latency(struct session *session, size_t frame, uint64_t latency) {
  struct stream *stream = session->stream;
  if (timestamp_of(session, frame) < stream->options->warm_up)
    return;
  histogram_record(&stream->summary->latency, latency);
  stream->summary->deadline_misses += stream->options->real_rate && latency > stream->period;
}

static void count_result(struct session *session, uint64_t latency, uint64_t now) {
  struct stream *stream = session->stream;
  struct stream_summary *summary = stream->summary;
  struct transfer *transfer = &session->transfer;
  count_latency(session, transfer->header.seq - transfer->base, latency);
  display_record(&stream->display, latency);
  summary->received++;
  if (transfer->last_result && now - transfer->last_result > summary->longest_gap)
    summary->longest_gap = now - transfer->last_result;
  stream->last_receive = transfer->last_result = now;
  session_progress(session, now);
}

static void take_result_end(struct session *session, uint64_t now) {
  struct transfer *transfer = &session->transfer;
  size_t k = transfer->header.seq - transfer->base;
  if (!transfer->has_header || !result_is_complete(&transfer->result)) {
    session_fail(session, STREAM_PROTOCOL, 1002, "result %zu is shorter than %zu numbers",
                 transfer->next, transfer->result.numbers);
    return;
  }
  if (transfer->fresh) {
    uint64_t latency = now - flight_of(session, k)->since;
    if (transfer->read && !read_numbers(session, k, latency))
      return;
    skip_to(session, k);
    count_result(session, latency, now);
    transfer->answered = k + 1;
  } else {
    session->stream->summary->repeated++;
    session->last_progress = now;
  }
  transfer->next = k + 1;
  transfer->has_header = false;
  result_begin(&transfer->result);
  advance(session);
  if (session->state == SESSION_STREAMING)
    transfer_send(session, now);
}

void transfer_take(struct session *session, const uint8_t *bytes, size_t size, bool end,
                   uint64_t now) {
  struct transfer *transfer = &session->transfer;
  if (!transfer->has_header) {
    bool whole = result_take_header(&transfer->result, &bytes, &size, &transfer->header);
    if (whole && !take_header(session))
      return;
  }
  if (!result_take_payload(&transfer->result, transfer->read ? bytes : NULL, size)) {
    session_fail(session, STREAM_PROTOCOL, 1002, "result %zu is longer than %zu numbers",
                 transfer->next, transfer->result.numbers);
    return;
  }
  if (end)
    take_result_end(session, now);
}

void transfer_take_error(struct session *session, const struct message_error *error) {
  struct transfer *transfer = &session->transfer;
  size_t k = error->seq - transfer->base; // wraps for what was never sent
  if (k < transfer->next || k >= transfer->sent || *refused_flag(session, k)) {
    session_fail(session, STREAM_PROTOCOL, 1002, "an error came for seq %u, which is not in flight",
                 error->seq);
    return;
  }
  *refused_flag(session, k) = true;
  // Of a frame that is sent again it is no news.
  if (k >= transfer->answered && !flight_of(session, k)->refused) {
    flight_of(session, k)->refused = true;
    session->stream->summary->refused++;
    if (transfer->refusals++ == 0)
      snprintf(transfer->refusal, sizeof transfer->refusal, "the server refused frame %zu: %s: %s",
               k, error->code, error->text);
  }
  advance(session);
}

// Checkpoints ------------------------------------------------------------------------------------

void transfer_take_checkpoint(struct session *session,
                              const struct message_checkpoint *checkpoint) {
  struct transfer *transfer = &session->transfer;
  size_t k = checkpoint->seq - transfer->base; // wraps for what was never sent
  bool latest = session->stream->options->delivery == MESSAGE_DELIVERY_LATEST;
  if (k >= transfer->sent) {
    session_fail(session, STREAM_PROTOCOL, 1002, "a checkpoint came for seq %u, which was not sent",
                 checkpoint->seq);
    return;
  }
  if (!checkpoint->token[0] || (k >= transfer->answered && !latest))
    return;
  char *token = strdup(checkpoint->token);
  if (!token) {
    session_fail(session, STREAM_INTERNAL, 1001, "out of memory");
    return;
  }
  free(transfer->resume_token);
  transfer->resume_token = token;
  transfer->resume_frame = k + 1;
}

void transfer_forget_checkpoint(struct transfer *transfer) {
  free(transfer->resume_token);
  transfer->resume_token = NULL;
  transfer->resume_frame = 0;
}

void transfer_deinit(struct transfer *transfer) {
  recording_abort(transfer->recording);
  transfer->recording = NULL;
  transfer_forget_checkpoint(transfer);
  result_deinit(&transfer->result);
  free(transfer->flights);
  free(transfer->refused);
  free(transfer->values);
  transfer->flights = NULL;
  transfer->refused = NULL;
  transfer->values = NULL;
}
