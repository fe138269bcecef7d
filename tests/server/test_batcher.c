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
  uint64_t seed;
  uint32_t frames, sent, received;
  float betas[FEATURES_BETAS];
  float *state, *expected;
};

static void sender_init(struct sender *sender, struct fixture *fixture, uint64_t seed,
                        uint32_t frames) {
  *sender = (struct sender){.net = seed % 2, .seed = seed, .frames = frames};
  sender->betas[0] = (float)seed;
  const struct net *net = fixture->nets[sender->net];
  sender->state = memory_alloc(net_state_size(net), sizeof(float));
  sender->expected = memory_alloc(net_config(net)->vertices * 3, sizeof(float));
  sender->track = track_new(fixture->batcher, sender->net, sender->betas, sender);
  assert_non_null(sender->track);
  assert_ptr_equal(track_owner(sender->track), sender);
}

static void sender_deinit(struct sender *sender) {
  free(sender->state);
  free(sender->expected);
}

static void push_all_there_is_room_for(struct sender *sender) {
  while (sender->sent < sender->frames) {
    struct frame_pose pose;
    make_pose(sender->seed, sender->sent, &pose);
    size_t in_flight = track_in_flight(sender->track);
    enum track_push pushed = track_push(sender->track, &pose);
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
      sender_init(&senders[i], &fixture, i, FRAMES);
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
      sender_init(sender, &fixture, round, UINT32_MAX);
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
  sender_init(&greedy, &fixture, 0, 1);
  for (size_t i = 0; i < OTHERS; i++)
    sender_init(&others[i], &fixture, 2 + 2 * i, 1);

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

static void it_stops_with_work_still_waiting(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    struct fixture fixture;
    fixture_init(&fixture, 2, 4);
    struct sender sender;
    sender_init(&sender, &fixture, 0, IN_FLIGHT);
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
      cmocka_unit_test(it_stops_with_work_still_waiting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
