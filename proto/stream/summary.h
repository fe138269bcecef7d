// SPDX-License-Identifier: Apache-2.0
// What a run of dsnet-stream found: counts, latencies, the largest displacement of every vertex,
// and how each session ended.
#ifndef DSNET_STREAM_SUMMARY_H
#define DSNET_STREAM_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "body/body.h"
#include "stream/histogram.h"
#include "wire/frame.h"

// How a session ended, with the name it has in JSON.
#define STREAM_OUTCOMES(X)                                                                         \
  X(OK, "ok")                       /* every frame came back */                                    \
  X(CONNECT, "connect")             /* no connection */                                            \
  X(REFUSED, "refused")             /* HTTP said no */                                             \
  X(HANDSHAKE, "handshake")         /* the answer is no valid upgrade */                           \
  X(REJECTED, "rejected")           /* an error message ended the session */                       \
  X(FRAME_REFUSED, "frame_refused") /* single frames were answered with an error */                \
  X(CLOSED, "closed")               /* the server or the network ended it early */                 \
  X(PROTOCOL, "protocol")           /* the server broke the protocol */                            \
  X(NOT_FINITE, "not_finite")       /* a number is NaN or infinite */                              \
  X(TIMEOUT, "timeout")             /* no answer for too long */                                   \
  X(RECORDING, "recording")         /* the result could not be written */                          \
  X(INTERRUPTED, "interrupted")     /* by a signal */                                              \
  X(INTERNAL, "internal")           /* this client failed, for example for memory */

enum stream_outcome {
#define X(name, text) STREAM_##name,
  STREAM_OUTCOMES(X)
#undef X
      STREAM_OUTCOME_COUNT
};

const char *stream_outcome_name(enum stream_outcome outcome);

struct stream_summary {
  size_t sessions, outcomes[STREAM_OUTCOME_COUNT]; // sessions that ended in each way
  enum stream_outcome first_outcome;               // of the first session that failed, or OK
  char first_text[384];                            // what it says to people
  uint64_t wanted; // frames of the clips of all sessions; each becomes one of these four:
  uint64_t received, refused, skipped; // skipped: by `latest` delivery; the rest is lost
  uint64_t sent, resent;    // poses; resent: again, after a reconnection, and counted in both
  uint64_t repeated;        // results that came again because of it, and were dropped
  uint64_t reconnects;      // connections that took up a stream which another had lost
  uint64_t restarts;        // of these, with every frame again, since there was no usable token
  uint64_t longest_gap;     // ns without a result in a session that had one and got another
  uint64_t deadline_misses; // real rate: latencies over one frame's time
  uint64_t bytes_received, bytes_sent;
  double seconds;     // from the first frame sent to the last received
  double cpu_seconds; // this process's own, all of the run
  bool real_rate;
  double fps;
  enum frame_kind output;
  enum frame_encoding encoding;
  bool opened, trained; // a session was opened; its model is a trained one
  char model[64];
  double delay; // seconds by which the server's results lag behind their poses
  uint32_t vertices;
  float *largest; // [vertices] squared metres of displacement; NULL when none is known; free()
  struct histogram latency; // nanoseconds
};

void stream_summary_deinit(struct stream_summary *summary);

// Records how one session ended; the first failure's text is kept.
void stream_summary_add(struct stream_summary *summary, enum stream_outcome outcome,
                        const char *text);

// Whether everything came back finite, from every session.
bool stream_summary_is_ok(const struct stream_summary *summary);

// Frames that got no answer at all.
uint64_t stream_summary_lost(const struct stream_summary *summary);

// Both print the largest displacement per region when `body` (NULL allowed) has the vertex count of
// the session, and otherwise say that it has not.
void stream_summary_print(const struct stream_summary *summary, const struct body *body, FILE *out);
// One JSON object and a newline. False when memory is out.
bool stream_summary_print_json(const struct stream_summary *summary, const struct body *body,
                               FILE *out);

#endif
