// SPDX-License-Identifier: Apache-2.0
#include "batcher.h"

#include <assert.h>
#include <cblas.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "payloads are written as the machine's floats, which must be little-endian"
#endif

struct waiting_pose {
  float pose[NET_POSE_SIZE], trans[3];
  uint32_t seq;
  double timestamp;
};

enum track_state { TRACK_IDLE, TRACK_READY, TRACK_STEPPING };

struct track {
  // Constant.
  struct shard *shard;
  struct lane *lane;
  void *owner;
  float betas[FEATURES_BETAS];
  size_t capacity; // of the ring

  // Event loop only.
  size_t in_flight;

  // Under the shard's lock.
  enum track_state state;
  bool closed;
  struct track *next; // in the lane's ready list
  size_t head, waiting;
  struct waiting_pose *ring; // [capacity]; slots of a step under way stay untouched

  // Of the thread that steps it, else at rest.
  float *values; // [net_state_size]
};

// One network's work on one shard.
struct lane {
  const struct net *net;
  size_t track_size, values_offset; // of a track's block

  // Compute thread only.
  struct net_scratch *scratch;

  // Under the shard's lock.
  struct track *first, **end; // tracks with a frame waiting, longest wait first
  struct pool pool;
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
  bool sleeping, stop;        // under the lock
  struct result *done, **end; // under the lock: completed, oldest first
  size_t turn;                // under the lock: lane that is asked first

  // Compute thread only: the batch.
  struct net_item *items;  // [max_batch]
  struct track **batch;    // [max_batch]
  struct result **results; // [max_batch]
  float **warm_up_values;  // [net_count], freed after the warm-up
  struct lane *lanes;      // [net_count]
};

struct batcher {
  struct batcher_settings settings;
  const struct net **nets; // [net_count]
  atomic_size_t warm;      // threads that have warmed up
  struct shard *shards;    // [threads]
};

static size_t displacement_size(const struct net *net) {
  return net_config(net)->vertices * 3 * sizeof(float);
}

static size_t align_up(size_t size) {
  return (size + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
}

// Compute thread ---------------------------------------------------------------------------------

static void append_ready(struct lane *lane, struct track *track) {
  track->state = TRACK_READY;
  track->next = NULL;
  *lane->end = track;
  lane->end = &track->next;
}

// The next lane with work, beginning after the one that was served last.
static struct lane *find_work(struct shard *shard) {
  size_t count = shard->batcher->settings.net_count;
  for (size_t i = 0; i < count; i++) {
    size_t at = (shard->turn + i) % count;
    if (shard->lanes[at].first) {
      shard->turn = at + 1;
      return &shard->lanes[at];
    }
  }
  return NULL;
}

// Takes one frame of each ready track. Under the lock.
static size_t gather(struct shard *shard, struct lane *lane) {
  size_t count = 0;
  while (lane->first && count < shard->batcher->settings.max_batch) {
    struct track *track = lane->first;
    lane->first = track->next;
    track->state = TRACK_STEPPING;
    struct waiting_pose *pose = &track->ring[track->head];
    struct result *result = pool_take(&lane->pool);
    result->track = track;
    result->seq = pose->seq;
    result->timestamp = pose->timestamp;
    shard->batch[count] = track;
    shard->results[count] = result;
    shard->items[count] = (struct net_item){
        .state = track->values,
        .pose = pose->pose,
        .trans = pose->trans,
        .betas = track->betas,
        .displacement = (float *)(void *)result->payload,
    };
    count++;
  }
  if (!lane->first)
    lane->end = &lane->first;
  return count;
}

// Hands the batch's results over and queues the tracks that have more. Under the lock; afterwards
// the loop may free the tracks. Returns whether the loop has to be woken.
static bool hand_over(struct shard *shard, struct lane *lane, size_t count) {
  bool was_empty = !shard->done;
  for (size_t i = 0; i < count; i++) {
    struct track *track = shard->batch[i];
    if (!track->closed) {
      track->head = (track->head + 1) % track->capacity;
      track->waiting--;
      if (track->waiting)
        append_ready(lane, track);
      else
        track->state = TRACK_IDLE;
    }
    shard->results[i]->next = NULL;
    *shard->end = shard->results[i];
    shard->end = &shard->results[i]->next;
  }
  return was_empty;
}

// One step of batch 1 and one of max_batch, so that the first client does not pay for page faults,
// cold caches and the library's own set-up. Uses buffers of the pool, which stay in it.
static void warm_up(struct shard *shard, size_t index) {
  struct lane *lane = &shard->lanes[index];
  static const float zeros[NET_POSE_SIZE + FEATURES_BETAS];
  size_t max_batch = shard->batcher->settings.max_batch, state_size = net_state_size(lane->net);
  pthread_mutex_lock(&shard->lock);
  for (size_t i = 0; i < max_batch; i++)
    shard->results[i] = pool_take(&lane->pool);
  pthread_mutex_unlock(&shard->lock);
  for (size_t i = 0; i < max_batch; i++)
    shard->items[i] = (struct net_item){
        .state = shard->warm_up_values[index] + i * state_size,
        .pose = zeros,
        .trans = zeros,
        .betas = zeros,
        .displacement = (float *)(void *)shard->results[i]->payload,
    };
  net_step(lane->net, lane->scratch, shard->items, 1);
  net_step(lane->net, lane->scratch, shard->items, max_batch);
  pthread_mutex_lock(&shard->lock);
  for (size_t i = 0; i < max_batch; i++)
    pool_give(&lane->pool, shard->results[i]);
  pthread_mutex_unlock(&shard->lock);
  free(shard->warm_up_values[index]);
  shard->warm_up_values[index] = NULL;
}

static void *run_shard(void *argument) {
  struct shard *shard = argument;
  const struct batcher_settings *settings = &shard->batcher->settings;
  for (size_t i = 0; i < settings->net_count; i++)
    warm_up(shard, i);
  atomic_fetch_add(&shard->batcher->warm, 1);
  settings->wake(settings->user);

  pthread_mutex_lock(&shard->lock);
  while (!shard->stop) {
    struct lane *lane = find_work(shard);
    if (!lane) {
      shard->sleeping = true;
      pthread_cond_wait(&shard->work, &shard->lock);
      shard->sleeping = false;
      continue;
    }
    size_t count = gather(shard, lane);
    pthread_mutex_unlock(&shard->lock);
    net_step(lane->net, lane->scratch, shard->items, count);
    pthread_mutex_lock(&shard->lock);
    if (hand_over(shard, lane, count)) {
      pthread_mutex_unlock(&shard->lock);
      settings->wake(settings->user);
      pthread_mutex_lock(&shard->lock);
    }
  }
  pthread_mutex_unlock(&shard->lock);
  return NULL;
}

// Event loop -------------------------------------------------------------------------------------

static int lane_init(struct lane *lane, const struct batcher *batcher, size_t index, float **values,
                     struct dsnet_error *error) {
  size_t max_batch = batcher->settings.max_batch;
  lane->net = batcher->nets[index];
  lane->end = &lane->first;
  size_t ring = batcher->settings.frames_in_flight * sizeof(struct waiting_pose);
  lane->values_offset = align_up(sizeof(struct track)) + align_up(ring);
  lane->track_size = lane->values_offset + net_state_size(lane->net) * sizeof(float);
  pool_init(&lane->pool, displacement_size(lane->net), max_batch);
  int result = net_scratch_new(&lane->scratch, lane->net, max_batch, error);
  if (result < 0)
    return result;
  *values = memory_alloc(max_batch * net_state_size(lane->net), sizeof(float));
  bool enough = *values != NULL;
  for (size_t i = 0; enough && i < max_batch; i++)
    enough = pool_reserve(&lane->pool);
  return enough ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the result buffers");
}

static int shard_init(struct shard *shard, struct batcher *batcher, struct dsnet_error *error) {
  const struct batcher_settings *settings = &batcher->settings;
  shard->batcher = batcher;
  shard->end = &shard->done;
  pthread_mutex_init(&shard->lock, NULL);
  pthread_cond_init(&shard->work, NULL);
  shard->items = calloc(settings->max_batch, sizeof *shard->items);
  shard->batch = calloc(settings->max_batch, sizeof(struct track *));
  shard->results = calloc(settings->max_batch, sizeof(struct result *));
  shard->lanes = calloc(settings->net_count, sizeof *shard->lanes);
  shard->warm_up_values = calloc(settings->net_count, sizeof(float *));
  if (!shard->items || !shard->batch || !shard->results || !shard->lanes || !shard->warm_up_values)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a compute thread");
  for (size_t i = 0; i < settings->net_count; i++) {
    int result = lane_init(&shard->lanes[i], batcher, i, &shard->warm_up_values[i], error);
    if (result < 0)
      return result;
  }
  return 0;
}

int batcher_new(struct batcher **out, const struct batcher_settings *settings,
                struct dsnet_error *error) {
  // Parallelism is across shards; a library that starts threads of its own would fight them.
  openblas_set_num_threads(1);
  *out = NULL;
  struct batcher *batcher = calloc(1, sizeof *batcher);
  if (!batcher)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the batcher");
  batcher->settings = *settings;
  batcher->settings.threads = 0; // how many shards there are to free
  batcher->nets = calloc(settings->net_count, sizeof(const struct net *));
  batcher->shards = calloc(settings->threads, sizeof *batcher->shards);
  int result = 0;
  if (!batcher->nets || !batcher->shards) {
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the batcher");
    goto fail;
  }
  memcpy(batcher->nets, settings->nets, settings->net_count * sizeof *batcher->nets);
  batcher->settings.nets = batcher->nets;
  for (size_t i = 0; i < settings->threads; i++) {
    batcher->settings.threads++;
    result = shard_init(&batcher->shards[i], batcher, error);
    if (result < 0)
      goto fail;
  }
  for (size_t i = 0; i < settings->threads; i++) {
    struct shard *shard = &batcher->shards[i];
    if (pthread_create(&shard->thread, NULL, run_shard, shard)) {
      result = dsnet_error_set(error, DSNET_EIO, "cannot start compute thread %zu", i);
      goto fail;
    }
    shard->started = true;
  }
  *out = batcher;
  return 0;

fail:
  batcher_free(batcher);
  return result;
}

static void shard_stop(struct shard *shard) {
  pthread_mutex_lock(&shard->lock);
  shard->stop = true;
  pthread_cond_signal(&shard->work);
  pthread_mutex_unlock(&shard->lock);
  pthread_join(shard->thread, NULL);
}

static void shard_deinit(struct shard *shard) {
  const struct batcher_settings *settings = &shard->batcher->settings;
  for (size_t i = 0; shard->lanes && i < settings->net_count; i++) {
    struct lane *lane = &shard->lanes[i];
    if (lane->pool.reserved && !shard->started) // the warm-up that never ran
      lane->pool.reserved = 0;
    pool_deinit(&lane->pool);
    net_scratch_free(lane->scratch);
    if (shard->warm_up_values)
      free(shard->warm_up_values[i]);
  }
  free(shard->items);
  free(shard->batch);
  free(shard->results);
  free(shard->lanes);
  free(shard->warm_up_values);
  pthread_cond_destroy(&shard->work);
  pthread_mutex_destroy(&shard->lock);
}

void batcher_free(struct batcher *batcher) {
  if (!batcher)
    return;
  size_t threads = batcher->settings.threads;
  for (size_t i = 0; i < threads; i++)
    if (batcher->shards[i].started)
      shard_stop(&batcher->shards[i]);
  // Closed tracks whose last batch has only now ended.
  for (struct result *result = batcher_take(batcher), *next; result; result = next) {
    next = result->next;
    result_release(batcher, result);
  }
  for (size_t i = 0; i < threads; i++)
    shard_deinit(&batcher->shards[i]);
  free(batcher->shards);
  free(batcher->nets);
  free(batcher);
}

bool batcher_ready(const struct batcher *batcher) {
  return atomic_load(&batcher->warm) == batcher->settings.threads;
}

static struct shard *least_loaded(struct batcher *batcher) {
  struct shard *best = &batcher->shards[0];
  for (size_t i = 1; i < batcher->settings.threads; i++)
    if (batcher->shards[i].tracks < best->tracks)
      best = &batcher->shards[i];
  return best;
}

struct track *track_new(struct batcher *batcher, size_t net, const float betas[FEATURES_BETAS],
                        void *owner) {
  struct shard *shard = least_loaded(batcher);
  struct lane *lane = &shard->lanes[net];
  struct track *track = memory_alloc(1, lane->track_size); // zeroed: the start of a sequence
  if (!track)
    return NULL;
  track->shard = shard;
  track->lane = lane;
  track->owner = owner;
  track->capacity = batcher->settings.frames_in_flight;
  track->ring = (struct waiting_pose *)(void *)((char *)track + align_up(sizeof *track));
  track->values = (float *)(void *)((char *)track + lane->values_offset);
  memcpy(track->betas, betas, sizeof track->betas);
  shard->tracks++;
  return track;
}

static void remove_ready(struct lane *lane, struct track *track) {
  struct track **link = &lane->first;
  while (*link != track)
    link = &(*link)->next;
  *link = track->next;
  if (!*link)
    lane->end = link;
}

static void track_free(struct track *track) {
  track->shard->tracks--;
  free(track);
}

void track_close(struct track *track) {
  struct shard *shard = track->shard;
  pthread_mutex_lock(&shard->lock);
  if (track->state == TRACK_READY)
    remove_ready(track->lane, track);
  // The frame being stepped stays in flight until its result is taken.
  size_t dropped = track->waiting - (track->state == TRACK_STEPPING);
  for (size_t i = 0; i < dropped; i++)
    pool_unreserve(&track->lane->pool);
  track->closed = true;
  pthread_mutex_unlock(&shard->lock);
  track->in_flight -= dropped;
  if (!track->in_flight)
    track_free(track);
}

void *track_owner(const struct track *track) {
  return track->owner;
}

size_t track_in_flight(const struct track *track) {
  return track->in_flight;
}

enum track_push track_push(struct track *track, const struct frame_pose *pose) {
  struct shard *shard = track->shard;
  if (track->in_flight == track->capacity)
    return TRACK_FULL;
  pthread_mutex_lock(&shard->lock);
  if (!pool_reserve(&track->lane->pool)) {
    pthread_mutex_unlock(&shard->lock);
    return TRACK_NOMEM;
  }
  struct waiting_pose *slot = &track->ring[(track->head + track->waiting) % track->capacity];
  memcpy(slot->pose, pose->pose, sizeof slot->pose);
  memcpy(slot->trans, pose->trans, sizeof slot->trans);
  slot->seq = pose->header.seq;
  slot->timestamp = pose->header.timestamp;
  track->waiting++;
  if (track->state == TRACK_IDLE)
    append_ready(track->lane, track);
  shard->kick |= shard->sleeping;
  pthread_mutex_unlock(&shard->lock);
  track->in_flight++;
  return TRACK_PUSHED;
}

void batcher_kick(struct batcher *batcher) {
  for (size_t i = 0; i < batcher->settings.threads; i++) {
    struct shard *shard = &batcher->shards[i];
    if (shard->kick)
      pthread_cond_signal(&shard->work);
    shard->kick = false;
  }
}

void batcher_trim(struct batcher *batcher) {
  for (size_t i = 0; i < batcher->settings.threads; i++) {
    struct shard *shard = &batcher->shards[i];
    pthread_mutex_lock(&shard->lock);
    for (size_t k = 0; k < batcher->settings.net_count; k++)
      pool_trim(&shard->lanes[k].pool);
    pthread_mutex_unlock(&shard->lock);
  }
}

void result_release(struct batcher *batcher, struct result *result) {
  (void)batcher;
  struct track *track = result->track;
  struct shard *shard = track->shard;
  pthread_mutex_lock(&shard->lock);
  pool_give(&track->lane->pool, result);
  pthread_mutex_unlock(&shard->lock);
  track->in_flight--;
}

// Appends the shard's results to *end, except those nobody waits for.
static struct result **take_from(struct batcher *batcher, struct shard *shard,
                                 struct result **end) {
  pthread_mutex_lock(&shard->lock);
  struct result *result = shard->done;
  shard->done = NULL;
  shard->end = &shard->done;
  pthread_mutex_unlock(&shard->lock);
  for (struct result *next; result; result = next) {
    next = result->next;
    struct track *track = result->track;
    result->next = NULL;
    if (!track->closed) { // written by this thread alone
      *end = result;
      end = &result->next;
      continue;
    }
    result_release(batcher, result);
    if (!track->in_flight)
      track_free(track);
  }
  return end;
}

struct result *batcher_take(struct batcher *batcher) {
  struct result *first = NULL, **end = &first;
  for (size_t i = 0; i < batcher->settings.threads; i++)
    end = take_from(batcher, &batcher->shards[i], end);
  return first;
}
