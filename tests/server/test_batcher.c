// SPDX-License-Identifier: Apache-2.0
// The batcher with several threads: every frame is stepped once and in order, results do not depend
// on what else is in a batch, and tracks may come and go at any time. Run it under ThreadSanitizer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "batcher.h"
#include "motion/retimer.h"
#include "wire/frame.h"

#define VERTICES  20
#define IN_FLIGHT 3

// What compute threads call; the test sleeps on it as the event loop would.
struct bell {
  pthread_mutex_t lock;
  pthread_cond_t rung;
  bool ringing;
};

static void ring(void *user) {
  struct bell *bell = user;
  pthread_mutex_lock(&bell->lock);
  bell->ringing = true;
  pthread_cond_signal(&bell->rung);
  pthread_mutex_unlock(&bell->lock);
}

struct fixture {
  struct bell bell;
  struct net *nets[2]; // of different sizes
  struct batcher *batcher;
};

static void wait_for(struct fixture *fixture) {
  struct bell *bell = &fixture->bell;
  if (fixture->batcher)
    batcher_kick(fixture->batcher);
  pthread_mutex_lock(&bell->lock);
  while (!bell->ringing)
    pthread_cond_wait(&bell->rung, &bell->lock);
  bell->ringing = false;
  pthread_mutex_unlock(&bell->lock);
}

static void fixture_init(struct fixture *fixture, size_t threads, size_t max_batch) {
  memset(fixture, 0, sizeof *fixture);
  pthread_mutex_init(&fixture->bell.lock, NULL);
  pthread_cond_init(&fixture->bell.rung, NULL);
  for (size_t i = 0; i < 2; i++) {
    const struct net_config config = {.layers = 1 + i,
                                      .hidden = 16 + 16 * i,
                                      .latent = 4,
                                      .vertices = VERTICES + i,
                                      .features = feature_set_find("paper"),
                                      .rate = 60};
    assert_int_equal(net_new_random(&fixture->nets[i], &config, i, NULL), 0);
  }
  const struct batcher_settings settings = {
      .threads = threads,
      .max_batch = max_batch,
      .frames_in_flight = IN_FLIGHT,
      .nets = (const struct net *const *)fixture->nets,
      .net_count = 2,
      .wake = ring,
      .user = &fixture->bell,
  };
  assert_int_equal(batcher_new(&fixture->batcher, &settings, NULL), 0);
  while (!batcher_ready(fixture->batcher))
    wait_for(fixture);
}

static void fixture_deinit(struct fixture *fixture) {
  batcher_free(fixture->batcher);
  for (size_t i = 0; i < 2; i++)
    net_free(fixture->nets[i]);
  pthread_cond_destroy(&fixture->bell.rung);
  pthread_mutex_destroy(&fixture->bell.lock);
}

static void make_pose(uint64_t seed, uint32_t seq, struct frame_pose *pose) {
  struct random_state random;
  random_init(&random, seed * 1000003 + seq);
  memset(pose, 0, sizeof *pose);
  pose->header.seq = seq;
  pose->header.timestamp = seq / 60.0;
  for (size_t i = 0; i < NET_POSE_SIZE; i++)
    pose->pose[i] = (float)(0.3 * random_normal(&random));
  for (size_t i = 0; i < 3; i++)
    pose->trans[i] = (float)random_uniform(&random);
}

// A client: sends `frames` poses as fast as it may, and steps the same frames by itself.
struct sender {
  struct track *track;
  size_t net;
  double fps;
  uint64_t seed;
  uint32_t frames, sent, received;
  float betas[FEATURES_BETAS];
  float *state, *expected;
};

static void sender_init(struct sender *sender, struct fixture *fixture, uint64_t seed, double fps,
                        uint32_t frames) {
  *sender = (struct sender){.net = seed % 2, .fps = fps, .seed = seed, .frames = frames};
  sender->betas[0] = (float)seed;
  const struct net *net = fixture->nets[sender->net];
  sender->state = memory_alloc(net_state_size(net), sizeof(float));
  sender->expected = memory_alloc(net_config(net)->vertices * 3, sizeof(float));
  const struct track_settings settings = {
      .net = sender->net, .output = NET_DISPLACEMENT, .fps = fps, .owner = sender};
  sender->track = track_new(fixture->batcher, &settings);
  assert_non_null(sender->track);
  assert_ptr_equal(track_owner(sender->track), sender);
}

static void sender_deinit(struct sender *sender) {
  free(sender->state);
  free(sender->expected);
}

static enum track_push push_at(struct track *track, uint64_t seed, uint32_t seq, double timestamp,
                               const float betas[FEATURES_BETAS], unsigned flags) {
  struct frame_pose pose;
  make_pose(seed, seq, &pose);
  const struct track_frame frame = {.pose = pose.pose,
                                    .trans = pose.trans,
                                    .betas = betas,
                                    .seq = seq,
                                    .timestamp = timestamp,
                                    .received = 1000 + seq,
                                    .flags = flags};
  return track_push(track, &frame);
}

static enum track_push push_one(struct track *track, uint64_t seed, uint32_t seq,
                                const float betas[FEATURES_BETAS], unsigned flags) {
  return push_at(track, seed, seq, seq / 60.0, betas, flags);
}

static void push_all_there_is_room_for(struct sender *sender) {
  while (sender->sent < sender->frames) {
    size_t in_flight = track_in_flight(sender->track);
    enum track_push pushed = push_at(sender->track, sender->seed, sender->sent,
                                     sender->sent / sender->fps, sender->betas, 0);
    if (pushed == TRACK_FULL) {
      assert_int_equal(in_flight, IN_FLIGHT);
      return;
    }
    assert_int_equal(pushed, TRACK_PUSHED);
    assert_true(in_flight < IN_FLIGHT);
    sender->sent++;
  }
}

static void check_result(struct fixture *fixture, struct sender *sender, struct result *result,
                         struct net_scratch **scratch) {
  assert_int_equal(result->seq, sender->received);
  assert_true(result->timestamp == sender->received / 60.0);
  assert_int_equal(result->received, 1000 + sender->received);
  assert_null(result->state);
  struct frame_pose pose;
  make_pose(sender->seed, sender->received, &pose);
  const struct net_item item = {.state = sender->state,
                                .pose = pose.pose,
                                .trans = pose.trans,
                                .betas = sender->betas,
                                .displacement = sender->expected};
  net_step(fixture->nets[sender->net], scratch[sender->net], &item, 1);
  const float *values = (const float *)(void *)result->payload;
  size_t count = net_config(fixture->nets[sender->net])->vertices * 3;
  assert_int_equal(result->payload_size, count * sizeof(float));
  for (size_t i = 0; i < count; i++)
    assert_float_equal(values[i], sender->expected[i], 1e-6f);
  sender->received++;
}

static void every_frame_is_stepped_once_and_in_order(void **state) {
  (void)state;
  enum { SENDERS = 23, FRAMES = 60 };
  static const size_t max_batches[] = {1, 4, 64};
  for (size_t b = 0; b < 3; b++) {
    struct fixture fixture;
    fixture_init(&fixture, 3, max_batches[b]);
    struct net_scratch *scratch[2];
    for (size_t i = 0; i < 2; i++)
      assert_int_equal(net_scratch_new(&scratch[i], fixture.nets[i], 1, NULL), 0);
    struct sender senders[SENDERS];
    for (size_t i = 0; i < SENDERS; i++)
      sender_init(&senders[i], &fixture, i, 60, FRAMES);
    for (size_t done = 0; done < SENDERS * FRAMES;) {
      for (size_t i = 0; i < SENDERS; i++)
        push_all_there_is_room_for(&senders[i]);
      wait_for(&fixture);
      for (struct result *result = batcher_take(fixture.batcher), *next; result; result = next) {
        next = result->next;
        check_result(&fixture, track_owner(result->track), result, scratch);
        result_release(fixture.batcher, result);
        done++;
      }
    }
    for (size_t i = 0; i < SENDERS; i++) {
      assert_int_equal(senders[i].received, FRAMES);
      assert_int_equal(track_in_flight(senders[i].track), 0);
      track_close(senders[i].track);
      sender_deinit(&senders[i]);
    }
    for (size_t i = 0; i < 2; i++)
      net_scratch_free(scratch[i]);
    fixture_deinit(&fixture);
  }
}

static void nothing_is_seen_of_a_closed_track(void **state) {
  (void)state;
  enum { ROUNDS = 400, LIVE = 16 };
  static const double rates[] = {60, 5, 144, 50}; // many steps to a frame, and fewer than one
  struct fixture fixture;
  fixture_init(&fixture, 2, 8);
  struct sender senders[LIVE] = {{0}};
  struct random_state random;
  random_init(&random, 3);
  for (size_t round = 0; round < ROUNDS; round++) {
    struct sender *sender = &senders[random_bits(&random) % LIVE];
    if (sender->track) { // with frames waiting, being stepped, or done: whatever it is just now
      track_close(sender->track);
      sender_deinit(sender);
      sender->track = NULL;
    } else {
      sender_init(sender, &fixture, round, rates[round % 4], UINT32_MAX);
    }
    for (size_t i = 0; i < LIVE; i++)
      if (senders[i].track)
        push_all_there_is_room_for(&senders[i]);
    batcher_kick(fixture.batcher);
    if (round % 64 == 0)
      batcher_trim(fixture.batcher);
    for (struct result *result = batcher_take(fixture.batcher), *next; result; result = next) {
      next = result->next;
      struct sender *owner = track_owner(result->track);
      assert_ptr_equal(owner->track, result->track);
      assert_int_equal(result->seq, owner->received++);
      result_release(fixture.batcher, result);
    }
  }
  for (size_t i = 0; i < LIVE; i++)
    if (senders[i].track) {
      track_close(senders[i].track);
      sender_deinit(&senders[i]);
    }
  fixture_deinit(&fixture); // the leak checker looks for what closed tracks left
}

static void a_greedy_track_gets_no_more_turns_than_others(void **state) {
  (void)state;
  enum { OTHERS = 4 };
  struct fixture fixture;
  fixture_init(&fixture, 1, 1);
  struct sender greedy, others[OTHERS];
  sender_init(&greedy, &fixture, 0, 60, 1);
  for (size_t i = 0; i < OTHERS; i++)
    sender_init(&others[i], &fixture, 2 + 2 * i, 60, 1);

  // The thread hangs in `ring` after its first batch, so that all that follows is queued while it
  // cannot take anything: two more frames of the greedy track, then one of each other.
  pthread_mutex_lock(&fixture.bell.lock);
  push_all_there_is_room_for(&greedy);
  batcher_kick(fixture.batcher);
  struct result *first;
  while (!(first = batcher_take(fixture.batcher)))
    sched_yield();
  result_release(fixture.batcher, first);
  greedy.frames = IN_FLIGHT;
  push_all_there_is_room_for(&greedy);
  for (size_t i = 0; i < OTHERS; i++)
    push_all_there_is_room_for(&others[i]);
  pthread_mutex_unlock(&fixture.bell.lock);

  const struct sender *const expected[] = {&greedy,    &others[0], &others[1],
                                           &others[2], &others[3], &greedy};
  for (size_t done = 0; done < 6;) {
    wait_for(&fixture);
    for (struct result *result = batcher_take(fixture.batcher), *next; result; result = next) {
      next = result->next;
      assert_ptr_equal(track_owner(result->track), expected[done++]);
      result_release(fixture.batcher, result);
    }
  }
  track_close(greedy.track);
  sender_deinit(&greedy);
  for (size_t i = 0; i < OTHERS; i++) {
    track_close(others[i].track);
    sender_deinit(&others[i]);
  }
  fixture_deinit(&fixture);
}

// A frame that needs sixty steps takes one turn for each.
static void a_frame_of_many_steps_lets_others_pass(void **state) {
  (void)state;
  struct fixture fixture;
  fixture_init(&fixture, 1, 1);
  struct sender slow, fast;
  sender_init(&slow, &fixture, 0, 1, 1);
  sender_init(&fast, &fixture, 2, 60, IN_FLIGHT);

  // As above: all is queued while the thread hangs after the slow track's first frame.
  pthread_mutex_lock(&fixture.bell.lock);
  push_all_there_is_room_for(&slow);
  batcher_kick(fixture.batcher);
  struct result *first;
  while (!(first = batcher_take(fixture.batcher)))
    sched_yield();
  result_release(fixture.batcher, first);
  slow.frames = 2;
  push_all_there_is_room_for(&slow);
  push_all_there_is_room_for(&fast);
  pthread_mutex_unlock(&fixture.bell.lock);

  const struct sender *const expected[] = {&fast, &fast, &fast, &slow};
  for (size_t done = 0; done < 4;) {
    wait_for(&fixture);
    for (struct result *result = batcher_take(fixture.batcher), *next; result; result = next) {
      next = result->next;
      assert_ptr_equal(track_owner(result->track), expected[done++]);
      result_release(fixture.batcher, result);
    }
  }
  track_close(slow.track);
  sender_deinit(&slow);
  track_close(fast.track);
  sender_deinit(&fast);
  fixture_deinit(&fixture);
}

// What a track must make of a frame, by the book: the retimer's steps, then its mixture.
struct follower {
  const struct net *net;
  struct net_scratch *scratch;
  struct retimer retimer;
  float *values, latents[2][4]; // before, newest
};

static void follow(struct follower *follower, const struct frame_pose *pose, double timestamp,
                   const float betas[FEATURES_BETAS], struct retimer_plan *plan, float mixed[4]) {
  retimer_push(&follower->retimer, pose->pose, pose->trans, timestamp, plan);
  if (plan->restart)
    net_restart_motion(follower->net, follower->values);
  for (uint32_t step = 0; step < plan->steps; step++) {
    float stepped[NET_POSE_SIZE], trans[3];
    memcpy(follower->latents[0], follower->latents[1], sizeof follower->latents[0]);
    retimer_frame(&follower->retimer, step, stepped, trans);
    const struct net_item item = {.state = follower->values,
                                  .pose = stepped,
                                  .trans = trans,
                                  .betas = betas,
                                  .latent = follower->latents[1]};
    net_step(follower->net, follower->scratch, &item, 1);
  }
  if (plan->restart)
    memcpy(follower->latents[0], follower->latents[1], sizeof follower->latents[0]);
  for (size_t k = 0; k < 4; k++)
    mixed[k] = plan->mix * follower->latents[1][k] + (1 - plan->mix) * follower->latents[0][k];
}

// Timestamps at any rate, with poses lost and a break.
static double stamp_of(uint32_t seq, double fps) {
  return (seq + seq / 5) / fps + (seq >= 20 ? 100 : 0);
}

static void frames_of_any_rate_are_the_retimers_steps(void **state) {
  (void)state;
  enum { FRAMES = 40 };
  static const double rates[] = {1, 24, 30, 50, 59.94, 60, 120, 1000};
  static const float betas[FEATURES_BETAS] = {1, -1};
  struct fixture fixture;
  fixture_init(&fixture, 1, 4);
  for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
    struct follower follower = {.net = fixture.nets[0]};
    retimer_init(&follower.retimer, rates[r], 60, true);
    assert_int_equal(net_scratch_new(&follower.scratch, follower.net, 1, NULL), 0);
    follower.values = memory_alloc(net_state_size(follower.net), sizeof(float));
    const struct track_settings settings = {
        .net = 0, .output = NET_LATENT, .fps = rates[r], .hold_glitches = true, .owner = &fixture};
    struct track *track = track_new(fixture.batcher, &settings);
    uint32_t gaps = 0, held = 0;
    for (uint32_t seq = 0; seq < FRAMES; seq++) {
      struct frame_pose pose;
      struct retimer_plan plan;
      float mixed[4];
      make_pose(9, seq, &pose);
      follow(&follower, &pose, stamp_of(seq, rates[r]), betas, &plan, mixed);
      assert_int_equal(push_at(track, 9, seq, stamp_of(seq, rates[r]), betas, 0), TRACK_PUSHED);
      struct result *result;
      for (wait_for(&fixture); !(result = batcher_take(fixture.batcher)); wait_for(&fixture))
        ;
      const float *latents = (const float *)(const void *)result->payload;
      for (size_t k = 0; k < 4; k++)
        assert_float_equal(latents[k], mixed[k], 1e-6f);
      assert_int_equal(result->held, plan.held);
      assert_int_equal(result->gap, plan.gap);
      gaps += result->gap;
      held += result->held;
      result_release(fixture.batcher, result);
    }
    assert_int_equal(gaps, rates[r] == 1 ? 7 : 1); // a lost second is a break for the slowest
    assert_true(rates[r] < 50 || held > 0);
    track_close(track);
    free(follower.values);
    net_scratch_free(follower.scratch);
  }
  fixture_deinit(&fixture);
}

// Pushes frames from .. to - 1 of a sequence whose shape changes at frame 5 and which starts anew
// at frame 9, and takes the latents [4] of each; the state after frame 6 goes to `snapshot`.
static void run_sequence(struct fixture *fixture, struct track *track, uint32_t from, uint32_t to,
                         float (*latents)[4], void *snapshot) {
  for (uint32_t pushed = from, taken = from; taken < to;) {
    for (; pushed < to; pushed++) {
      const float betas[FEATURES_BETAS] = {pushed < 5 ? 1 : -2};
      unsigned flags = (pushed == 9 ? TRACK_RESET : 0) | (pushed == 6 ? TRACK_CHECKPOINT : 0);
      if (push_one(track, 77, pushed, betas, flags) != TRACK_PUSHED)
        break;
    }
    wait_for(fixture);
    for (struct result *result = batcher_take(fixture->batcher), *next; result; result = next) {
      next = result->next;
      assert_int_equal(result->seq, taken);
      assert_int_equal(result->payload_size, 4 * sizeof(float));
      memcpy(latents[taken], result->payload, 4 * sizeof(float));
      assert_int_equal(result->state != NULL, taken == 6);
      if (result->state)
        memcpy(snapshot, result->state, track_state_size(track));
      result_release(fixture->batcher, result);
      taken++;
    }
  }
}

static void what_a_frame_asks_for_happens_in_its_turn(void **state) {
  (void)state;
  enum { FRAMES = 14 };
  struct fixture fixture;
  fixture_init(&fixture, 1, 8);
  const struct track_settings settings = {
      .net = 0, .output = NET_LATENT, .fps = 60, .owner = &fixture};
  struct track *track = track_new(fixture.batcher, &settings);
  float latents[FRAMES][4], again[FRAMES][4];
  void *snapshot = malloc(track_state_size(track)), *last = malloc(track_state_size(track));
  run_sequence(&fixture, track, 0, FRAMES, latents, snapshot);
  track_save(track, last);
  const float *saved = track_state_betas(track, last) - net_state_size(fixture.nets[0]);
  track_close(track);

  struct net_scratch *scratch;
  const struct net *net = fixture.nets[0];
  float *values = memory_alloc(net_state_size(net), sizeof(float));
  assert_int_equal(net_scratch_new(&scratch, net, 1, NULL), 0);
  for (uint32_t seq = 0; seq < FRAMES; seq++) {
    struct frame_pose pose;
    float latent[4], betas[FEATURES_BETAS] = {seq < 5 ? 1 : -2};
    make_pose(77, seq, &pose);
    if (seq == 9)
      memset(values, 0, net_state_size(net) * sizeof *values);
    const struct net_item item = {
        .state = values, .pose = pose.pose, .trans = pose.trans, .betas = betas, .latent = latent};
    net_step(net, scratch, &item, 1);
    assert_memory_equal(latent, latents[seq], sizeof latent);
  }
  assert_memory_equal(values, saved, net_state_size(net) * sizeof *values);

  track = track_new(fixture.batcher, &settings);
  track_restore(track, snapshot);
  run_sequence(&fixture, track, 7, FRAMES, again, NULL);
  assert_memory_equal(again[7], latents[7], (FRAMES - 7) * sizeof latents[0]);
  void *end = malloc(track_state_size(track));
  track_save(track, end);
  assert_memory_equal(end, last, track_state_size(track));
  track_close(track);
  free(end);
  free(last);
  free(snapshot);
  free(values);
  net_scratch_free(scratch);
  fixture_deinit(&fixture);
}

static void checkpoints_of_a_closed_track_leak_nothing(void **state) {
  (void)state;
  static const float betas[FEATURES_BETAS];
  for (int i = 0; i < 40; i++) {
    struct fixture fixture;
    fixture_init(&fixture, 2, 4);
    const struct track_settings settings = {
        .net = 1, .output = NET_DISPLACEMENT, .encoding = NET_AS_I16, .fps = 60, .owner = &fixture};
    struct track *track = track_new(fixture.batcher, &settings);
    for (uint32_t seq = 0; seq < IN_FLIGHT; seq++)
      assert_int_equal(push_one(track, 5, seq, betas, TRACK_CHECKPOINT), TRACK_PUSHED);
    batcher_kick(fixture.batcher);
    for (int turn = 0; turn < i; turn++) // closed before, while or after its frames are stepped
      sched_yield();
    track_close(track);
    fixture_deinit(&fixture);
  }
}

static void it_stops_with_work_still_waiting(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    struct fixture fixture;
    fixture_init(&fixture, 2, 4);
    struct sender sender;
    sender_init(&sender, &fixture, 0, i % 2 ? 60 : 5, IN_FLIGHT);
    push_all_there_is_room_for(&sender);
    batcher_kick(fixture.batcher);
    track_close(sender.track);
    sender_deinit(&sender);
    fixture_deinit(&fixture);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_frame_is_stepped_once_and_in_order),
      cmocka_unit_test(nothing_is_seen_of_a_closed_track),
      cmocka_unit_test(a_greedy_track_gets_no_more_turns_than_others),
      cmocka_unit_test(a_frame_of_many_steps_lets_others_pass),
      cmocka_unit_test(frames_of_any_rate_are_the_retimers_steps),
      cmocka_unit_test(what_a_frame_asks_for_happens_in_its_turn),
      cmocka_unit_test(checkpoints_of_a_closed_track_leak_nothing),
      cmocka_unit_test(it_stops_with_work_still_waiting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
