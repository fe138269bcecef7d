// SPDX-License-Identifier: Apache-2.0
// nn/gemm.c: every kernel this processor has against the reference, at every size where a loop or a
// register block ends, and the promise that a row does not depend on its batch.
#include "nn/gemm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"

#define GUARD 12345.f // what stands around results that must not be touched

static float *random_array(struct random_state *random, size_t count) {
  float *values = memory_alloc(count, sizeof *values);
  assert_non_null(values);
  for (size_t i = 0; i < count; i++)
    values[i] = (float)(2 * random_uniform(random) - 1);
  return values;
}

// One product: inputs, weights, what the reference says.
struct product {
  size_t rows, outputs, inputs, stride;
  float *x, *weight, *bias, *expected;
};

static void product_init(struct product *p, size_t rows, size_t outputs, size_t inputs) {
  struct random_state random;
  random_init(&random, rows * 1000003 + outputs * 1009 + inputs);
  *p = (struct product){.rows = rows, .outputs = outputs, .inputs = inputs, .stride = inputs + 3};
  p->x = random_array(&random, rows * p->stride);
  p->weight = random_array(&random, outputs * inputs);
  p->bias = random_array(&random, outputs);
  p->expected = memory_alloc(rows * outputs, sizeof(float));
  assert_non_null(p->expected);
  for (size_t r = 0; r < rows; r++)
    memcpy(p->expected + r * outputs, p->bias, outputs * sizeof(float));
  gemm_reference(false, true, rows, outputs, inputs, 1, p->x, p->stride, p->weight, inputs, 1,
                 p->expected, outputs);
}

static void product_deinit(struct product *p) {
  free(p->x);
  free(p->weight);
  free(p->bias);
  free(p->expected);
}

static float *pack(struct gemm_weights *weights, enum simd_level level, const struct product *p) {
  float *storage = memory_alloc(gemm_packed_size(level, p->outputs, p->inputs), sizeof *storage);
  assert_non_null(storage);
  gemm_pack_begin(weights, level, p->outputs, p->inputs, storage);
  for (size_t o = 0; o < p->outputs; o++) {
    size_t half = p->inputs / 2; // in two pieces, as recurrent layers do
    gemm_pack_row(weights, o, 0, p->weight + o * p->inputs, half);
    gemm_pack_row(weights, o, half, p->weight + o * p->inputs + half, p->inputs - half);
    gemm_pack_bias(weights, o, p->bias[o]);
  }
  return storage;
}

// Results in rows of their own, each after an odd offset and between guards.
struct results {
  float *block;
  float **rows;
};

static void results_init(struct results *results, size_t rows, size_t outputs) {
  size_t stride = outputs + 2;
  results->block = memory_alloc(rows * stride, sizeof(float));
  results->rows = calloc(rows, sizeof *results->rows);
  assert_true(results->block && results->rows);
  for (size_t i = 0; i < rows * stride; i++)
    results->block[i] = GUARD;
  for (size_t r = 0; r < rows; r++)
    results->rows[r] = results->block + (rows - 1 - r) * stride + 1; // not in order
}

static void results_deinit(struct results *results) {
  free(results->block);
  free(results->rows);
}

static void check_guards(const struct results *results, size_t rows, size_t outputs) {
  for (size_t r = 0; r < rows; r++) {
    assert_true(results->rows[r][-1] == GUARD);
    assert_true(results->rows[r][outputs] == GUARD);
  }
}

// Room for one rounding a term, on the generous side: a wrong or missing term would be some 0.3
// off.
static float tolerance(size_t inputs) {
  return 1e-6f + 1.2e-7f * (float)inputs;
}

static void check_product(enum simd_level level, size_t rows, size_t outputs, size_t inputs) {
  struct product p;
  struct results results;
  struct gemm_weights weights;
  product_init(&p, rows, outputs, inputs);
  results_init(&results, rows, outputs);
  float *storage = pack(&weights, level, &p);
  gemm_apply(&weights, rows, p.x, p.stride, results.rows);
  for (size_t r = 0; r < rows; r++)
    for (size_t o = 0; o < outputs; o++) {
      float error = fabsf(results.rows[r][o] - p.expected[r * outputs + o]);
      if (!(error <= tolerance(inputs)))
        fail_msg("%s, %zu x %zu x %zu: [%zu][%zu] is off by %g", simd_name(level), rows, outputs,
                 inputs, r, o, (double)error);
    }
  check_guards(&results, rows, outputs);
  free(storage);
  results_deinit(&results);
  product_deinit(&p);
}

static void every_kernel_agrees_with_the_reference(void **state) {
  (void)state;
  static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 23, 24, 25, 64, 65};
  static const size_t outputs[] = {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 200};
  static const size_t inputs[] = {1, 2, 7, 64, 93};
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++)
    for (size_t r = 0; r < sizeof rows / sizeof rows[0] && simd_available(level); r++)
      for (size_t o = 0; o < sizeof outputs / sizeof outputs[0]; o++)
        for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
          check_product(level, rows[r], outputs[o], inputs[i]);
}

// More panels than one cache tile holds, and a panel that fills a tile alone.
static void products_beyond_one_cache_tile_agree(void **state) {
  (void)state;
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++) {
    if (!simd_available(level))
      continue;
    check_product(level, 14, 2500, 64);
    check_product(level, 14, 300, 512);
    check_product(level, 5, 70, 5000);
  }
}

static void a_row_is_bitwise_the_same_in_every_batch(void **state) {
  (void)state;
  enum { ROWS = 29, OUTPUTS = 150, INPUTS = 70 };
  struct product p;
  product_init(&p, ROWS, OUTPUTS, INPUTS);
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++) {
    struct gemm_weights weights;
    struct results alone, together;
    if (!simd_available(level))
      continue;
    float *storage = pack(&weights, level, &p);
    results_init(&alone, ROWS, OUTPUTS);
    for (size_t r = 0; r < ROWS; r++)
      gemm_apply(&weights, 1, p.x + r * p.stride, p.stride, alone.rows + r);
    for (size_t batch = 2; batch <= ROWS; batch++) {
      results_init(&together, batch, OUTPUTS);
      gemm_apply(&weights, batch, p.x, p.stride, together.rows);
      for (size_t r = 0; r < batch; r++)
        assert_memory_equal(together.rows[r], alone.rows[r], OUTPUTS * sizeof(float));
      results_deinit(&together);
    }
    results_deinit(&alone);
    free(storage);
  }
  product_deinit(&p);
}

static void levels_with_fused_multiply_add_are_bitwise_equal(void **state) {
  (void)state;
  enum { ROWS = 13, OUTPUTS = 100, INPUTS = 77 };
  struct product p;
  struct gemm_weights weights;
  struct results first, second;
  if (!simd_available(SIMD_AVX512)) {
    print_message("skipped: this processor has no AVX-512\n");
    skip();
  }
  product_init(&p, ROWS, OUTPUTS, INPUTS);
  results_init(&first, ROWS, OUTPUTS);
  results_init(&second, ROWS, OUTPUTS);
  float *storage = pack(&weights, SIMD_AVX2, &p);
  gemm_apply(&weights, ROWS, p.x, p.stride, first.rows);
  free(storage);
  storage = pack(&weights, SIMD_AVX512, &p);
  gemm_apply(&weights, ROWS, p.x, p.stride, second.rows);
  free(storage);
  for (size_t r = 0; r < ROWS; r++)
    assert_memory_equal(first.rows[r], second.rows[r], OUTPUTS * sizeof(float));
  results_deinit(&first);
  results_deinit(&second);
  product_deinit(&p);
}

static void parts_make_up_the_whole(void **state) {
  (void)state;
  enum { ROWS = 9, OUTPUTS = 3 * GEMM_PART + 10, INPUTS = 33 };
  struct product p;
  product_init(&p, ROWS, OUTPUTS, INPUTS);
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++) {
    struct gemm_weights weights;
    struct results whole;
    if (!simd_available(level))
      continue;
    float *storage = pack(&weights, level, &p);
    results_init(&whole, ROWS, OUTPUTS);
    gemm_apply(&weights, ROWS, p.x, p.stride, whole.rows);
    for (size_t first = 0; first < OUTPUTS; first += GEMM_PART) {
      size_t count = OUTPUTS - first < GEMM_PART ? OUTPUTS - first : GEMM_PART;
      struct results part;
      results_init(&part, ROWS, count);
      gemm_apply_part(&weights, first, count, ROWS, p.x, p.stride, part.rows);
      for (size_t r = 0; r < ROWS; r++)
        assert_memory_equal(part.rows[r], whole.rows[r] + first, count * sizeof(float));
      check_guards(&part, ROWS, count);
      results_deinit(&part);
    }
    results_deinit(&whole);
    free(storage);
  }
  product_deinit(&p);
}

static void instalments_are_bitwise_the_whole(void **state) {
  (void)state;
  enum { ROWS = 13, OUTPUTS = 3 * GEMM_PART + 10, INPUTS = 33 };
  static const size_t cuts[] = {0, 1, 20, INPUTS};
  struct product p;
  product_init(&p, ROWS, OUTPUTS, INPUTS);
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++)
    for (size_t rows = 1; rows <= ROWS && simd_available(level); rows++) {
      struct gemm_weights weights;
      struct results whole, sum;
      float *storage = pack(&weights, level, &p);
      results_init(&whole, ROWS, OUTPUTS);
      results_init(&sum, ROWS, OUTPUTS);
      gemm_apply(&weights, rows, p.x, p.stride, whole.rows);
      for (size_t i = 0; i + 1 < sizeof cuts / sizeof cuts[0]; i++) {
        const struct gemm_range range = {
            .outputs = OUTPUTS, .input = cuts[i], .inputs = cuts[i + 1] - cuts[i], .onward = i > 0};
        gemm_apply_range(&weights, &range, rows, p.x + cuts[i], p.stride, sum.rows);
      }
      for (size_t r = 0; r < rows; r++)
        assert_memory_equal(sum.rows[r], whole.rows[r], OUTPUTS * sizeof(float));
      check_guards(&sum, rows, OUTPUTS);
      results_deinit(&whole);
      results_deinit(&sum);
      free(storage);
    }
  product_deinit(&p);
}

// The reference itself, by hand: [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50].
static void reference_knows_its_transposes(void **state) {
  (void)state;
  static const float a[] = {1, 2, 3, 4}, a_t[] = {1, 3, 2, 4};
  static const float b[] = {5, 6, 7, 8}, b_t[] = {5, 7, 6, 8};
  for (int form = 0; form < 4; form++) {
    float c[] = {1, 1, 1, 1};
    bool ta = form & 1, tb = form & 2;
    gemm_reference(ta, tb, 2, 2, 2, 2, ta ? a_t : a, 2, tb ? b_t : b, 2, 3, c, 2);
    static const float expected[] = {41, 47, 89, 103};
    assert_memory_equal(c, expected, sizeof c);
  }
}

static void general_products_agree_with_the_reference(void **state) {
  (void)state;
  enum { M = 37, N = 53, K = 29, LD = 64 };
  struct random_state random;
  random_init(&random, 5);
  gemm_blas_threads(1);
  float *a = random_array(&random, LD * LD), *b = random_array(&random, LD * LD);
  for (int form = 0; form < 8; form++) {
    bool ta = form & 1, tb = form & 2;
    float beta = form & 4 ? 0.5f : 0;
    float *c = random_array(&random, LD * LD), *d = memory_alloc(LD * LD, sizeof *d);
    assert_non_null(d);
    if (beta == 0)
      c[0] = NAN; // must not be read
    memcpy(d, c, LD * LD * sizeof *c);
    gemm_multiply(ta, tb, M, N, K, 2, a, LD, b, LD, beta, c, LD);
    gemm_reference(ta, tb, M, N, K, 2, a, LD, b, LD, beta, d, LD);
    for (size_t i = 0; i < LD * LD; i++)
      if (!(fabsf(c[i] - d[i]) <= 2 * tolerance(K)))
        fail_msg("form %d: element %zu is %g, not %g", form, i, (double)c[i], (double)d[i]);
    free(c);
    free(d);
  }
  free(a);
  free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kernel_agrees_with_the_reference),
      cmocka_unit_test(products_beyond_one_cache_tile_agree),
      cmocka_unit_test(a_row_is_bitwise_the_same_in_every_batch),
      cmocka_unit_test(levels_with_fused_multiply_add_are_bitwise_equal),
      cmocka_unit_test(parts_make_up_the_whole),
      cmocka_unit_test(instalments_are_bitwise_the_whole),
      cmocka_unit_test(reference_knows_its_transposes),
      cmocka_unit_test(general_products_agree_with_the_reference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
