// SPDX-License-Identifier: Apache-2.0
// The whole network against PyTorch: files saved under torch's own names, and what torch's nn.LSTM
// and nn.Linear answer to a motion (data/make_net_golden.py).
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/safetensors.h"
#include "net/net.h"

enum { FRAMES = 12, HIDDEN = 16, LATENT = 4, VERTICES = 5, FEATURES = 214, STATE_MAX = 1000 };

static float poses[FRAMES][66], trans[FRAMES][3], betas[10], features[FRAMES][FEATURES];

// Frames of array `name` of the answers.
static void read_answers(const char *name, size_t columns, float *out) {
  struct safetensors *file;
  struct dsnet_error error = {0};
  if (safetensors_open(&file, DSNET_TEST_DATA "/net_golden_answers.safetensors", &error) ||
      safetensors_read_f32(file, name, 2, (size_t[]){FRAMES, columns}, out, &error))
    fail_msg("%s", error.text);
  safetensors_close(file);
}

static int read_motion(void **state) {
  (void)state;
  struct safetensors *file;
  read_answers("poses", 66, poses[0]);
  read_answers("trans", 3, trans[0]);
  read_answers("features", FEATURES, features[0]);
  if (safetensors_open(&file, DSNET_TEST_DATA "/net_golden_answers.safetensors", NULL))
    return -1;
  int code = safetensors_read_f32(file, "betas", 1, (size_t[]){10}, betas, NULL);
  safetensors_close(file);
  return code;
}

static void check_near(const char *what, int frame, const float *got, const float *expected,
                       size_t count, float tolerance) {
  for (size_t i = 0; i < count; i++)
    if (!(fabsf(got[i] - expected[i]) <= tolerance))
      fail_msg("%s %zu of frame %d is %.8g, not %.8g", what, i, frame, (double)got[i],
               (double)expected[i]);
}

static void check_network(size_t layers) {
  char name[256], key[32];
  float z[FRAMES][LATENT], d[FRAMES][3 * VERTICES], latent[LATENT], displacement[3 * VERTICES];
  float state[STATE_MAX] = {0};
  struct dsnet_error error = {0};
  struct net *net;
  struct net_scratch *scratch;
  snprintf(name, sizeof name, DSNET_TEST_DATA "/net_golden_%zu.safetensors", layers);
  if (net_load(&net, name, &error) || net_scratch_new(&scratch, net, 1, &error))
    fail_msg("%s", error.text);
  assert_int_equal(net_config(net)->layers, layers);
  assert_int_equal(net_config(net)->hidden, HIDDEN);
  assert_true(net_state_size(net) <= STATE_MAX);
  snprintf(key, sizeof key, "latent_%zu", layers);
  read_answers(key, LATENT, z[0]);
  snprintf(key, sizeof key, "displacement_%zu", layers);
  read_answers(key, 3 * VERTICES, d[0]);
  for (int frame = 0; frame < FRAMES; frame++) {
    const struct net_item item = {state, poses[frame], trans[frame], betas, latent, displacement};
    net_step(net, scratch, &item, 1);
    check_near("latent", frame, latent, z[frame], LATENT, 1e-5f);
    check_near("displacement", frame, displacement, d[frame], 3 * VERTICES, 1e-5f);
  }
  net_scratch_free(scratch);
  net_free(net);
}

static void one_layer_without_metadata_agrees(void **state) {
  (void)state;
  check_network(1);
}

static void two_layers_with_normalised_features_agree(void **state) {
  (void)state;
  check_network(2);
}

static void four_layers_in_half_precision_agree(void **state) {
  (void)state;
  check_network(4);
}

// Should the network disagree, this tells whether it is the features.
static void features_agree_with_those_written_in_numpy(void **state) {
  (void)state;
  const struct feature_set *set = feature_set_find("paper");
  float memory[1024] = {0}, out[FEATURES];
  assert_non_null(set);
  assert_int_equal(set->width, FEATURES);
  assert_true(set->memory <= 1024);
  for (int frame = 0; frame < FRAMES; frame++) {
    set->step(60, poses[frame], trans[frame], betas, memory, out);
    check_near("feature", frame, out, features[frame], FEATURES, 1e-5f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(features_agree_with_those_written_in_numpy),
      cmocka_unit_test(one_layer_without_metadata_agrees),
      cmocka_unit_test(two_layers_with_normalised_features_agree),
      cmocka_unit_test(four_layers_in_half_precision_agree),
  };
  return cmocka_run_group_tests(tests, read_motion, NULL);
}
