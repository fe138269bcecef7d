// SPDX-License-Identifier: Apache-2.0
#include "batcher.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "body/pose.h"
#include "motion/retimer.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "payloads are written as the machine's floats, which must be little-endian"
#endif

#define TRANSFORM_FLOATS (BODY_JOINTS * 12)
#define POSE_FLOATS      (NET_POSE_SIZE + 3)

struct waiting_pose {
  float pose[NET_POSE_SIZE], trans[3], betas[FEATURES_BETAS];
  uint32_t seq;
  double timestamp;
  uint64_t received;
  void *snapshot; // room for the state after it, when that was asked for
  bool reset;
};

enum track_state { TRACK_IDLE, TRACK_READY, TRACK_STEPPING };

struct track {
  // Constant.
  struct shard *shard;
  struct lane *lane;
  struct pool *pool; // of the lane, for payloads of its size
  struct track_settings settings;
  size_t capacity; // of the ring

  // Event loop only.
  size_t in_flight;

  // Under the shard's lock.
  enum track_state state;
  bool closed;
  struct track *next; // in the lane's ready list
  size_t head, waiting;
  struct waiting_pose *ring; // [capacity]; slots of a step under way stay untouched

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

static struct pool *pool_of(struct lane *lane, enum net_output_kind kind,
                            enum net_output_encoding encoding) {
  return &lane->pools[kind != NET_LATENT][encoding];
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
    if (!track->result)
      track->result = pool_take(track->pool);
    shard->batch[count] = track;
    shard->results[count] = track->result;
    count++;
  }
  if (!lane->first)
    lane->end = &lane->first;
  return count;
}

// The frame that a track under way is at.
static struct waiting_pose *frame_of(const struct track *track) {
  return &track->ring[track->head];
}

// The betas of the frame become the track's.
static void take_betas(struct track *track, const struct waiting_pose *pose) {
  float *betas = track->values + track->lane->betas_at;
  if (!memcmp(betas, pose->betas, sizeof pose->betas))
    return;
  memcpy(betas, pose->betas, sizeof pose->betas);
  track->has_joints = false;
}

static void track_reset(struct track *track, const struct lane *lane) {
  retimer_reset(track->retimer);
  memset(track->values, 0, lane->values_floats * sizeof *track->values);
  track->has_joints = false;
}

// Before a frame's first step: what it asks for takes effect, and how many steps it needs is seen.
static void plan(struct track *track, const struct lane *lane) {
  const struct waiting_pose *pose = frame_of(track);
  if (pose->reset)
    track_reset(track, lane);
  take_betas(track, pose);
  retimer_push(track->retimer, pose->pose, pose->trans, pose->timestamp, &track->plan);
  if (track->plan.restart)
    net_restart_motion(lane->net, track->values);
  track->stepped = 0;
  track->planned = true;
}

// Adds the next step of a track to the items, if its frame needs one. Returns how many there are.
static size_t add_step(struct shard *shard, const struct lane *lane, size_t i, size_t items) {
  struct track *track = shard->batch[i];
  float *latent = track->values + lane->latent_at;
  float *pose = shard->poses + items * POSE_FLOATS;
  if (track->stepped == track->plan.steps)
    return items;
  retimer_frame(track->retimer, track->stepped, pose, pose + NET_POSE_SIZE);
  memcpy(track->values + lane->before_at, latent, net_config(lane->net)->latent * sizeof *latent);
  shard->items[items] = (struct net_item){.state = track->values,
                                          .pose = pose,
                                          .trans = pose + NET_POSE_SIZE,
                                          .betas = frame_of(track)->betas,
                                          .latent = latent};
  track->stepped++;
  return items + 1;
}

// The latents of a frame's result: the newest, or a mixture of the two newest.
static const float *result_latents(struct shard *shard, const struct lane *lane, size_t i) {
  const struct track *track = shard->batch[i];
  size_t count = net_config(lane->net)->latent;
  float *newest = track->values + lane->latent_at, *before = track->values + lane->before_at;
  float *mixture = shard->mixtures + i * NET_LATENT_MAX, mix = track->plan.mix;
  if (track->plan.restart) // there is none before it
    memcpy(before, newest, count * sizeof *before);
  if (mix == 1)
    return newest;
  for (size_t k = 0; k < count; k++)
    mixture[k] = mix * newest[k] + (1 - mix) * before[k];
  return mixture;
}

// Where the body of a frame is; only those who want vertices pay for it.
static void place(struct shard *shard, size_t i) {
  struct track *track = shard->batch[i];
  const struct body *body = shard->batcher->settings.body;
  const float *betas = frame_of(track)->betas, *pose = track->retimer->pose[1];
  float *transforms = shard->transforms + i * TRANSFORM_FLOATS;
  if (!track->has_joints)
    body_shape(body, betas, FEATURES_BETAS, NULL, track->joints);
  track->has_joints = true;
  body_transforms(body, track->joints, pose, track->retimer->trans[1], transforms, NULL);
  shard->placements[i] = (struct net_placement){.body = body,
                                                .pose = pose,
                                                .betas = betas,
                                                .transforms = transforms,
                                                .y_up = track->settings.y_up};
}

static struct net_output output_of(struct shard *shard, const struct lane *lane, size_t i) {
  const struct track_settings *settings = &shard->batch[i]->settings;
  if (settings->output == NET_VERTICES)
    place(shard, i);
  return (struct net_output){.kind = settings->output,
                             .encoding = settings->encoding,
                             .latent = result_latents(shard, lane, i),
                             .placement = &shard->placements[i],
                             .payload = shard->results[i]->payload};
}

static size_t state_size(const struct lane *lane) {
  return lane->joints_offset - lane->state_offset;
}

static void fill_result(struct shard *shard, const struct lane *lane, size_t i) {
  struct track *track = shard->batch[i];
  const struct waiting_pose *pose = frame_of(track);
  struct result *result = shard->results[i];
  result->seq = pose->seq;
  result->timestamp = pose->timestamp;
  result->received = pose->received;
  result->held = track->plan.held;
  result->gap = track->plan.gap;
  result->state = pose->snapshot;
  if (result->state)
    memcpy(result->state, track->retimer, state_size(lane));
  track->planned = false;
}

// One model frame of every track of the batch that needs one, then the results of those whose
// frames are done.
static void step(struct shard *shard, struct lane *lane, size_t count) {
  size_t items = 0, outputs = 0;
  for (size_t i = 0; i < count; i++) {
    if (!shard->batch[i]->planned)
      plan(shard->batch[i], lane);
    items = add_step(shard, lane, i, items);
  }
  if (items)
    net_step(lane->net, lane->scratch, shard->items, items);
  for (size_t i = 0; i < count; i++) {
    shard->complete[i] = shard->batch[i]->stepped == shard->batch[i]->plan.steps;
    if (shard->complete[i])
      shard->outputs[outputs++] = output_of(shard, lane, i);
  }
  net_output_write(lane->net, lane->output_scratch, shard->outputs, outputs);
  for (size_t i = 0; i < count; i++)
    if (shard->complete[i])
      fill_result(shard, lane, i);
}

// The frame of a track is answered: it goes on with its next one.
static void advance(struct lane *lane, struct track *track) {
  track->result = NULL;
  track->head = (track->head + 1) % track->capacity;
  track->waiting--;
  if (track->waiting)
    append_ready(lane, track);
  else
    track->state = TRACK_IDLE;
}

// Hands the batch's results over and queues the tracks that have more. What was taken for a track
// that was closed meanwhile goes the same way, complete or not. Under the lock; afterwards the loop
// may free the tracks. Returns whether the loop has to be woken.
static bool hand_over(struct shard *shard, struct lane *lane, size_t count) {
  bool was_empty = !shard->done;
  for (size_t i = 0; i < count; i++) {
    struct track *track = shard->batch[i];
    struct result *result = shard->results[i];
    if (!track->closed && !shard->complete[i]) {
      append_ready(lane, track);
      continue;
    }
    if (!shard->complete[i])
      result->state = frame_of(track)->snapshot;
    if (!track->closed)
      advance(lane, track);
    result->track = track;
    result->next = NULL;
    *shard->end = result;
    shard->end = &result->next;
  }
  return was_empty && shard->done;
}

// One step of batch 1 and one of max_batch, so that the first client does not pay for page faults,
// cold caches and the library's own set-up. Uses buffers of the pool, which stay in it.
static void warm_up(struct shard *shard, size_t index) {
  struct lane *lane = &shard->lanes[index];
  static const float zeros[NET_POSE_SIZE + FEATURES_BETAS];
  size_t max_batch = shard->batcher->settings.max_batch;
  struct pool *pool = pool_of(lane, NET_DISPLACEMENT, NET_AS_F32);
  pthread_mutex_lock(&shard->lock);
  for (size_t i = 0; i < max_batch; i++)
    shard->results[i] = pool_take(pool);
  pthread_mutex_unlock(&shard->lock);
  for (size_t i = 0; i < max_batch; i++) {
    float *state = shard->warm_up_values[index] + i * lane->values_floats;
    shard->items[i] = (struct net_item){.state = state,
                                        .pose = zeros,
                                        .trans = zeros,
                                        .betas = zeros,
                                        .latent = state + lane->latent_at};
    shard->outputs[i] = (struct net_output){.kind = NET_DISPLACEMENT,
                                            .latent = state + lane->latent_at,
                                            .payload = shard->results[i]->payload};
  }
  for (size_t count = 1; count <= max_batch; count += max_batch > 1 ? max_batch - 1 : 1) {
    net_step(lane->net, lane->scratch, shard->items, count);
    net_output_write(lane->net, lane->output_scratch, shard->outputs, count);
  }
  pthread_mutex_lock(&shard->lock);
  for (size_t i = 0; i < max_batch; i++)
    pool_give(pool, shard->results[i]);
  pthread_mutex_unlock(&shard->lock);
  free(shard->warm_up_values[index]);
  shard->warm_up_values[index] = NULL;
}

buckets_bounds batcher_batch_bounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
buckets_bounds batcher_step_bounds = {0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032,
                                      0.0064, 0.0128, 0.0256, 0.1,    1};

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
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
    double began = seconds();
    step(shard, lane, count);
    double took = seconds() - began;
    pthread_mutex_lock(&shard->lock);
    buckets_add(&shard->counts.batch_size, batcher_batch_bounds, (double)count);
    buckets_add(&shard->counts.step_seconds, batcher_step_bounds, took);
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

// The offsets of what a track's block holds: the track, its ring, its state (the retimer and the
// values, one after the other), its joints.
static void lane_lay_out(struct lane *lane, size_t frames_in_flight) {
  size_t latent = net_config(lane->net)->latent;
  lane->betas_at = net_state_size(lane->net);
  lane->latent_at = lane->betas_at + FEATURES_BETAS;
  lane->before_at = lane->latent_at + latent;
  lane->values_floats = lane->before_at + latent;
  lane->state_offset =
      align_up(sizeof(struct track)) + align_up(frames_in_flight * sizeof(struct waiting_pose));
  lane->values_offset = lane->state_offset + align_up(sizeof(struct retimer));
  lane->joints_offset = lane->values_offset + lane->values_floats * sizeof(float);
  lane->track_size = lane->joints_offset + BODY_JOINTS * 3 * sizeof(float);
}

static int lane_init(struct lane *lane, const struct batcher *batcher, size_t index, float **values,
                     struct dsnet_error *error) {
  size_t max_batch = batcher->settings.max_batch;
  struct pool *warm = pool_of(lane, NET_DISPLACEMENT, NET_AS_F32);
  lane->net = batcher->nets[index];
  lane->end = &lane->first;
  lane_lay_out(lane, batcher->settings.frames_in_flight);
  for (int encoding = NET_AS_F32; encoding <= NET_AS_I16; encoding++)
    for (int kind = NET_LATENT; kind <= NET_DISPLACEMENT; kind++) {
      struct pool *pool = pool_of(lane, kind, encoding);
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
    if (!shard->started) // the warm-up that never ran
      pool_of(lane, NET_DISPLACEMENT, NET_AS_F32)->reserved = 0;
    for (size_t k = 0; k < 6; k++)
      pool_deinit(&lane->pools[k / 3][k % 3]);
    net_scratch_free(lane->scratch);
    net_output_scratch_free(lane->output_scratch);
    if (shard->warm_up_values)
      free(shard->warm_up_values[i]);
  }
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
  track->pool = pool_of(lane, settings->output, settings->encoding);
  track->capacity = batcher->settings.frames_in_flight;
  track->ring = (struct waiting_pose *)(void *)((char *)track + align_up(sizeof *track));
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
  size_t dropped = track->waiting - (track->state == TRACK_STEPPING);
  for (size_t i = 0; i < dropped; i++) {
    free(track->ring[(track->head + track->waiting - 1 - i) % track->capacity].snapshot);
    if (i + 1 == track->waiting && track->result) // the frame under way, between two steps
      pool_give(track->pool, track->result);
    else
      pool_unreserve(track->pool);
  }
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

static void fill_slot(struct waiting_pose *slot, const struct track_frame *frame, void *snapshot) {
  memcpy(slot->pose, frame->pose, sizeof slot->pose);
  memcpy(slot->trans, frame->trans, sizeof slot->trans);
  memcpy(slot->betas, frame->betas, sizeof slot->betas);
  slot->seq = frame->seq;
  slot->timestamp = frame->timestamp;
  slot->received = frame->received;
  slot->reset = frame->flags & TRACK_RESET;
  slot->snapshot = snapshot;
}

enum track_push track_push(struct track *track, const struct track_frame *frame) {
  struct shard *shard = track->shard;
  void *snapshot = NULL;
  if (track->in_flight == track->capacity)
    return TRACK_FULL;
  if (frame->flags & TRACK_CHECKPOINT && !(snapshot = malloc(track_state_size(track))))
    return TRACK_NOMEM;
  pthread_mutex_lock(&shard->lock);
  if (!pool_reserve(track->pool)) {
    pthread_mutex_unlock(&shard->lock);
    free(snapshot);
    return TRACK_NOMEM;
  }
  fill_slot(&track->ring[(track->head + track->waiting) % track->capacity], frame, snapshot);
  track->waiting++;
  if (track->state == TRACK_IDLE)
    append_ready(track->lane, track);
  shard->kick |= shard->sleeping;
  pthread_mutex_unlock(&shard->lock);
  track->in_flight++;
  return TRACK_PUSHED;
}

size_t track_state_size(const struct track *track) {
  return state_size(track->lane);
}

const float *track_state_betas(const struct track *track, const void *state) {
  const struct lane *lane = track->lane;
  const char *values = (const char *)state + (lane->values_offset - lane->state_offset);
  return (const float *)(const void *)values + lane->betas_at;
}

// Nothing waits, so the compute thread left the state alone before it handed the last result over.
void track_save(const struct track *track, void *state) {
  assert(track->waiting == 0);
  memcpy(state, track->retimer, state_size(track->lane));
}

void track_restore(struct track *track, const void *state) {
  const struct track_settings *settings = &track->settings;
  struct retimer own; // the rates and the handling of glitches are this session's
  assert(track->waiting == 0);
  retimer_init(&own, settings->fps, net_config(track->lane->net)->rate, settings->hold_glitches);
  memcpy(track->retimer, state, state_size(track->lane));
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

void batcher_counts(struct batcher *batcher, struct batcher_counts *counts) {
  *counts = (struct batcher_counts){0};
  for (size_t i = 0; i < batcher->settings.threads; i++) {
    struct shard *shard = &batcher->shards[i];
    pthread_mutex_lock(&shard->lock);
    buckets_merge(&counts->batch_size, &shard->counts.batch_size);
    buckets_merge(&counts->step_seconds, &shard->counts.step_seconds);
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
