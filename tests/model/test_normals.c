// SPDX-License-Identifier: Apache-2.0
// body/normals.c on small bodies whose normals are known, and on the built-in one.
#include "body/normals.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "body/pose.h"
#include "body_sample.h"
#include "builtin/builtin.h"

static void ok(int code, const struct dsnet_error *error) {
  if (code)
    fail_msg("%s", error->text);
}

static void assert_normal(const float *normal, double x, double y, double z) {
  if (!(fabs(normal[0] - x) < 1e-6 && fabs(normal[1] - y) < 1e-6 && fabs(normal[2] - z) < 1e-6))
    fail_msg("normal %g %g %g", (double)normal[0], (double)normal[1], (double)normal[2]);
}

// Vertex 0 joins a face that looks along z and one, three times as large, that looks along x.
static void faces_weigh_by_their_area(void **state) {
  (void)state;
  static const float places[][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 3, 0}, {0, 0, 1}};
  static const int64_t faces[][3] = {{0, 1, 2}, {0, 3, 4}, {5, 6, 7}, {5, 6, 7}, {5, 5, 5}};
  struct body_sample *sample = malloc(sizeof *sample);
  struct body *body;
  struct dsnet_error error = {0};
  float normals[SAMPLE_VERTICES * 3];
  assert_non_null(sample);
  sample_init(sample, 24, 1, 0);
  memset(sample->v_template, 0, sizeof sample->v_template);
  memcpy(sample->v_template, places, sizeof places);
  memcpy(sample->f, faces, sizeof faces);
  ok(body_new_from_arrays(&body, &sample->arrays, &error), &error);
  body_normals(body, body_template(body), normals);
  assert_normal(normals + 0, 3 / sqrt(10), 0, 1 / sqrt(10));
  assert_normal(normals + 3, 0, 0, 1);
  assert_normal(normals + 9, 1, 0, 0);
  assert_normal(normals + 15, 0, 0, 0); // its faces have no area
  assert_normal(normals + 24, 0, 0, 0); // it has no face
  body_free(body);
  free(sample);
}

static void tiny_faces_have_normals_too(void **state) {
  (void)state;
  struct body_sample *sample = malloc(sizeof *sample);
  struct body *body;
  struct dsnet_error error = {0};
  float normals[SAMPLE_VERTICES * 3];
  assert_non_null(sample);
  sample_init(sample, 24, 1, 0);
  memset(sample->v_template, 0, sizeof sample->v_template);
  memset(sample->f, 0, sizeof sample->f);
  sample->v_template[3] = sample->v_template[7] = 1e-12f;
  sample->f[1] = 1;
  sample->f[2] = 2;
  ok(body_new_from_arrays(&body, &sample->arrays, &error), &error);
  body_normals(body, body_template(body), normals);
  assert_normal(normals, 0, 0, 1);
  body_free(body);
  free(sample);
}

static void a_turned_body_has_turned_normals(void **state) {
  (void)state;
  struct body *body;
  struct dsnet_error error = {0};
  ok(builtin_body_load(&body, &error), &error);
  const size_t V = body_vertices(body);
  float *normals = malloc(V * 3 * sizeof *normals), *turned = malloc(V * 3 * sizeof *turned);
  float *vertices = malloc(V * 3 * sizeof *vertices);
  float joints[BODY_JOINTS * 3], transforms[BODY_JOINTS * 12], pose[BODY_POSE_SIZE] = {0.7f, -1, 2};
  static const float trans[3] = {0.5f, 0, 1};
  assert_true(normals && turned && vertices);
  body_shape(body, NULL, 0, vertices, joints);
  body_normals(body, vertices, normals);
  body_transforms(body, joints, pose, trans, transforms, NULL);
  body_skin(body, transforms, vertices, NULL, vertices);
  body_normals(body, vertices, turned);
  for (size_t v = 0; v < V; v++) {
    const float *n = normals + 3 * v;
    assert_true(fabs(n[0] * n[0] + n[1] * n[1] + n[2] * n[2] - 1) < 1e-5);
    for (int i = 0; i < 3; i++) {
      const float *row = transforms + 4 * i;
      // Faces are millimetres across, so positions rounded to 1e-7 m turn them by some 1e-4.
      assert_true(fabs(row[0] * n[0] + row[1] * n[1] + row[2] * n[2] - turned[3 * v + i]) < 2e-3);
    }
  }
  free(normals);
  free(turned);
  free(vertices);
  body_free(body);
}

static void normals_look_outwards(void **state) {
  (void)state;
  struct body *body;
  struct dsnet_error error = {0};
  ok(builtin_body_load(&body, &error), &error);
  const size_t V = body_vertices(body);
  const float *at = body_template(body);
  float *normals = malloc(V * 3 * sizeof *normals);
  assert_non_null(normals);
  body_normals(body, at, normals);
  for (int axis = 0; axis < 3; axis++) { // the farthest vertex along an axis looks along it
    size_t high = 0, low = 0;
    for (size_t v = 0; v < V; v++) {
      high = at[3 * v + axis] > at[3 * high + axis] ? v : high;
      low = at[3 * v + axis] < at[3 * low + axis] ? v : low;
    }
    assert_true(normals[3 * high + axis] > 0.5f);
    assert_true(normals[3 * low + axis] < -0.5f);
  }
  free(normals);
  body_free(body);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(faces_weigh_by_their_area),
      cmocka_unit_test(tiny_faces_have_normals_too),
      cmocka_unit_test(a_turned_body_has_turned_normals),
      cmocka_unit_test(normals_look_outwards),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
