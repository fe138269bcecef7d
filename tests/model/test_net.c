// SPDX-License-Identifier: Apache-2.0
// net/: the batched step. Agreement with PyTorch is test_net_golden.c's matter, model files are
// test_net_file.c's.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "net/internal.h"

enum { SESSIONS = 40, FRAMES = 6, VERTICES = 70, LATENT = 9, STATE_MAX = 1500 };

// Every allocation of the library passes here (the executable is linked with --wrap): counted, and
// the one whose turn it is fails.
static size_t allocations, failing = SIZE_MAX;
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size) {
  return allocations++ == failing ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
  return allocations++ == failing ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size) {
  return allocations++ == failing ? NULL : __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  return allocations++ == failing ? NULL : __real_aligned_alloc(alignment, size);
}

static struct net *new_net(size_t layers, size_t hidden, enum simd_level level) {
  struct net_config config = {.layers = layers,
                              .hidden = hidden,
                              .latent = LATENT,
                              .vertices = VERTICES,
                              .features = feature_set_find("paper"),
                              .rate = 60};
  struct dsnet_error error = {0};
  struct net *net;
  assert_non_null(config.features);
  if (net_new_random_at(&net, &config, 7, level, &error))
    fail_msg("%s", error.text);
  assert_true(net_state_size(net) <= STATE_MAX);
  return net;
}

static struct net_scratch *new_scratch(const struct net *net) {
  struct net_scratch *scratch;
  assert_int_equal(net_scratch_new(&scratch, net, SESSIONS, NULL), 0);
  return scratch;
}

// Some sessions with motions of their own, and what a network made of them.
struct sessions {
  float pose[SESSIONS][NET_POSE_SIZE], trans[SESSIONS][3], betas[SESSIONS][FEATURES_BETAS];
  float state[SESSIONS][STATE_MAX];
  float latent[SESSIONS][LATENT];
  float displacement[SESSIONS][3 * VERTICES + 1]; // one more, to see what is written past the end
};

static struct sessions *new_sessions(void) {
  struct sessions *s = calloc(1, sizeof *s);
  assert_non_null(s);
  for (size_t i = 0; i < SESSIONS; i++)
    s->displacement[i][3 * VERTICES] = 77;
  return s;
}

static void pose_session(struct sessions *s, size_t session, int frame) {
  for (int i = 0; i < NET_POSE_SIZE; i++)
    s->pose[session][i] = 0.5f * sinf(0.1f * (float)frame * (float)(1 + i % 5) + (float)session);
  for (int i = 0; i < 3; i++)
    s->trans[session][i] = 0.1f * cosf(0.2f * (float)(frame + i) + (float)session);
  for (int i = 0; i < FEATURES_BETAS; i++)
    s->betas[session][i] = (float)((session + (size_t)i) % 5) - 2;
}

static struct net_item session_item(struct sessions *s, size_t session) {
  return (struct net_item){.state = s->state[session],
                           .pose = s->pose[session],
                           .trans = s->trans[session],
                           .betas = s->betas[session],
                           .latent = s->latent[session],
                           .displacement = s->displacement[session]};
}

// Steps all sessions through frames first .. last - 1, `batch` at a time.
static void run(const struct net *net, struct sessions *s, int first, int last, size_t batch) {
  struct net_scratch *scratch = new_scratch(net);
  for (int frame = first; frame < last; frame++)
    for (size_t done = 0; done < SESSIONS; done += batch) {
      struct net_item items[SESSIONS];
      size_t count = SESSIONS - done < batch ? SESSIONS - done : batch;
      for (size_t i = 0; i < count; i++) {
        pose_session(s, done + i, frame);
        items[i] = session_item(s, done + i);
      }
      net_step(net, scratch, items, count);
    }
  net_scratch_free(scratch);
}

static void a_session_is_bitwise_the_same_in_every_batch(void **state) {
  (void)state;
  static const size_t batches[] = {2, 3, 7, 12, 13, SESSIONS};
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++) {
    if (!simd_available(level))
      continue;
    struct net *net = new_net(2, 50, level);
    struct sessions *alone = new_sessions();
    run(net, alone, 0, FRAMES, 1);
    for (size_t i = 0; i < SESSIONS; i++)
      assert_true(alone->displacement[i][3 * VERTICES] == 77);
    for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++) {
      struct sessions *together = new_sessions();
      run(net, together, 0, FRAMES, batches[b]);
      assert_memory_equal(together, alone, sizeof *alone);
      free(together);
    }
    free(alone);
    net_free(net);
  }
}

enum { STRETCH = 110 };

static void check_stretch(const struct net_config *config, enum simd_level level) {
  struct net *net;
  static float pose[STRETCH][NET_POSE_SIZE], trans[STRETCH][3], latent[STRETCH][LATENT];
  static float state[STATE_MAX];
  static const size_t parts[] = {1, 47, 1, 48, 13}; // of STRETCH, around the ends of blocks
  assert_int_equal(net_new_random_at(&net, config, 7, level, NULL), 0);
  assert_true(net_state_size(net) <= STATE_MAX);
  struct net_scratch *scratch = new_scratch(net);
  struct net_stretch *stretch;
  assert_int_equal(net_stretch_new(&stretch, net, NULL), 0);
  struct sessions *s = new_sessions();
  float expected[STRETCH][LATENT];
  for (int t = 0; t < STRETCH; t++) {
    pose_session(s, 0, t);
    memcpy(pose[t], s->pose[0], sizeof pose[t]);
    memcpy(trans[t], s->trans[0], sizeof trans[t]);
    struct net_item item = session_item(s, 0);
    item.displacement = NULL;
    net_step(net, scratch, &item, 1);
    memcpy(expected[t], s->latent[0], sizeof expected[t]);
  }
  memset(state, 0, sizeof state);
  for (size_t i = 0, done = 0; i < sizeof parts / sizeof parts[0]; done += parts[i++])
    net_step_stretch(net, stretch, state, parts[i], pose[done], trans[done], s->betas[0],
                     latent[done]);
  assert_memory_equal(latent, expected, sizeof expected);
  assert_memory_equal(state, s->state[0], net_state_size(net) * sizeof(float));
  net_stretch_free(stretch);
  net_scratch_free(scratch);
  net_free(net);
  free(s);
}

static void a_stretch_is_bitwise_what_single_steps_give(void **state) {
  (void)state;
  static const size_t hidden[] = {16, 50, 128};
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++)
    for (size_t i = 0; i < 4 * 3 && simd_available(level); i++)
      check_stretch(&(struct net_config){.layers = 1 + i % 4,
                                         .hidden = hidden[i / 4],
                                         .latent = LATENT,
                                         .vertices = VERTICES,
                                         .features = feature_set_find("paper"),
                                         .rate = 60,
                                         .skip = i % 2},
                    level);
}

static void all_levels_agree(void **state) {
  (void)state;
  struct sessions *expected = NULL;
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++) {
    if (!simd_available(level))
      continue;
    struct net *net = new_net(3, 64, level);
    struct sessions *s = new_sessions();
    run(net, s, 0, FRAMES, 5);
    for (size_t i = 0; i < SESSIONS && expected; i++) {
      for (size_t z = 0; z < LATENT; z++)
        assert_true(fabsf(s->latent[i][z] - expected->latent[i][z]) <= 1e-5f);
      for (size_t v = 0; v < 3 * VERTICES; v++)
        assert_true(fabsf(s->displacement[i][v] - expected->displacement[i][v]) <= 1e-8f);
    }
    net_free(net);
    if (expected)
      free(s);
    else
      expected = s;
  }
  free(expected);
}

static void a_step_allocates_nothing(void **state) {
  (void)state;
  struct net *net = new_net(2, 64, simd_best());
  struct net_scratch *scratch = new_scratch(net);
  struct sessions *s = new_sessions();
  struct net_item items[SESSIONS];
  size_t before = allocations;
  assert_true(before > 0); // the count works
  for (int frame = 0; frame < FRAMES; frame++) {
    for (size_t i = 0; i < SESSIONS; i++) {
      pose_session(s, i, frame);
      items[i] = session_item(s, i);
    }
    net_step(net, scratch, items, SESSIONS);
    net_decode(net, s->latent[0], s->displacement[0]);
  }
  assert_int_equal(allocations, before);
  free(s);
  net_scratch_free(scratch);
  net_free(net);
}

static void a_copied_state_continues_bitwise_equal(void **state) {
  (void)state;
  struct net *net = new_net(2, 40, simd_best());
  struct sessions *whole = new_sessions(), *resumed = new_sessions();
  run(net, whole, 0, 3, 8);
  for (size_t i = 0; i < SESSIONS; i++)
    memcpy(resumed->state[i], whole->state[i], net_state_size(net) * sizeof(float));
  run(net, whole, 3, FRAMES, 8);
  run(net, resumed, 3, FRAMES, 8);
  assert_memory_equal(resumed, whole, sizeof *whole);
  free(whole);
  free(resumed);
  net_free(net);
}

// A session may go on on a processor of another kind: same network by its hash, same motion to
// 1e-5.
static void a_state_goes_on_with_another_kernel(void **state) {
  (void)state;
  enum { MOVED = 20, LAST = 60 };
  struct net *best = new_net(2, 64, simd_best());
  struct sessions *whole = new_sessions();
  uint8_t hash[NET_HASH_SIZE], other_hash[NET_HASH_SIZE];
  net_hash(best, hash);
  run(best, whole, 0, LAST, SESSIONS);
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++) {
    if (!simd_available(level))
      continue;
    struct net *other = new_net(2, 64, level);
    struct sessions *moved = new_sessions();
    net_hash(other, other_hash);
    assert_memory_equal(hash, other_hash, sizeof hash);
    run(other, moved, 0, MOVED, SESSIONS);
    run(best, moved, MOVED, LAST, SESSIONS);
    for (size_t i = 0; i < SESSIONS; i++)
      for (size_t z = 0; z < LATENT; z++)
        assert_true(fabsf(moved->latent[i][z] - whole->latent[i][z]) <= 1e-5f);
    free(moved);
    net_free(other);
  }
  free(whole);
  net_free(best);
}

static void the_state_is_all_there_is(void **state) {
  (void)state;
  struct net *net = new_net(2, 40, simd_best());
  struct sessions *s = new_sessions();
  size_t size = net_state_size(net);
  assert_int_equal(size, 2 * 2 * 40 + net_config(net)->features->memory);
  for (size_t i = 0; i < SESSIONS; i++)
    s->state[i][size] = 77;
  run(net, s, 0, FRAMES, 8);
  for (size_t i = 0; i < SESSIONS; i++)
    assert_true(s->state[i][size] == 77);
  free(s);
  net_free(net);
}

static void outputs_that_are_not_wanted_are_left_out(void **state) {
  (void)state;
  struct net *net = new_net(1, 32, simd_best());
  struct net_scratch *scratch = new_scratch(net);
  struct sessions *all = new_sessions(), *some = new_sessions();
  struct net_item items[SESSIONS];
  run(net, all, 0, 1, SESSIONS);
  for (size_t i = 0; i < SESSIONS; i++) {
    pose_session(some, i, 0);
    items[i] = session_item(some, i);
    if (i % 3 == 0)
      items[i].latent = NULL;
    if (i % 2 == 0)
      items[i].displacement = NULL;
  }
  net_step(net, scratch, items, SESSIONS);
  for (size_t i = 0; i < SESSIONS; i++) {
    static const float untouched[3 * VERTICES];
    assert_memory_equal(some->state[i], all->state[i], sizeof all->state[i]);
    assert_memory_equal(some->latent[i], i % 3 ? all->latent[i] : untouched, sizeof all->latent[i]);
    assert_memory_equal(some->displacement[i], i % 2 ? all->displacement[i] : untouched,
                        3 * VERTICES * sizeof(float));
  }
  net_scratch_free(scratch);
  free(all);
  free(some);
  net_free(net);
}

static void decoding_a_latent_gives_the_displacement(void **state) {
  (void)state;
  struct net *net = new_net(2, 32, simd_best());
  struct sessions *s = new_sessions();
  const float *basis = net_decoder_basis(net), *mean = net_decoder_mean(net);
  float decoded[3 * VERTICES];
  run(net, s, 0, 2, SESSIONS);
  net_decode(net, s->latent[3], decoded);
  assert_memory_equal(decoded, s->displacement[3], sizeof decoded);
  for (size_t v = 0; v < 3 * VERTICES; v++) {
    double sum = (double)mean[v];
    for (size_t z = 0; z < LATENT; z++)
      sum += (double)basis[v * LATENT + z] * (double)s->latent[3][z];
    assert_true(fabs(sum - (double)decoded[v]) < 1e-8);
  }
  free(s);
  net_free(net);
}

// Joints that flip by pi and a body that jumps by kilometres, in every frame.
static void glitches_leave_everything_finite(void **state) {
  (void)state;
  struct net *net = new_net(2, 64, simd_best());
  struct net_scratch *scratch = new_scratch(net);
  struct sessions *s = new_sessions();
  struct random_state random;
  random_init(&random, 3);
  for (int frame = 0; frame < 50; frame++) {
    struct net_item item = session_item(s, 0);
    for (size_t i = 0; i < NET_POSE_SIZE; i++)
      s->pose[0][i] = (float)(6.3 * (random_uniform(&random) - 0.5));
    for (size_t i = 0; i < 3; i++)
      s->trans[0][i] = (float)(1e5 * random_uniform(&random));
    net_step(net, scratch, &item, 1);
    for (size_t i = 0; i < net_state_size(net); i++)
      assert_true(isfinite(s->state[0][i]));
    for (size_t i = 0; i < 3 * VERTICES; i++)
      assert_true(fabsf(s->displacement[0][i]) < 0.02f);
  }
  net_scratch_free(scratch);
  free(s);
  net_free(net);
}

static void a_random_network_depends_on_its_seed_alone(void **state) {
  (void)state;
  struct net_config config = {
      .layers = 2, .hidden = 32, .latent = LATENT, .vertices = VERTICES, .rate = 60};
  config.features = feature_set_find("paper");
  config.trained = true;
  struct net *a, *b, *c;
  assert_int_equal(net_new_random(&a, &config, 1, NULL), 0);
  assert_int_equal(net_new_random(&b, &config, 1, NULL), 0);
  assert_int_equal(net_new_random(&c, &config, 2, NULL), 0);
  size_t bytes = 3 * VERTICES * LATENT * sizeof(float);
  assert_memory_equal(net_decoder_basis(a), net_decoder_basis(b), bytes);
  assert_memory_not_equal(net_decoder_basis(a), net_decoder_basis(c), bytes);
  assert_false(net_config(a)->trained);
  assert_string_equal(net_provenance(a), net_provenance(b));
  assert_non_null(strstr(net_provenance(c), "\"2\""));
  net_free(a);
  net_free(b);
  net_free(c);
}

static void a_random_network_moves_by_millimetres(void **state) {
  (void)state;
  struct net *net = new_net(2, 256, simd_best());
  struct net_scratch *scratch = new_scratch(net);
  struct sessions *s = new_sessions();
  float largest = 0;
  for (int frame = 0; frame < 120; frame++) {
    struct net_item item = session_item(s, 0);
    pose_session(s, 0, frame);
    net_step(net, scratch, &item, 1);
    for (size_t i = 0; i < 3 * VERTICES; i++)
      largest = fmaxf(largest, fabsf(s->displacement[0][i]));
  }
  assert_true(largest > 1e-5f && largest < 5e-3f);
  free(s);
  net_scratch_free(scratch);
  net_free(net);
}

static void sizes_out_of_bounds_are_refused(void **state) {
  (void)state;
  static const struct {
    size_t layers, hidden, latent, vertices;
    const char *mentions;
  } cases[] = {{0, 32, 8, 9, "layers"},   {5, 32, 8, 9, "layers"},       {1, 15, 8, 9, "hidden"},
               {1, 1025, 8, 9, "hidden"}, {1, 32, 0, 9, "latents"},      {1, 32, 257, 9, "latents"},
               {1, 32, 8, 0, "vertices"}, {1, 32, 8, 200001, "vertices"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct net_config config = {cases[i].layers,
                                cases[i].hidden,
                                cases[i].latent,
                                cases[i].vertices,
                                feature_set_find("paper"),
                                60,
                                false,
                                false,
                                {0},
                                false};
    struct dsnet_error error = {0};
    struct net *net;
    assert_int_equal(net_new_random(&net, &config, 1, &error), DSNET_ELIMIT);
    assert_non_null(strstr(error.text, cases[i].mentions));
  }
}

static void a_scratch_has_a_largest_batch(void **state) {
  (void)state;
  struct net *net = new_net(1, 16, simd_best());
  struct net_scratch *scratch;
  assert_int_equal(net_scratch_new(&scratch, net, 0, NULL), DSNET_ELIMIT);
  assert_int_equal(net_scratch_new(&scratch, net, NET_BATCH_MAX + 1, NULL), DSNET_ELIMIT);
  assert_int_equal(net_scratch_new(&scratch, net, NET_BATCH_MAX, NULL), 0);
  net_scratch_free(scratch);
  net_free(net);
}

static int make_and_free(const struct net_config *config) {
  struct net *net = NULL;
  struct net_scratch *scratch = NULL;
  int code = net_new_random(&net, config, 1, NULL);
  if (!code)
    code = net_scratch_new(&scratch, net, 4, NULL);
  if (!code)
    net_scratch_free(scratch);
  net_free(net);
  return code;
}

// Leaks are the sanitizer's to find.
static void running_out_of_memory_is_an_answer(void **state) {
  (void)state;
  struct net_config config = {.layers = 1, .hidden = 16, .latent = 3, .vertices = 4, .rate = 60};
  config.features = feature_set_find("paper");
  int code = DSNET_ENOMEM;
  size_t turn = 0;
  for (; code; turn++) {
    allocations = 0;
    failing = turn;
    code = make_and_free(&config);
    failing = SIZE_MAX;
    assert_true(code == 0 || code == DSNET_ENOMEM);
  }
  assert_true(turn > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_session_is_bitwise_the_same_in_every_batch),
      cmocka_unit_test(a_stretch_is_bitwise_what_single_steps_give),
      cmocka_unit_test(all_levels_agree),
      cmocka_unit_test(a_step_allocates_nothing),
      cmocka_unit_test(a_copied_state_continues_bitwise_equal),
      cmocka_unit_test(a_state_goes_on_with_another_kernel),
      cmocka_unit_test(the_state_is_all_there_is),
      cmocka_unit_test(outputs_that_are_not_wanted_are_left_out),
      cmocka_unit_test(decoding_a_latent_gives_the_displacement),
      cmocka_unit_test(glitches_leave_everything_finite),
      cmocka_unit_test(a_random_network_depends_on_its_seed_alone),
      cmocka_unit_test(a_random_network_moves_by_millimetres),
      cmocka_unit_test(sizes_out_of_bounds_are_refused),
      cmocka_unit_test(a_scratch_has_a_largest_batch),
      cmocka_unit_test(running_out_of_memory_is_an_answer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
