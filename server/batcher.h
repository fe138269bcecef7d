// SPDX-License-Identifier: Apache-2.0
// Steps the frames of all sessions in batches. Each session has a track: its network state and its
// waiting poses. Tracks are spread over compute threads (shards) when they are made and stay there,
// so that a track's frames are stepped in order by one thread. A thread takes every track that has
// a frame waiting, one frame of each and at most max_batch, steps them at once, and looks again:
// there is no timer, so batches grow with load and a lone frame is answered at once. Tracks queue
// behind each other, so one that has many frames waiting gets no more turns than any other.
//
// All functions are for one thread, the event loop's, but for batcher_ready, which is for any.
// Compute threads call only `wake`.
#ifndef DSNET_SERVER_BATCHER_H
#define DSNET_SERVER_BATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "body/body.h"
#include "buckets.h"
#include "net/net.h"
#include "net/output.h"
#include "pool.h"

struct batcher;
struct track;

struct batcher_settings {
  size_t threads;
  size_t max_batch;        // 1..NET_BATCH_MAX
  size_t frames_in_flight; // of one track: waiting, being stepped or not yet released
  const struct net *const *nets;
  size_t net_count;
  const struct body *body; // the nets' body, for posed vertices; outlives the batcher
  // Called by compute threads when results are there to be taken or a thread has warmed up. It may
  // be called once for many results. Must not block or call into the batcher.
  void (*wake)(void *user);
  void *user;
};

// Starts the threads. Each first runs one step of batch 1 and one of max_batch with every network.
// The nets must outlive the batcher.
int batcher_new(struct batcher **batcher, const struct batcher_settings *settings,
                struct dsnet_error *error);

// Stops the threads after their current batch and frees everything. Every track must have been
// closed and every result that was taken released.
void batcher_free(struct batcher *batcher);

// Whether every thread has warmed up.
bool batcher_ready(const struct batcher *batcher);

struct track_settings {
  size_t net; // index into the batcher's nets
  enum net_output_kind output;
  enum net_output_encoding encoding;
  double fps;         // of the frames pushed; see motion/retimer.h for what becomes of others
  bool hold_glitches; // keep joints that turn implausibly fast where they were
  bool y_up;          // of posed vertices; poses are z-up always
  void *owner;
};

// A new sequence, on the thread with the fewest tracks. It takes a state (some 7 kB for a network
// of 2 x 256); poses of some 350 bytes and result buffers only while frames are in flight. NULL
// when memory is out.
struct track *track_new(struct batcher *batcher, const struct track_settings *settings);
// Forgets the track: waiting frames are dropped, results not yet taken will not be seen. If a frame
// is being stepped, the memory goes when that batch is done.
void track_close(struct track *track);
void *track_owner(const struct track *track);

// What a frame asks for besides a result.
enum track_flags {
  TRACK_RESET = 1,      // the sequence starts anew with this frame
  TRACK_CHECKPOINT = 2, // its result carries the state after it
};

struct track_frame {
  const float *pose;  // [66] radians, z-up
  const float *trans; // [3] metres
  const float *betas; // [10]; the shape may change from frame to frame
  uint32_t seq;
  double timestamp;
  uint64_t received; // handed back with the result
  unsigned flags;
};

enum track_push { TRACK_PUSHED, TRACK_FULL, TRACK_NOMEM };
// Adds a frame, which is copied. A thread that sleeps is woken only by batcher_kick, so that what
// arrives in one turn of the loop makes one batch and one wake-up; a thread that is awake finds it
// by itself. On TRACK_FULL (frames_in_flight reached) and TRACK_NOMEM nothing has changed.
enum track_push track_push(struct track *track, const struct track_frame *frame);
// Frames pushed and not yet released.
size_t track_in_flight(const struct track *track);

// The state of a sequence as one block: what the network remembers, the betas, the latents of the
// two newest model frames and the retimer. The same network goes on from it, in this process or
// another on the same kind of machine, as if nothing had happened.
size_t track_state_size(const struct track *track); // bytes
// The betas [10] in such a block.
const float *track_state_betas(const struct track *track, const void *state);
// Only while no frame is waiting or being stepped: after the last result was taken, or before the
// first push.
void track_save(const struct track *track, void *state);
void track_restore(struct track *track, const void *state);

// Wakes the threads for which frames were pushed. To be called before the loop waits.
void batcher_kick(struct batcher *batcher);

// What the compute threads have done so far, to be added to a sum.
struct batcher_counts {
  struct buckets batch_size;   // tracks stepped at once
  struct buckets step_seconds; // of such a batch, encoding included
};
extern buckets_bounds batcher_batch_bounds, batcher_step_bounds;
void batcher_add_counts(struct batcher *batcher, struct batcher_counts *sum);

// Frees result buffers that were not needed since the last call. To be called every few seconds.
void batcher_trim(struct batcher *batcher);

// The results that are ready, linked by `next`, those of one track in order. Each has its payload
// (what the track's settings say), seq, timestamp and track, and must be released before that track
// is closed.
struct result *batcher_take(struct batcher *batcher);
void result_release(struct batcher *batcher, struct result *result);

#endif
