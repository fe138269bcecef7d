// SPDX-License-Identifier: Apache-2.0
// nn/lstm.c against the layer's equations written out in double precision. Agreement with PyTorch
// is test_net.c's matter.
#include "nn/lstm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"

enum { HIDDEN_MAX = 80, INPUTS_MAX = 50, ROWS_MAX = 30 };

// One layer's weights in PyTorch's layout, with a batch of inputs and states.
struct fixture {
  size_t inputs, hidden, rows, stride;
  float weight_ih[4 * HIDDEN_MAX * INPUTS_MAX], weight_hh[4 * HIDDEN_MAX * HIDDEN_MAX];
  float bias_ih[4 * HIDDEN_MAX], bias_hh[4 * HIDDEN_MAX];
  float x[ROWS_MAX * (INPUTS_MAX + HIDDEN_MAX)]; // input, then h
  float c[ROWS_MAX][HIDDEN_MAX + 1];             // one more, to see what is written past the end
  float h[ROWS_MAX][HIDDEN_MAX + 1];
  double expected_c[ROWS_MAX][HIDDEN_MAX], expected_h[ROWS_MAX][HIDDEN_MAX];
};

static void fill(struct random_state *random, float *values, size_t count, double limit) {
  for (size_t i = 0; i < count; i++)
    values[i] = (float)(limit * (2 * random_uniform(random) - 1));
}

static double dot(const float *a, const float *b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += (double)a[i] * (double)b[i];
  return sum;
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static void expect_unit(struct fixture *f, size_t row, size_t unit) {
  const float *x = f->x + row * f->stride;
  double gate[4];
  for (size_t g = 0; g < 4; g++) {
    size_t at = g * f->hidden + unit;
    gate[g] = (double)f->bias_ih[at] + (double)f->bias_hh[at] +
              dot(f->weight_ih + at * f->inputs, x, f->inputs) +
              dot(f->weight_hh + at * f->hidden, x + f->inputs, f->hidden);
  }
  double c = sigmoid(gate[1]) * (double)f->c[row][unit] + sigmoid(gate[0]) * tanh(gate[2]);
  f->expected_c[row][unit] = c;
  f->expected_h[row][unit] = sigmoid(gate[3]) * tanh(c);
}

static struct fixture *fixture_new(size_t inputs, size_t hidden, size_t rows) {
  struct fixture *f = calloc(1, sizeof *f);
  struct random_state random;
  assert_non_null(f);
  random_init(&random, inputs * 10007 + hidden * 101 + rows);
  f->inputs = inputs;
  f->hidden = hidden;
  f->rows = rows;
  f->stride = inputs + hidden;
  fill(&random, f->weight_ih, 4 * hidden * inputs, 0.5);
  fill(&random, f->weight_hh, 4 * hidden * hidden, 0.3);
  fill(&random, f->bias_ih, 4 * hidden, 0.5);
  fill(&random, f->bias_hh, 4 * hidden, 0.5);
  fill(&random, f->x, rows * f->stride, 1);
  for (size_t r = 0; r < rows; r++) {
    fill(&random, f->c[r], hidden, 2);
    f->c[r][hidden] = f->h[r][hidden] = 77;
    for (size_t u = 0; u < hidden; u++)
      expect_unit(f, r, u);
  }
  return f;
}

static void step(struct fixture *f, enum simd_level level) {
  static float gates[ROWS_MAX][LSTM_SCRATCH];
  float *c[ROWS_MAX], *h[ROWS_MAX], *scratch[ROWS_MAX];
  struct lstm_layer layer;
  float *storage = memory_alloc(lstm_packed_size(level, f->inputs, f->hidden), sizeof *storage);
  assert_non_null(storage);
  lstm_pack(&layer, level, f->inputs, f->hidden, f->weight_ih, f->weight_hh, f->bias_ih, f->bias_hh,
            storage);
  for (size_t r = 0; r < f->rows; r++) {
    c[r] = f->c[r];
    h[r] = f->h[r];
    scratch[r] = gates[r];
  }
  lstm_step(&layer, f->rows, f->x, f->stride, c, h, scratch);
  free(storage);
}

static void a_step_follows_the_equations(void **state) {
  (void)state;
  static const size_t hidden[] = {16, 17, 31, 32, 48, 77};
  static const size_t inputs[] = {1, 13, 50};
  static const size_t rows[] = {1, 2, 7, 30};
  for (size_t i = 0; i < 6 * 3 * 4; i++)
    for (enum simd_level level = 0; level < SIMD_LEVELS; level++) {
      if (!simd_available(level))
        continue;
      struct fixture *f = fixture_new(inputs[i / 6 % 3], hidden[i % 6], rows[i / 18]);
      step(f, level);
      for (size_t r = 0; r < f->rows; r++) {
        for (size_t u = 0; u < f->hidden; u++)
          if (!(fabs((double)f->c[r][u] - f->expected_c[r][u]) < 5e-6 &&
                fabs((double)f->h[r][u] - f->expected_h[r][u]) < 5e-6))
            fail_msg("%s, %zu inputs, %zu hidden, %zu rows: unit %zu of row %zu differs",
                     simd_name(level), f->inputs, f->hidden, f->rows, u, r);
        assert_true(f->c[r][f->hidden] == 77 && f->h[r][f->hidden] == 77);
      }
      free(f);
    }
}

static void enormous_inputs_leave_the_state_finite(void **state) {
  (void)state;
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++) {
    if (!simd_available(level))
      continue;
    struct fixture *f = fixture_new(50, 32, 3);
    for (size_t r = 0; r < f->rows; r++)
      for (size_t i = 0; i < f->inputs; i++)
        f->x[r * f->stride + i] *= r == 0 ? 1e5f : r == 1 ? 1e20f : 1e36f;
    step(f, level);
    for (size_t r = 0; r < f->rows; r++)
      for (size_t u = 0; u < f->hidden; u++) {
        assert_true(fabsf(f->h[r][u]) <= 1);
        assert_true(fabsf(f->c[r][u]) <= 3);
      }
    free(f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_step_follows_the_equations),
      cmocka_unit_test(enormous_inputs_leave_the_state_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
