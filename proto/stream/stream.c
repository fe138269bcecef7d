// SPDX-License-Identifier: Apache-2.0
// The run: loop, timers, signals, and the end when the last session is done.
#include "stream/stream.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <sodium.h>

#include "base/memory.h"
#include "stream/session.h"

#define PACE  1000000ull // ns between two looks at what is due
#define WATCH 100        // ms between two looks at idle sessions

void stream_pace(struct stream *stream, uint64_t now) {
  if (!stream->options->real_rate || now < stream->last_pace + PACE)
    return;
  stream->last_pace = now;
  for (size_t i = 0; i < stream->options->sessions; i++)
    if (stream->sessions[i].state == SESSION_STREAMING)
      transfer_send(&stream->sessions[i], now);
}

static void on_pace(uv_timer_t *timer) {
  struct stream *stream = timer->data;
  stream->last_pace = 0;
  stream_pace(stream, uv_hrtime());
}

static void on_watch(uv_timer_t *timer) {
  struct stream *stream = timer->data;
  uint64_t now = uv_hrtime();
  for (size_t i = 0; i < stream->options->sessions; i++)
    session_check_time(&stream->sessions[i], now);
  display_update(&stream->display, stream->summary, now);
}

static void on_signal(uv_signal_t *handle, int number) {
  struct stream *stream = handle->data;
  for (size_t i = 0; i < stream->options->sessions; i++)
    session_fail(&stream->sessions[i], STREAM_INTERRUPTED, 1001, "interrupted by signal %d",
                 number);
}

static void close_helpers(struct stream *stream) {
  uv_handle_t *handles[] = {(uv_handle_t *)&stream->pacer, (uv_handle_t *)&stream->watch,
                            (uv_handle_t *)&stream->interrupt, (uv_handle_t *)&stream->terminate};
  for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++)
    uv_close(handles[i], NULL);
}

void stream_session_done(struct stream *stream, struct session *session) {
  stream_summary_add(stream->summary, session->outcome, session->failure);
  if (--stream->live == 0)
    close_helpers(stream);
}

static int start_helpers(struct stream *stream, struct dsnet_error *error) {
  uv_loop_t *loop = &stream->loop;
  uv_timer_init(loop, &stream->pacer); // the two inits of timers cannot fail
  uv_timer_init(loop, &stream->watch);
  int status = uv_signal_init(loop, &stream->interrupt);
  if (status == 0)
    status = uv_signal_init(loop, &stream->terminate);
  if (status < 0)
    return dsnet_error_set(error, DSNET_EIO, "signals: %s", uv_strerror(status));
  stream->pacer.data = stream->watch.data = stream->interrupt.data = stream->terminate.data =
      stream;
  if (stream->options->real_rate)
    uv_timer_start(&stream->pacer, on_pace, 1, 1);
  uv_timer_start(&stream->watch, on_watch, WATCH, WATCH);
  uv_signal_start(&stream->interrupt, on_signal, SIGINT);
  uv_signal_start(&stream->terminate, on_signal, SIGTERM);
  return 0;
}

static int open_recording(struct session *session, struct dsnet_error *error) {
  const struct stream_options *options = session->stream->options;
  char path[4096];
  if (!options->record)
    return 0;
  int status =
      recording_path(path, sizeof path, options->record, session->index, options->sessions, error);
  return status == 0 ? recording_open(&session->transfer.recording, path, error) : status;
}

static int count_frames(struct session *session, struct dsnet_error *error) {
  const struct stream *stream = session->stream;
  if (!memory_multiply(session->clip->frames, stream->options->repeat, &session->frames) ||
      session->frames > STREAM_FRAMES_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "%zu frames %zu times are over the limit of %d",
                           session->clip->frames, stream->options->repeat, STREAM_FRAMES_MAX);
  stream->summary->wanted += session->frames;
  return 0;
}

static int prepare_sessions(struct stream *stream, struct dsnet_error *error) {
  int status = 0;
  for (size_t i = 0; status == 0 && i < stream->options->sessions; i++) {
    struct session *session = &stream->sessions[i];
    session->stream = stream;
    session->index = i;
    session->clip = &stream->clips[i % stream->clip_count];
    status = count_frames(session, error);
    if (status == 0)
      status = open_recording(session, error);
  }
  return status;
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void run(struct stream *stream) {
  struct stream_summary *summary = stream->summary;
  double cpu = cpu_seconds();
  stream->epoch = uv_hrtime();
  stream->live = stream->options->sessions;
  for (size_t i = 0; i < stream->options->sessions; i++)
    session_start(&stream->sessions[i]);
  uv_run(&stream->loop, UV_RUN_DEFAULT);
  summary->cpu_seconds = cpu_seconds() - cpu;
  summary->bytes_received = stream->shared.bytes_received;
  summary->bytes_sent = stream->shared.bytes_sent;
  if (stream->last_receive)
    summary->seconds = (double)(stream->last_receive - stream->first_send) * 1e-9;
  display_end(&stream->display);
}

static void close_handle(uv_handle_t *handle, void *unused) {
  (void)unused;
  uv_close(handle, NULL);
}

// Closes whatever was begun before the run could be.
static void abandon(struct stream *stream) {
  for (size_t i = 0; i < stream->options->sessions; i++)
    transfer_deinit(&stream->sessions[i].transfer);
  uv_walk(&stream->loop, close_handle, NULL);
  uv_run(&stream->loop, UV_RUN_DEFAULT);
}

static void free_stream(struct stream *stream) {
  free(stream->shared.receive);
  free(stream->sessions);
  free(stream);
}

static void prepare_summary(struct stream_summary *summary, const struct stream_options *options) {
  summary->sessions = options->sessions;
  summary->real_rate = options->real_rate;
  summary->fps = options->fps;
  summary->output = options->output;
  summary->encoding = options->encoding;
}

int stream_run(const struct stream_options *options, const struct stream_clip *clips,
               size_t clip_count, struct stream_summary *summary, struct dsnet_error *error) {
  struct stream *stream = sodium_init() < 0 ? NULL : calloc(1, sizeof *stream);
  if (!stream)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  stream->options = options;
  stream->clips = clips;
  stream->clip_count = clip_count;
  stream->summary = summary;
  stream->period = (uint64_t)(1e9 / options->fps);
  stream->display.options = options->display;
  stream->window = options->window ? options->window
                                   : (options->real_rate ? STREAM_WINDOW_REAL : STREAM_WINDOW_FAST);
  stream->shared.loop = &stream->loop;
  stream->shared.token = options->token;
  stream->shared.receive = malloc(CONNECTION_RECEIVE_SIZE);
  stream->sessions = calloc(options->sessions, sizeof *stream->sessions);
  prepare_summary(summary, options);
  int status = stream->shared.receive && stream->sessions && uv_loop_init(&stream->loop) == 0
                   ? 0
                   : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (status != 0) {
    free_stream(stream);
    return status;
  }
  status = servers_resolve(&stream->servers, &stream->loop, options->servers, options->server_count,
                           error);
  if (status == 0)
    status = prepare_sessions(stream, error);
  if (status == 0)
    status = start_helpers(stream, error);
  if (status == 0)
    run(stream);
  else
    abandon(stream);
  uv_loop_close(&stream->loop);
  free_stream(stream);
  return status;
}
