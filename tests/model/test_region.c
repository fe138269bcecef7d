// SPDX-License-Identifier: Apache-2.0
// body/region.c on a small body of rings about SMPL's joints (data/make_body.py).
#include "body/region.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/npz.h"

#define VERTICES_MAX 1024

struct mapped {
  struct body *body;
  uint8_t regions[VERTICES_MAX];
};

static void ok(int code, const struct dsnet_error *error) {
  if (code)
    fail_msg("%s", error->text);
}

static int setup(void **state) {
  struct mapped *mapped = calloc(1, sizeof *mapped);
  struct dsnet_error error = {0};
  assert_non_null(mapped);
  ok(body_load(&mapped->body, DSNET_TEST_DATA "/body_smpl.npz", &error), &error);
  assert_true(body_vertices(mapped->body) <= VERTICES_MAX);
  body_regions(mapped->body, mapped->regions);
  *state = mapped;
  return 0;
}

static int teardown(void **state) {
  struct mapped *mapped = *state;
  body_free(mapped->body);
  free(mapped);
  return 0;
}

static void every_region_has_vertices(void **state) {
  const struct mapped *mapped = *state;
  size_t counts[BODY_REGION_COUNT] = {0};
  for (size_t v = 0; v < body_vertices(mapped->body); v++) {
    assert_true(mapped->regions[v] < BODY_REGION_COUNT);
    counts[mapped->regions[v]]++;
  }
  for (int r = 0; r < BODY_REGION_COUNT; r++)
    if (!counts[r])
      fail_msg("no vertex in region \"%s\"", body_region_name((enum body_region)r));
}

static void the_map_is_symmetric(void **state) {
  const struct mapped *mapped = *state;
  struct npz *npz;
  int64_t *mirror;
  struct npy_info info;
  struct dsnet_error error = {0};
  ok(npz_open(&npz, DSNET_TEST_DATA "/body_golden.npz", &error), &error);
  ok(npz_read_i64(npz, "mirror", VERTICES_MAX, &mirror, &info, &error), &error);
  assert_int_equal(info.count, body_vertices(mapped->body));
  for (size_t v = 0; v < info.count; v++)
    assert_int_equal(mapped->regions[v], mapped->regions[mirror[v]]);
  free(mirror);
  npz_close(npz);
}

// The vertex that lies farthest along a direction.
static size_t farthest(const struct body *body, float x, float y, float z) {
  const float *at = body_template(body);
  size_t best = 0;
  float reach = -1e9f;
  for (size_t v = 0; v < body_vertices(body); v++) {
    float along = x * at[3 * v] + y * at[3 * v + 1] + z * at[3 * v + 2];
    if (along > reach) {
      reach = along;
      best = v;
    }
  }
  return best;
}

static void extremes_lie_where_anatomy_has_them(void **state) {
  const struct mapped *mapped = *state;
  const struct body *body = mapped->body;
  assert_int_equal(mapped->regions[farthest(body, 0, 1, 0)], BODY_REGION_HEAD);
  assert_int_equal(mapped->regions[farthest(body, 0, -1, 0)], BODY_REGION_FEET);
  assert_int_equal(mapped->regions[farthest(body, 1, 0, 0)], BODY_REGION_HANDS);
  assert_int_equal(mapped->regions[farthest(body, -1, 0, 0)], BODY_REGION_HANDS);
}

// What lies behind the spine is back or buttocks, what lies before it is chest, belly or hips.
static void the_trunk_is_split_into_front_and_back(void **state) {
  const struct mapped *mapped = *state;
  const float *at = body_template(mapped->body);
  double depth[BODY_REGION_COUNT] = {0}, height[BODY_REGION_COUNT] = {0};
  size_t counts[BODY_REGION_COUNT] = {0};
  for (size_t v = 0; v < body_vertices(mapped->body); v++) {
    const int region = mapped->regions[v];
    depth[region] += at[3 * v + 2];
    height[region] += at[3 * v + 1];
    counts[region]++;
  }
  for (int r = 0; r < BODY_REGION_COUNT; r++) {
    depth[r] /= (double)counts[r];
    height[r] /= (double)counts[r];
  }
  assert_true(depth[BODY_REGION_BACK] < depth[BODY_REGION_CHEST]);
  assert_true(depth[BODY_REGION_BACK] < depth[BODY_REGION_BELLY]);
  assert_true(depth[BODY_REGION_BUTTOCKS] < depth[BODY_REGION_HIPS]);
  assert_true(height[BODY_REGION_CHEST] > height[BODY_REGION_BELLY]);
  assert_true(height[BODY_REGION_BELLY] > height[BODY_REGION_HIPS]);
  assert_true(height[BODY_REGION_HIPS] > height[BODY_REGION_THIGHS]);
  assert_true(height[BODY_REGION_THIGHS] > height[BODY_REGION_CALVES]);
}

static void names_are_there_and_differ(void **state) {
  (void)state;
  for (int a = 0; a < BODY_REGION_COUNT; a++)
    for (int b = 0; b < a; b++)
      assert_string_not_equal(body_region_name((enum body_region)a),
                              body_region_name((enum body_region)b));
  assert_null(body_region_name(BODY_REGION_COUNT));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_region_has_vertices),
      cmocka_unit_test(the_map_is_symmetric),
      cmocka_unit_test(extremes_lie_where_anatomy_has_them),
      cmocka_unit_test(the_trunk_is_split_into_front_and_back),
      cmocka_unit_test(names_are_there_and_differ),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
