// SPDX-License-Identifier: Apache-2.0
#include "batcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "batcher_private.h"

static size_t align_up(size_t size) {
  return (size + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
}

// The offsets of what a track's block holds: the track, its state (the retimer and the values, one
// after the other), its joints.
static void lane_lay_out(struct lane *lane) {
  size_t latent = net_config(lane->net)->latent;
  lane->betas_at = net_state_size(lane->net);
  lane->latent_at = lane->betas_at + FEATURES_BETAS;
  lane->before_at = lane->latent_at + latent;
  lane->values_floats = lane->before_at + latent;
  lane->state_offset = align_up(sizeof(struct track));
  lane->values_offset = lane->state_offset + align_up(sizeof(struct retimer));
  lane->joints_offset = lane->values_offset + lane->values_floats * sizeof(float);
  lane->track_size = lane->joints_offset + BODY_JOINTS * 3 * sizeof(float);
}

static int lane_init(struct lane *lane, const struct batcher *batcher, size_t index, float **values,
                     struct dsnet_error *error) {
  size_t max_batch = batcher->settings.max_batch;
  struct pool *warm = lane_pool(lane, NET_DISPLACEMENT, NET_AS_F32);
  lane->net = batcher->nets[index];
  lane->end = &lane->first;
  lane_lay_out(lane);
  for (int encoding = NET_AS_F32; encoding <= NET_AS_I16; encoding++)
    for (int kind = NET_LATENT; kind <= NET_DISPLACEMENT; kind++) {
      struct pool *pool = lane_pool(lane, kind, encoding);
      pool_init(pool, net_output_size(lane->net, kind, encoding), pool == warm ? max_batch : 0);
    }
  int result = net_scratch_new(&lane->scratch, lane->net, max_batch, error);
  if (result == 0)
    result = net_output_scratch_new(&lane->output_scratch, lane->net, max_batch, error);
  if (result < 0)
    return result;
  *values = memory_alloc(max_batch * lane->values_floats, sizeof(float));
  bool enough = *values != NULL;
  for (size_t i = 0; enough && i < max_batch; i++)
    enough = pool_reserve(warm);
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
  shard->outputs = calloc(settings->max_batch, sizeof *shard->outputs);
  shard->placements = calloc(settings->max_batch, sizeof *shard->placements);
  shard->transforms = calloc(settings->max_batch, TRANSFORM_FLOATS * sizeof(float));
  shard->poses = calloc(settings->max_batch, POSE_FLOATS * sizeof(float));
  shard->mixtures = calloc(settings->max_batch, NET_LATENT_MAX * sizeof(float));
  shard->complete = calloc(settings->max_batch, sizeof *shard->complete);
  shard->lanes = calloc(settings->net_count, sizeof *shard->lanes);
  shard->warm_up_values = calloc(settings->net_count, sizeof(float *));
  if (!shard->items || !shard->batch || !shard->results || !shard->outputs || !shard->placements ||
      !shard->transforms || !shard->poses || !shard->mixtures || !shard->complete ||
      !shard->lanes || !shard->warm_up_values)
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
    if (pthread_create(&shard->thread, NULL, shard_run, shard)) {
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

static struct waiting_pose *pose_take(struct pose_store *store) {
  struct waiting_pose *pose = store->spare ? store->spare : malloc(sizeof *pose);
  if (!pose)
    return NULL;
  if (store->spare)
    store->spare = pose->next;
  else
    store->total++;
  store->used++;
  if (store->peak < store->used)
    store->peak = store->used;
  return pose;
}

void pose_give(struct pose_store *store, struct waiting_pose *pose) {
  pose->next = store->spare;
  store->spare = pose;
  store->used--;
}

// Frees the poses that were not needed since the last call.
static void pose_trim(struct pose_store *store) {
  while (store->spare && store->total > store->peak) {
    struct waiting_pose *pose = store->spare;
    store->spare = pose->next;
    store->total--;
    free(pose);
  }
  store->peak = store->used;
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
    if (!shard->started) // the warm-up that never ran
      lane_pool(lane, NET_DISPLACEMENT, NET_AS_F32)->reserved = 0;
    for (size_t k = 0; k < 6; k++)
      pool_deinit(&lane->pools[k / 3][k % 3]);
    net_scratch_free(lane->scratch);
    net_output_scratch_free(lane->output_scratch);
    if (shard->warm_up_values)
      free(shard->warm_up_values[i]);
  }
  shard->store.peak = 0;
  pose_trim(&shard->store);
  free(shard->items);
  free(shard->batch);
  free(shard->results);
  free(shard->outputs);
  free(shard->placements);
  free(shard->transforms);
  free(shard->poses);
  free(shard->mixtures);
  free(shard->complete);
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

struct track *track_new(struct batcher *batcher, const struct track_settings *settings) {
  struct shard *shard = least_loaded(batcher);
  struct lane *lane = &shard->lanes[settings->net];
  struct track *track = memory_alloc(1, lane->track_size); // zeroed: the start of a sequence
  if (!track)
    return NULL;
  track->shard = shard;
  track->lane = lane;
  track->settings = *settings;
  track->pool = lane_pool(lane, settings->output, settings->encoding);
  track->capacity = batcher->settings.frames_in_flight;
  track->end = &track->first;
  track->retimer = (struct retimer *)(void *)((char *)track + lane->state_offset);
  track->values = (float *)(void *)((char *)track + lane->values_offset);
  track->joints = (float *)(void *)((char *)track + lane->joints_offset);
  retimer_init(track->retimer, settings->fps, net_config(lane->net)->rate, settings->hold_glitches);
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
  bool stepping = track->state == TRACK_STEPPING;
  size_t dropped = track->waiting - stepping;
  struct waiting_pose *pose = stepping ? track->first->next : track->first;
  for (struct waiting_pose *next; pose; pose = next) {
    next = pose->next;
    if (pose == track->first && track->result) // the frame under way, between two steps
      pool_give(track->pool, track->result);
    else
      pool_unreserve(track->pool);
    free(pose->snapshot);
    pose_give(&shard->store, pose);
  }
  if (stepping)
    track->first->next = NULL;
  track->closed = true;
  pthread_mutex_unlock(&shard->lock);
  track->in_flight -= dropped;
  if (!track->in_flight)
    track_free(track);
}

void *track_owner(const struct track *track) {
  return track->settings.owner;
}

size_t track_in_flight(const struct track *track) {
  return track->in_flight;
}

static void fill_pose(struct waiting_pose *pose, const struct track_frame *frame, void *snapshot) {
  memcpy(pose->pose, frame->pose, sizeof pose->pose);
  memcpy(pose->trans, frame->trans, sizeof pose->trans);
  memcpy(pose->betas, frame->betas, sizeof pose->betas);
  pose->next = NULL;
  pose->seq = frame->seq;
  pose->timestamp = frame->timestamp;
  pose->received = frame->received;
  pose->reset = frame->flags & TRACK_RESET;
  pose->snapshot = snapshot;
}

enum track_push track_push(struct track *track, const struct track_frame *frame) {
  struct shard *shard = track->shard;
  void *snapshot = NULL;
  if (track->in_flight == track->capacity)
    return TRACK_FULL;
  if (frame->flags & TRACK_CHECKPOINT && !(snapshot = malloc(track_state_size(track))))
    return TRACK_NOMEM;
  pthread_mutex_lock(&shard->lock);
  struct waiting_pose *pose = pose_take(&shard->store);
  if (!pose || !pool_reserve(track->pool)) {
    if (pose)
      pose_give(&shard->store, pose);
    pthread_mutex_unlock(&shard->lock);
    free(snapshot);
    return TRACK_NOMEM;
  }
  fill_pose(pose, frame, snapshot);
  *track->end = pose;
  track->end = &pose->next;
  track->waiting++;
  if (track->state == TRACK_IDLE)
    lane_append(track->lane, track);
  shard->kick |= shard->sleeping;
  pthread_mutex_unlock(&shard->lock);
  track->in_flight++;
  return TRACK_PUSHED;
}

size_t track_state_size(const struct track *track) {
  return lane_state_size(track->lane);
}

const float *track_state_betas(const struct track *track, const void *state) {
  const struct lane *lane = track->lane;
  const char *values = (const char *)state + (lane->values_offset - lane->state_offset);
  return (const float *)(const void *)values + lane->betas_at;
}

// Nothing waits, so the compute thread left the state alone before it handed the last result over.
void track_save(const struct track *track, void *state) {
  assert(track->waiting == 0);
  memcpy(state, track->retimer, lane_state_size(track->lane));
}

void track_restore(struct track *track, const void *state) {
  const struct track_settings *settings = &track->settings;
  struct retimer own; // the rates and the handling of glitches are this session's
  assert(track->waiting == 0);
  retimer_init(&own, settings->fps, net_config(track->lane->net)->rate, settings->hold_glitches);
  memcpy(track->retimer, state, lane_state_size(track->lane));
  track->retimer->ratio = own.ratio;
  track->retimer->period = own.period;
  track->retimer->hold = own.hold;
  track->has_joints = false;
}

void batcher_kick(struct batcher *batcher) {
  for (size_t i = 0; i < batcher->settings.threads; i++) {
    struct shard *shard = &batcher->shards[i];
    if (shard->kick)
      pthread_cond_signal(&shard->work);
    shard->kick = false;
  }
}

void batcher_add_counts(struct batcher *batcher, struct batcher_counts *sum) {
  for (size_t i = 0; i < batcher->settings.threads; i++) {
    struct shard *shard = &batcher->shards[i];
    pthread_mutex_lock(&shard->lock);
    buckets_merge(&sum->batch_size, &shard->counts.batch_size);
    buckets_merge(&sum->step_seconds, &shard->counts.step_seconds);
    pthread_mutex_unlock(&shard->lock);
  }
}

void batcher_trim(struct batcher *batcher) {
  for (size_t i = 0; i < batcher->settings.threads; i++) {
    struct shard *shard = &batcher->shards[i];
    pthread_mutex_lock(&shard->lock);
    for (size_t k = 0; k < batcher->settings.net_count; k++)
      for (size_t p = 0; p < 6; p++)
        pool_trim(&shard->lanes[k].pools[p / 3][p % 3]);
    pose_trim(&shard->store);
    pthread_mutex_unlock(&shard->lock);
  }
}

void result_release(struct batcher *batcher, struct result *result) {
  (void)batcher;
  struct track *track = result->track;
  struct shard *shard = track->shard;
  free(result->state);
  free(result->text);
  result->state = result->text = NULL;
  pthread_mutex_lock(&shard->lock);
  pool_give(track->pool, result);
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
