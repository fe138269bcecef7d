// SPDX-License-Identifier: Apache-2.0
// Streams clips through a server over any number of connections in one thread: the client behind
// dsnet-stream, and the load generator of the benchmarks.
//
// Memory is bounded and set up front: results are checked as they come in and dropped. Nothing is
// printed but the progress line that is asked for.
#ifndef DSNET_STREAM_STREAM_H
#define DSNET_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "stream/summary.h"
#include "stream/url.h"

#define STREAM_FPS         60
#define STREAM_BETAS       10
#define STREAM_WINDOW_MAX  4096
#define STREAM_WINDOW_FAST 8   // frames in flight at the rate max
#define STREAM_WINDOW_REAL 240 // and at the real rate: four seconds

// A motion at 60 Hz, z-up. Owned by the caller, who keeps it until stream_run is back.
struct stream_clip {
  size_t frames;
  const float *pose;  // [frames][66] radians
  const float *trans; // [frames][3] metres
  float betas[STREAM_BETAS];
};

struct stream_options {
  struct stream_url url;
  const char *token;  // bearer token, or NULL
  const char *model;  // "default"
  bool real_rate;     // each frame at its time; else as fast as the window allows
  size_t sessions;    // session i streams clip i modulo the number of clips
  size_t window;      // frames in flight per session at most; 0: the default of the rate
  double timeout;     // seconds without progress after which a session fails
  const char *output; // where to record, see recording_path; or NULL
  bool progress;      // a line on standard error, rewritten four times a second
};

// Runs all sessions to their end. `summary` starts from {0} and is complete afterwards, whatever
// the sessions' outcomes; stream_summary_deinit releases it. Fails (negative, with the error) only
// when it could not start: an unknown host, memory. SIGINT and SIGTERM end the sessions. The caller
// ignores SIGPIPE.
//
// Latency is counted from the moment a frame is handed to the socket. At the real rate, a frame
// that is sent over two milliseconds late (the server or this client stalled) counts from the
// moment it was due, so that a stall is not hidden by the frames it kept from being sent.
int stream_run(const struct stream_options *options, const struct stream_clip *clips,
               size_t clip_count, struct stream_summary *summary, struct dsnet_error *error);

#endif
