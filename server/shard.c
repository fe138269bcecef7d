// SPDX-License-Identifier: Apache-2.0
// The compute threads: each takes a frame of every track that has one waiting, steps them as one
// batch, writes what was asked for, and looks again.
#include "batcher_private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "body/pose.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "payloads are written as the machine's floats, which must be little-endian"
#endif

struct pool *lane_pool(struct lane *lane, enum net_output_kind kind,
                       enum net_output_encoding encoding) {
  return &lane->pools[kind != NET_LATENT][encoding];
}

size_t lane_state_size(const struct lane *lane) {
  return lane->joints_offset - lane->state_offset;
}

void lane_append(struct lane *lane, struct track *track) {
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
  return track->first;
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
    memcpy(result->state, track->retimer, lane_state_size(lane));
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

static void drop_pose(struct shard *shard, struct track *track) {
  struct waiting_pose *pose = track->first;
  track->first = pose->next;
  if (!track->first)
    track->end = &track->first;
  pose_give(&shard->store, pose);
}

// The frame of a track is answered: it goes on with its next one.
static void advance(struct lane *lane, struct track *track) {
  track->result = NULL;
  track->waiting--;
  if (track->waiting)
    lane_append(lane, track);
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
      lane_append(lane, track);
      continue;
    }
    if (!shard->complete[i])
      result->state = frame_of(track)->snapshot;
    drop_pose(shard, track);
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
  struct pool *pool = lane_pool(lane, NET_DISPLACEMENT, NET_AS_F32);
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

void *shard_run(void *argument) {
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
