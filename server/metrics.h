// SPDX-License-Identifier: Apache-2.0
// What the server counts, and how it tells: text in Prometheus' exposition format 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats). Every event loop has its own, to which it
// alone adds, and compute threads keep theirs (batcher_counts); all are added up when asked for.
#ifndef DSNET_SERVER_METRICS_H
#define DSNET_SERVER_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "batcher.h"
#include "buckets.h"
#include "wire/frame.h"

// Why a stream was refused before the upgrade: label, and what its client is told.
#define REFUSALS(X)                                                                                \
  X(DRAINING, "draining", "the server is shutting down")                                           \
  X(WARMING, "warming_up", "the models are being warmed up")                                       \
  X(SESSIONS, "sessions", "every session is taken")                                                \
  X(ADDRESS, "address", "your address has as many streams as one may have")                        \
  X(LOAD, "load", "the server is at its limit: frames of the streams it has are late")             \
  X(HANDSHAKE, "handshake", "the handshake is not one of this protocol")

enum refusal {
  REFUSAL_NONE,
#define X(name, label, text) REFUSAL_##name,
  REFUSALS(X)
#undef X
      REFUSAL_COUNT
};

const char *refusal_text(enum refusal refusal);

// Counters without labels: member, name, help.
#define METRICS_COUNTERS(X)                                                                        \
  X(opened, "dsnet_sessions_opened_total", "Sessions opened, resumed ones included.")              \
  X(resumed, "dsnet_sessions_resumed_total", "Sessions that went on from a state token.")          \
  X(frames_in, "dsnet_frames_received_total", "Poses taken.")                                      \
  X(frames_out, "dsnet_frames_answered_total", "Results handed to sockets or skipped.")            \
  X(skipped, "dsnet_frames_skipped_total", "Results that a newer one replaced.")                   \
  X(late, "dsnet_frames_late_total", "Results that took longer than a frame's period.")            \
  X(held, "dsnet_glitches_held_total", "Poses with a joint that was held.")                        \
  X(gaps, "dsnet_gaps_total", "Breaks in timestamps at which motion was taken up anew.")           \
  X(checkpoints, "dsnet_checkpoints_total", "State tokens sent.")                                  \
  X(bytes_in, "dsnet_received_bytes_total", "Bytes read from streams.")                            \
  X(bytes_out, "dsnet_sent_bytes_total", "Bytes written to streams.")                              \
  X(idle, "dsnet_streams_idle_total", "Streams closed for sending no message.")                    \
  X(unheard, "dsnet_streams_unheard_total", "Streams dropped for answering no ping.")              \
  X(requests, "dsnet_http_requests_total", "Requests answered, handshakes included.")

struct metrics {
#define X(member, name, help) uint64_t member;
  METRICS_COUNTERS(X)
#undef X
  uint64_t refused[REFUSAL_COUNT];
  uint64_t errors[WIRE_INTERNAL + 1]; // error messages sent, by code
  struct buckets latency;             // seconds from a pose's arrival to its result's queueing
};

// Starts from {0}.
void metrics_add_latency(struct metrics *metrics, double seconds);
void metrics_add(struct metrics *sum, const struct metrics *metrics);

// What is not counted but is so now.
struct metrics_gauges {
  size_t sessions, streams, in_flight, max_sessions;
  int ready, overloaded;
  double started; // seconds since the epoch
};

struct infer_counts;
struct jobs_counts;

// The whole text, to be released with free(); NULL when memory is out.
char *metrics_write(const struct metrics *metrics, const struct metrics_gauges *gauges,
                    const struct batcher_counts *counts, const struct infer_counts *infer,
                    const struct jobs_counts *jobs);

#endif
