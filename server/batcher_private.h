// SPDX-License-Identifier: Apache-2.0
// The batcher's inside, shared by batcher.c (the event loop's side: tracks, frames in, results out)
// and shard.c (the compute threads' side).
#ifndef DSNET_SERVER_BATCHER_PRIVATE_H
#define DSNET_SERVER_BATCHER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "batcher.h"
#include "motion/retimer.h"

#define TRANSFORM_FLOATS (BODY_JOINTS * 12)
#define POSE_FLOATS      (NET_POSE_SIZE + 3)

struct waiting_pose {
  struct waiting_pose *next; // of the track's that wait, or of the shard's spare ones
  float pose[NET_POSE_SIZE], trans[3], betas[FEATURES_BETAS];
  uint32_t seq;
  double timestamp;
  uint64_t received;
  void *snapshot; // room for the state after it, when that was asked for
  bool reset;
};

// Poses are the shard's, so that a track that is idle holds none. Under its lock.
struct pose_store {
  struct waiting_pose *spare;
  size_t used, total;
  size_t peak; // most in use at once since the last trim
};

enum track_state { TRACK_IDLE, TRACK_READY, TRACK_STEPPING };

struct track {
  // Constant.
  struct shard *shard;
  struct lane *lane;
  struct pool *pool; // of the lane, for payloads of its size
  struct track_settings settings;
  size_t capacity; // frames in flight

  // Event loop only.
  size_t in_flight;

  // Under the shard's lock.
  enum track_state state;
  bool closed;
  struct track *next; // in the lane's ready list
  size_t waiting;
  struct waiting_pose *first, **end; // those that wait; that of a step under way is the first

  struct result *result; // taken for the frame under way, kept while that needs further steps

  // Of the thread that steps it, else at rest.
  struct retimer_plan plan; // of the frame under way, once it is planned
  uint32_t stepped;         // model frames of the plan that are done
  bool planned;
  struct retimer *retimer; // the state: the retimer, and after it
  float *values;           // the network's state, betas [10], latents [Z], those before [Z]
  float *joints;           // [24][3] rest joints of the betas, for posed vertices
  bool has_joints;         // they belong to the betas of the last frame
};

// One network's work on one shard.
struct lane {
  const struct net *net;
  size_t betas_at, latent_at, before_at, values_floats;          // of a track's values
  size_t state_offset, values_offset, joints_offset, track_size; // of a track's block, bytes

  // Compute thread only.
  struct net_scratch *scratch;
  struct net_output_scratch *output_scratch;

  // Under the shard's lock.
  struct track *first, **end; // tracks with a frame waiting, longest wait first
  struct pool pools[2][3];    // [latent or mesh][encoding]
};

// One compute thread and the tracks that live on it.
//
// `lock` covers what is marked so here, in lanes and in tracks. It is never held while stepping,
// while calling out, or together with another shard's. The loop and the thread each hold it for a
// few list operations; allocation under it happens only while a pool grows.
struct shard {
  struct batcher *batcher;
  pthread_t thread;
  bool started;
  size_t tracks; // event loop only
  bool kick;     // event loop only: it slept when a frame was pushed

  pthread_mutex_t lock;
  pthread_cond_t work;
  bool sleeping, stop;          // under the lock
  struct pose_store store;      // under the lock
  struct result *done, **end;   // under the lock: completed, oldest first
  size_t turn;                  // under the lock: lane that is asked first
  struct batcher_counts counts; // under the lock

  // Compute thread only: the batch.
  struct net_item *items;           // [max_batch]
  struct net_output *outputs;       // [max_batch]
  struct net_placement *placements; // [max_batch]
  float *transforms;                // [max_batch][24][12]
  float *poses;                     // [max_batch][POSE_FLOATS] at the model's rate
  float *mixtures;                  // [max_batch][NET_LATENT_MAX]
  bool *complete;                   // [max_batch]: this is the last step of the track's frame
  struct track **batch;             // [max_batch]
  struct result **results;          // [max_batch]
  float **warm_up_values;           // [net_count], freed after the warm-up
  struct lane *lanes;               // [net_count]
};

struct batcher {
  struct batcher_settings settings;
  const struct net **nets; // [net_count]
  atomic_size_t warm;      // threads that have warmed up
  struct shard *shards;    // [threads]
};

// The pool for payloads of that size.
struct pool *lane_pool(struct lane *lane, enum net_output_kind kind,
                       enum net_output_encoding encoding);
// Bytes of a track's state.
size_t lane_state_size(const struct lane *lane);
// Puts a track with a frame waiting at the end of its lane's line. Under the lock.
void lane_append(struct lane *lane, struct track *track);

// A pose is no longer needed. Under the lock.
void pose_give(struct pose_store *store, struct waiting_pose *pose);

// What a compute thread runs, from warming up until it is told to stop. `argument` is its shard.
void *shard_run(void *argument);

#endif
