// SPDX-License-Identifier: Apache-2.0
// train/subspace.c: known directions are found, projection and residual add up to the energy.
#include "train/subspace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"

enum { N = 40, VALUES = 90 };

// Three orthogonal cosines with amplitudes 3, 1 and 0.1, and a little noise.
static void make_snapshots(float *snapshots, double noise) {
  static const double amplitude[3] = {3, 1, 0.1};
  struct random_state random;
  random_init(&random, 11);
  for (size_t n = 0; n < N; n++) {
    double z[3];
    for (int k = 0; k < 3; k++)
      z[k] = amplitude[k] * random_normal(&random);
    for (size_t i = 0; i < VALUES; i++) {
      double sum = noise * random_normal(&random);
      for (int k = 0; k < 3; k++)
        sum += z[k] * sqrt(2.0 / VALUES) * cos(M_PI * (k + 1) * ((double)i + 0.5) / VALUES);
      snapshots[n * VALUES + i] = (float)sum;
    }
  }
}

static void known_directions_are_found_in_order(void **state) {
  (void)state;
  float snapshots[N * VALUES], latents[N * 3], residual[N];
  make_snapshots(snapshots, 0);
  struct subspace s;
  assert_int_equal(subspace_fit(&s, snapshots, N, VALUES, 0, 1e-6, 64, NULL), 0);
  assert_int_equal(s.latent, 3);
  assert_true(s.captured > 1 - 1e-6);
  assert_true(s.scale[0] > s.scale[1] && s.scale[1] > s.scale[2]);
  for (size_t a = 0; a < 3; a++)
    for (size_t b = 0; b <= a; b++) {
      double dot = 0;
      for (size_t i = 0; i < VALUES; i++)
        dot += (double)s.basis[a * VALUES + i] * s.basis[b * VALUES + i];
      assert_true(fabs(dot - (a == b)) < 1e-6);
    }
  subspace_project(&s, snapshots, N, latents, residual);
  for (size_t k = 0; k < 3; k++) {
    double square = 0;
    for (size_t n = 0; n < N; n++)
      square += (double)latents[n * 3 + k] * latents[n * 3 + k];
    assert_true(fabs(square / N - 1) < 1e-3); // white
  }
  float again[N * VALUES];
  subspace_expand(&s, latents, N, again);
  for (size_t i = 0; i < N * VALUES; i++)
    assert_true(fabsf(again[i] - snapshots[i]) < 1e-5f);
  subspace_deinit(&s);
}

static void the_residual_is_what_the_subspace_misses(void **state) {
  (void)state;
  float snapshots[N * VALUES], latents[N * 2], residual[N], again[N * VALUES];
  make_snapshots(snapshots, 0.02);
  struct subspace s;
  assert_int_equal(subspace_fit(&s, snapshots, N, VALUES, 2, 0, 64, NULL), 0);
  assert_int_equal(s.latent, 2);
  subspace_project(&s, snapshots, N, latents, residual);
  subspace_expand(&s, latents, N, again);
  double missed = 0, total = 0;
  for (size_t n = 0; n < N; n++) {
    double sum = 0;
    for (size_t i = n * VALUES; i < (n + 1) * VALUES; i++) {
      double d = (double)snapshots[i] - again[i];
      sum += d * d;
      total += (double)snapshots[i] * snapshots[i];
    }
    assert_true(fabs(sum - residual[n]) < 1e-4 * (1 + sum));
    missed += sum;
  }
  assert_true(fabs(1 - missed / total - s.captured) < 1e-4);
  subspace_deinit(&s);
}

static void degenerate_snapshots_are_answered(void **state) {
  (void)state;
  float *snapshots = calloc(N * VALUES, sizeof *snapshots);
  struct subspace s;
  struct dsnet_error e = {0};
  assert_int_equal(subspace_fit(&s, snapshots, N, VALUES, 4, 0, 64, &e), DSNET_EVALUE);
  assert_null(s.basis);
  for (size_t n = 0; n < N; n++)
    snapshots[n * VALUES + 7] = (float)n;
  assert_int_equal(subspace_fit(&s, snapshots, N, VALUES, 4, 0, 64, NULL), 0);
  assert_int_equal(s.latent, 1); // all there is
  assert_true(fabsf(fabsf(s.basis[7]) - 1) < 1e-6f);
  subspace_deinit(&s);
  free(snapshots);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_directions_are_found_in_order),
      cmocka_unit_test(the_residual_is_what_the_subspace_misses),
      cmocka_unit_test(degenerate_snapshots_are_answered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
