// SPDX-License-Identifier: Apache-2.0
// train/bptt.c and lstm_window.c: gradients against differences and against PyTorch's
// (data/bptt.py), the state carried from window to window, and streams that do not mix.
#include "train/bptt.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "io/npz.h"

static void fill_normal(struct random_state *random, float *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    values[i] = (float)random_normal(random);
}

// A network, a window of inputs and a random direction in which the latents are summed up.
struct problem {
  struct weights_layout layout;
  struct bptt *bptt;
  size_t streams, frames;
  float *weights, *gradients, *x, *state, *d, *z;
};

static void problem_init(struct problem *p, size_t layers, bool skip) {
  memset(p, 0, sizeof *p);
  weights_layout_init(&p->layout, 5, 6, layers, 4, skip);
  p->streams = 3;
  p->frames = 8;
  assert_int_equal(bptt_new(&p->bptt, &p->layout, p->streams, p->frames, NULL), 0);
  size_t rows = p->streams * p->frames;
  p->weights = calloc(p->layout.total, sizeof(float));
  p->gradients = calloc(p->layout.total, sizeof(float));
  p->x = calloc(rows * 5, sizeof(float));
  p->d = calloc(rows * 4, sizeof(float));
  p->z = calloc(rows * 4, sizeof(float));
  p->state = calloc(bptt_state_size(&p->layout, p->streams), sizeof(float));
  struct random_state random;
  random_init(&random, 7);
  weights_randomise(&p->layout, p->weights, 1);
  if (skip)
    fill_normal(&random, p->weights + p->layout.skip_weight, 4 * 5);
  fill_normal(&random, p->x, rows * 5);
  fill_normal(&random, p->d, rows * 4);
}

static void problem_deinit(struct problem *p) {
  bptt_free(p->bptt);
  free(p->weights);
  free(p->gradients);
  free(p->x);
  free(p->d);
  free(p->z);
  free(p->state);
}

// sum d z, from a given state that is not the start of a sequence.
static double objective(struct problem *p) {
  size_t size = bptt_state_size(&p->layout, p->streams);
  for (size_t i = 0; i < size; i++)
    p->state[i] = 0.3f * sinf((float)i);
  bptt_forward(p->bptt, p->weights, p->x, p->frames, p->state, p->z);
  double sum = 0;
  for (size_t i = 0; i < p->streams * p->frames * 4; i++)
    sum += (double)p->d[i] * p->z[i];
  return sum;
}

static double objective_at(struct problem *p, size_t index, float value) {
  float before = p->weights[index];
  p->weights[index] = value;
  double result = objective(p);
  p->weights[index] = before;
  return result;
}

// Fourth-order central difference: its truncation is far below the float rounding of the forward
// pass, which a step this large keeps small too.
static double difference(struct problem *p, size_t index) {
  const float h = 0.03f, w = p->weights[index];
  return (8 * (objective_at(p, index, w + h) - objective_at(p, index, w - h)) -
          (objective_at(p, index, w + 2 * h) - objective_at(p, index, w - 2 * h))) /
         (12 * (double)h);
}

static void every_gradient_matches_its_difference(void **state) {
  (void)state;
  for (size_t layers = 1; layers <= 3; layers++) {
    struct problem p;
    problem_init(&p, layers, layers != 2);
    objective(&p);
    bptt_backward(p.bptt, p.weights, p.x, p.frames, p.d, p.gradients);
    for (size_t i = 0; i < p.layout.total; i++) {
      double expected = difference(&p, i);
      if (fabs(p.gradients[i] - expected) > 2e-4 * (1 + fabs(expected)))
        fail_msg("%zu layers, weight %zu: %.7g, difference %.7g", layers, i, (double)p.gradients[i],
                 expected);
    }
    problem_deinit(&p);
  }
}

static void gradients_add_up(void **state) {
  (void)state;
  struct problem p;
  problem_init(&p, 2, true);
  objective(&p);
  bptt_backward(p.bptt, p.weights, p.x, p.frames, p.d, p.gradients);
  float once = p.gradients[3], once_skip = p.gradients[p.layout.skip_weight];
  objective(&p);
  bptt_backward(p.bptt, p.weights, p.x, p.frames, p.d, p.gradients);
  assert_true(fabsf(p.gradients[3] - 2 * once) <= 1e-5f * fabsf(once));
  assert_true(fabsf(p.gradients[p.layout.skip_weight] - 2 * once_skip) <= 1e-5f * fabsf(once_skip));
  problem_deinit(&p);
}

static void two_short_windows_equal_one_long(void **state) {
  (void)state;
  struct problem p;
  problem_init(&p, 2, true);
  size_t half = p.frames / 2, row = p.streams * 4;
  bptt_forward(p.bptt, p.weights, p.x, p.frames, p.state, p.z);
  float *halves = calloc(p.frames * row, sizeof *halves);
  memset(p.state, 0, bptt_state_size(&p.layout, p.streams) * sizeof(float));
  bptt_forward(p.bptt, p.weights, p.x, half, p.state, halves);
  bptt_forward(p.bptt, p.weights, p.x + half * p.streams * 5, half, p.state, halves + half * row);
  for (size_t i = 0; i < p.frames * row; i++)
    assert_true(fabsf(halves[i] - p.z[i]) < 1e-6f);
  free(halves);
  problem_deinit(&p);
}

static void resetting_one_stream_leaves_the_others(void **state) {
  (void)state;
  struct problem p;
  problem_init(&p, 2, false);
  size_t row = p.streams * 4;
  bptt_forward(p.bptt, p.weights, p.x, p.frames, p.state, p.z);
  float *fresh = malloc(p.frames * row * sizeof *fresh);
  memcpy(fresh, p.z, p.frames * row * sizeof *fresh);
  bptt_state_reset(&p.layout, p.streams, 1, p.state);
  bptt_forward(p.bptt, p.weights, p.x, p.frames, p.state, p.z);
  for (size_t k = 0; k < 4; k++) {
    assert_true(p.z[4 + k] == fresh[4 + k]); // starts again
    assert_true(p.z[k] != fresh[k]);         // goes on
    assert_true(p.z[8 + k] != fresh[8 + k]);
  }
  free(fresh);
  problem_deinit(&p);
}

static void assert_near(const char *what, const float *values, const float *expected,
                        size_t count) {
  for (size_t i = 0; i < count; i++)
    if (fabsf(values[i] - expected[i]) > 1e-5f * (1 + fabsf(expected[i])))
      fail_msg("%s[%zu]: %.8g, expected %.8g", what, i, (double)values[i], (double)expected[i]);
}

static float *read_array(struct npz *npz, const char *name, int window, size_t count) {
  char full[32];
  struct npy_info info;
  float *values;
  if (window >= 0)
    snprintf(full, sizeof full, "%s%d", name, window);
  else
    snprintf(full, sizeof full, "%s", name);
  assert_int_equal(npz_read_f32(npz, full, 100000, &values, &info, NULL), 0);
  assert_int_equal(info.count, count);
  return values;
}

static void forward_and_backward_equal_pytorch(void **state) {
  (void)state;
  enum { T = 7, B = 3, F = 5, H = 6, L = 2, Z = 4 };
  struct npz *npz;
  assert_int_equal(npz_open(&npz, DSNET_TEST_DATA "/bptt.npz", NULL), 0);
  struct weights_layout layout;
  weights_layout_init(&layout, F, H, L, Z, true);
  float *weights = read_array(npz, "weights", -1, layout.total);
  struct bptt *bptt;
  assert_int_equal(bptt_new(&bptt, &layout, B, T, NULL), 0);
  float carried[L * 2 * B * H] = {0}, latents[T * B * Z];
  for (int window = 0; window < 2; window++) {
    float *x = read_array(npz, "x", window, T * B * F),
          *d = read_array(npz, "d", window, T * B * Z);
    float *z = read_array(npz, "z", window, T * B * Z);
    float *expected_state = read_array(npz, "state", window, L * 2 * B * H);
    float *expected = read_array(npz, "gradient", window, layout.total);
    float *gradients = calloc(layout.total, sizeof *gradients);
    bptt_forward(bptt, weights, x, T, carried, latents);
    bptt_backward(bptt, weights, x, T, d, gradients);
    assert_near("latents", latents, z, T * B * Z);
    assert_near("state", carried, expected_state, L * 2 * B * H);
    assert_near("gradient", gradients, expected, layout.total);
    free(x);
    free(d);
    free(z);
    free(expected_state);
    free(expected);
    free(gradients);
  }
  bptt_free(bptt);
  free(weights);
  npz_close(npz);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_gradient_matches_its_difference),
      cmocka_unit_test(gradients_add_up),
      cmocka_unit_test(two_short_windows_equal_one_long),
      cmocka_unit_test(resetting_one_stream_leaves_the_others),
      cmocka_unit_test(forward_and_backward_equal_pytorch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
