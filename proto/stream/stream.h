// SPDX-License-Identifier: Apache-2.0
// Streams clips through one or several servers over any number of connections in one thread: the
// client behind dsnet-stream, and the load generator of the benchmarks.
//
// Memory is bounded and set up when a session opens: results are checked as they come in and
// dropped. Nothing is printed but the display that is asked for.
#ifndef DSNET_STREAM_STREAM_H
#define DSNET_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "stream/display.h"
#include "stream/summary.h"
#include "stream/url.h"
#include "wire/message.h"

#define STREAM_BETAS       10
#define STREAM_FRAMES_MAX  1000000000 // of a session
#define STREAM_WINDOW_MAX  4096
#define STREAM_WINDOW_FAST 8   // frames in flight at the rate max
#define STREAM_WINDOW_REAL 240 // and at the real rate

// A motion at the rate of the options, z-up. Owned by the caller, who keeps it until stream_run is
// back.
struct stream_clip {
  size_t frames;
  const float *pose;  // [frames][66] radians
  const float *trans; // [frames][3] metres
  float betas[STREAM_BETAS];
};

// What to do when a connection is lost, or none can be had. A lost stream is taken up after the
// last checkpoint whose frames have all come back: the frames after it are sent again, and results
// that come a second time are dropped. Without a checkpoint, or when the server refuses its token,
// every frame is sent again. The results are those of an uninterrupted stream in either case.
struct stream_reconnect {
  unsigned tries; // in a row that bring no new result; 0: a lost stream has failed
  double seconds; // of an outage, after which no further try begins
};

struct stream_options {
  const struct stream_url *servers; // tried in turn; session i begins with server i modulo their
  size_t server_count;              // number, which is 1 to SERVERS_MAX
  const char *token;                // bearer token, or NULL
  const char *model;                // "default"
  double fps;
  enum frame_kind output;
  enum frame_encoding encoding;
  enum message_delivery delivery;
  enum message_glitch glitch;
  uint32_t checkpoint_every; // frames; 0: no checkpoints
  struct stream_reconnect reconnect;
  bool real_rate;  // each frame at its time; else as fast as the window allows
  size_t sessions; // session i streams clip i modulo the number of clips
  size_t repeat;   // as often as this, at least once, its motion starting anew with a jump
  double warm_up;  // seconds of each stream whose latencies do not count
  size_t window;   // frames in flight per session at most; 0: the default of the rate
  double timeout;  // seconds without progress after which a connection counts as lost
  // Where to record, see recording_path; or NULL. Needs the delivery `all`.
  const char *record;
  // Look at every number that comes back. Else sessions that repeat another's clip and are not
  // recorded only make load: order, size and timestamp of their results are checked, the numbers
  // are dropped unread.
  bool check_all;
  struct display_options display;
};

// Runs all sessions to their end. `summary` starts from {0} and is complete afterwards, whatever
// the sessions' outcomes; stream_summary_deinit releases it. Fails (negative, with the error) only
// when it could not start: an unknown host, a recording that cannot be created, memory. SIGINT and
// SIGTERM end the sessions. The caller ignores SIGPIPE.
//
// Latency is counted from the moment a frame is first handed to the socket. At the real rate, a
// frame that is sent over two milliseconds late (the server or this client stalled, or there was no
// connection) counts from the moment it was due, so that a stall is not hidden by the frames it
// kept from being sent.
int stream_run(const struct stream_options *options, const struct stream_clip *clips,
               size_t clip_count, struct stream_summary *summary, struct dsnet_error *error);

#endif
