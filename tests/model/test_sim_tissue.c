// SPDX-License-Identifier: Apache-2.0
// model/sim/decimate, thickness and tissue on the built-in body: the coarse surface is a sound one,
// every shape gets a valid solid, and displacements spread smoothly and without leaks.
#include "sim/tissue.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "body/pose.h"
#include "body/region.h"
#include "builtin/builtin.h"
#include "sim/decimate.h"

static struct body *body;
static struct tissue *tissue;
static uint8_t *regions;

static int setup(void **state) {
  (void)state;
  struct dsnet_error error = {0};
  if (builtin_body_load(&body, &error) ||
      tissue_new(&tissue, body, &tissue_settings_default, &error))
    fail_msg("%s", error.text);
  regions = malloc(body_vertices(body));
  assert_non_null(regions);
  body_regions(body, regions);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  tissue_free(tissue);
  body_free(body);
  free(regions);
  return 0;
}

static int edge_compare(const void *left, const void *right) {
  const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return a < b ? -1 : a > b;
}

static void the_coarse_surface_is_closed_and_in_one_piece(void **state) {
  (void)state;
  size_t vertices = body_vertices(body);
  float *edge = malloc(vertices * sizeof *edge);
  assert_non_null(edge);
  for (size_t v = 0; v < vertices; v++)
    edge[v] = 0.04f;
  struct decimation coarse;
  struct dsnet_error error = {0};
  assert_int_equal(decimation_init(&coarse, body_template(body), vertices, body_triangles(body),
                                   body_faces(body), edge, &error),
                   DSNET_OK);
  // Every directed edge once, and its reverse once: closed and oriented.
  uint64_t *edges = malloc(3 * coarse.faces * sizeof *edges);
  assert_non_null(edges);
  for (size_t i = 0; i < 3 * coarse.faces; i++) {
    uint64_t a = coarse.triangles[i], b = coarse.triangles[i % 3 == 2 ? i - 2 : i + 1];
    assert_int_equal(coarse.root[a], a);
    assert_true(a != b);
    edges[i] = a << 32 | b;
  }
  qsort(edges, 3 * coarse.faces, sizeof *edges, edge_compare);
  for (size_t i = 0; i < 3 * coarse.faces; i++) {
    assert_true(i == 0 || edges[i] != edges[i - 1]);
    uint64_t reverse = edges[i] << 32 | edges[i] >> 32;
    assert_non_null(bsearch(&reverse, edges, 3 * coarse.faces, sizeof *edges, edge_compare));
  }
  // Genus 0: V - E + F = 2 with E = 3 F / 2.
  size_t kept = 0;
  for (size_t v = 0; v < vertices; v++) {
    kept += coarse.root[v] == v;
    assert_int_equal(coarse.root[coarse.root[v]], coarse.root[v]);
  }
  assert_int_equal(2 * kept, coarse.faces + 4);
  assert_true(kept < vertices / 4);
  free(edges);
  free(edge);
  decimation_deinit(&coarse);
}

static void spreading_keeps_constants_and_all_but_keeps_places(void **state) {
  (void)state;
  size_t columns = tissue_columns(tissue), vertices = body_vertices(body);
  const uint32_t *on = tissue_column_vertices(tissue);
  const float *x = body_template(body);
  float *from = malloc(columns * 3 * sizeof *from), *to = malloc(vertices * 3 * sizeof *to);
  assert_true(from && to);
  for (size_t i = 0; i < 3 * columns; i++)
    from[i] = (float)(i % 3) + 1;
  tissue_spread(tissue, from, to);
  for (size_t i = 0; i < 3 * vertices; i++)
    assert_true(fabsf(to[i] - (float)(i % 3) - 1) < 1e-5f);
  // Spreading the columns' own places gives a smoothed body: where it is soft, the mean error is a
  // few millimetres; and as a leg takes nothing from the other, none lands on the wrong side.
  for (size_t i = 0; i < columns; i++)
    memcpy(from + 3 * i, x + 3 * (size_t)on[i], 3 * sizeof *from);
  tissue_spread(tissue, from, to);
  double sum = 0, soft = 0;
  for (size_t v = 0; v < vertices; v++) {
    double square = 0;
    for (size_t c = 0; c < 3; c++)
      square += pow((double)to[3 * v + c] - x[3 * v + c], 2);
    if (body_soft_tissue(body)[v] > 0.4f) {
      sum += sqrt(square);
      soft++;
    }
    if (regions[v] == BODY_REGION_THIGHS && fabsf(x[3 * v]) > 0.03f)
      assert_true(to[3 * v] * x[3 * v] > 0);
  }
  print_message("places spread to within %.2f mm on average\n", 1e3 * sum / soft);
  assert_true(sum / soft < 0.006);
  free(from);
  free(to);
}

static double solid_volume(const struct tissue_solid *made) {
  double sum = 0;
  for (size_t t = 0; t < made->tets; t++) {
    const double *x[4];
    for (size_t k = 0; k < 4; k++)
      x[k] = made->positions + 3 * (size_t)made->corners[4 * t + k];
    double e[3][3];
    for (int k = 0; k < 3; k++)
      for (int c = 0; c < 3; c++)
        e[k][c] = x[k + 1][c] - x[0][c];
    sum += (e[0][0] * (e[1][1] * e[2][2] - e[1][2] * e[2][1]) -
            e[0][1] * (e[1][0] * e[2][2] - e[1][2] * e[2][0]) +
            e[0][2] * (e[1][0] * e[2][1] - e[1][1] * e[2][0])) /
           6;
  }
  return sum;
}

static void make(struct tissue_solid *made, int shape, float amount) {
  float betas[BODY_SHAPES_MAX] = {0};
  struct dsnet_error error = {0};
  betas[shape] = amount;
  if (tissue_solid_init(made, tissue, betas, BODY_SHAPES_MAX, &error))
    fail_msg("shape %d at %g: %s", shape, (double)amount, error.text);
}

static void every_shape_gets_a_valid_solid(void **state) {
  (void)state;
  for (int shape = 0; shape < (int)body_shapes(body); shape++)
    for (int sign = -1; sign <= 1; sign += 2) {
      struct tissue_solid made; // solid_new refuses elements without positive volume
      make(&made, shape, (float)(3 * sign));
      double mass = 0, volume = solid_volume(&made);
      for (size_t n = 0; n < made.nodes; n++)
        mass += solid_masses(made.solid)[n];
      assert_true(mass / volume > 900 && mass / volume < 1070);
      assert_true(mass > 3 && mass < 80);
      tissue_solid_deinit(&made);
    }
}

static double region_depth(const struct tissue_solid *made, enum body_region region) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < tissue_columns(tissue); i++)
    if (regions[tissue_column_vertices(tissue)[i]] == region) {
      sum += made->thickness[i];
      count++;
    }
  assert_true(count > 0);
  return sum / (double)count;
}

static void tissue_is_thick_where_bodies_are_soft_and_grows_with_mass(void **state) {
  (void)state;
  static const enum body_region soft[] = {BODY_REGION_BELLY, BODY_REGION_BUTTOCKS,
                                          BODY_REGION_THIGHS, BODY_REGION_HIPS};
  struct tissue_solid lean, mean, heavy;
  make(&lean, 1, -2);
  make(&mean, 1, 0);
  make(&heavy, 1, 2);
  for (size_t i = 0; i < sizeof soft / sizeof soft[0]; i++) {
    double depth = region_depth(&mean, soft[i]);
    assert_true(depth > 2 * region_depth(&mean, BODY_REGION_FOREARMS));
    assert_true(depth > 1.5 * region_depth(&mean, BODY_REGION_CALVES));
    assert_true(region_depth(&lean, soft[i]) < 0.9 * depth);
    assert_true(region_depth(&heavy, soft[i]) > 1.15 * depth);
  }
  tissue_solid_deinit(&lean);
  tissue_solid_deinit(&mean);
  tissue_solid_deinit(&heavy);
}

static void no_element_crosses_the_air_between_the_legs(void **state) {
  (void)state;
  struct tissue_solid made;
  make(&made, 1, 3); // the heaviest, whose thighs are nearest
  for (size_t t = 0; t < made.tets; t++) {
    bool left = false, right = false;
    for (size_t k = 0; k < 4; k++) {
      uint32_t column = made.column[made.corners[4 * t + k]];
      size_t vertex = tissue_column_vertices(tissue)[column];
      if (regions[vertex] != BODY_REGION_THIGHS)
        continue;
      left |= body_template(body)[3 * vertex] > 0.03f;
      right |= body_template(body)[3 * vertex] < -0.03f;
    }
    assert_false(left && right);
  }
  tissue_solid_deinit(&made);
}

static void wrong_settings_are_refused(void **state) {
  (void)state;
  struct tissue *none;
  assert_int_equal(tissue_new(&none, body, &(struct tissue_settings){0.001, 2}, NULL),
                   DSNET_EVALUE);
  assert_int_equal(tissue_new(&none, body, &(struct tissue_settings){NAN, 2}, NULL), DSNET_EVALUE);
  assert_int_equal(tissue_new(&none, body, &(struct tissue_settings){0.04, 0}, NULL), DSNET_EVALUE);
  assert_null(none);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_coarse_surface_is_closed_and_in_one_piece),
      cmocka_unit_test(spreading_keeps_constants_and_all_but_keeps_places),
      cmocka_unit_test(every_shape_gets_a_valid_solid),
      cmocka_unit_test(tissue_is_thick_where_bodies_are_soft_and_grows_with_mass),
      cmocka_unit_test(no_element_crosses_the_air_between_the_legs),
      cmocka_unit_test(wrong_settings_are_refused),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
