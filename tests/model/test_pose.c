// SPDX-License-Identifier: Apache-2.0
// body/pose.c against float64 results of an independent implementation (data/make_body.py), and
// against what must hold exactly.
#include "body/pose.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "body_sample.h"
#include "io/npz.h"

#define PI 3.14159265358979323846

static void ok(int code, const struct dsnet_error *error) {
  if (code)
    fail_msg("%s", error->text);
}

static struct body *load(const char *name) {
  char path[512];
  struct body *body;
  struct dsnet_error error = {0};
  snprintf(path, sizeof path, DSNET_TEST_DATA "/body_%s.npz", name);
  ok(body_load(&body, path, &error), &error);
  return body;
}

static float *floats(size_t count) {
  float *block = memory_alloc(count, sizeof *block);
  assert_non_null(block);
  return block;
}

// --- golden results -----------------------------------------------------------------------------

struct golden {
  struct npz *npz;
  char name[64]; // "smpl_mild"
};

static double *golden_f64(const struct golden *golden, const char *key, size_t *count) {
  char name[128];
  double *values;
  struct npy_info info;
  struct dsnet_error error = {0};
  snprintf(name, sizeof name, "%s_%s", golden->name, key);
  ok(npz_read_f64(golden->npz, name, 1 << 20, &values, &info, &error), &error);
  *count = info.count;
  return values;
}

static float *golden_f32(const struct golden *golden, const char *key, size_t *count) {
  double *wide = golden_f64(golden, key, count);
  float *values = floats(*count);
  for (size_t i = 0; i < *count; i++)
    values[i] = (float)wide[i];
  free(wide);
  return values;
}

// Coordinates and matrix entries are of the order of 1, so 1e-6 is both absolute and relative.
static void assert_golden(const struct golden *golden, const char *key, const float *values,
                          double tolerance) {
  size_t count;
  double *expected = golden_f64(golden, key, &count);
  assert_true(count > 0);
  for (size_t i = 0; i < count; i++)
    if (!(fabs(values[i] - expected[i]) <= tolerance * fmax(1, fabs(expected[i]))))
      fail_msg("%s_%s[%zu]: %.9g, expected %.9g", golden->name, key, i, (double)values[i],
               expected[i]);
  free(expected);
}

static void check_golden_case(const struct body *body, const struct golden *golden) {
  const size_t V = body_vertices(body);
  size_t betas_count, count;
  float *betas = golden_f32(golden, "betas", &betas_count);
  float *pose = golden_f32(golden, "pose", &count);
  float *trans = golden_f32(golden, "trans", &count);
  float *displacement = golden_f32(golden, "displacement", &count);
  float *target = golden_f32(golden, "target", &count);
  float *rest = floats(V * 3), *posed = floats(V * 3);
  float joints[BODY_JOINTS * 3], transforms[BODY_JOINTS * 12], posed_joints[BODY_JOINTS * 3];
  struct dsnet_error error = {0};

  body_shape(body, betas, betas_count, rest, joints);
  assert_golden(golden, "shaped", rest, 1e-6);
  assert_golden(golden, "joints", joints, 1e-6);
  body_transforms(body, joints, pose, trans, transforms, posed_joints);
  assert_golden(golden, "transforms", transforms, 1e-6);
  assert_golden(golden, "posed_joints", posed_joints, 1e-6);
  body_add_pose_part(body, pose, rest);
  assert_golden(golden, "rest", rest, 1e-6);
  body_skin(body, transforms, rest, displacement, posed);
  assert_golden(golden, "posed", posed, 1e-6);
  ok(body_unskin(body, transforms, rest, target, posed, &error), &error);
  assert_golden(golden, "unposed", posed, 1e-6);

  free(betas);
  free(pose);
  free(trans);
  free(displacement);
  free(target);
  free(rest);
  free(posed);
}

static void results_equal_an_independent_implementation(void **state) {
  (void)state;
  static const char *const bodies[] = {"smpl", "smplh"};
  static const char *const cases[] = {"mild", "wild", "few_betas"};
  struct golden golden;
  struct dsnet_error error = {0};
  ok(npz_open(&golden.npz, DSNET_TEST_DATA "/body_golden.npz", &error), &error);
  for (size_t b = 0; b < 2; b++) {
    struct body *body = load(bodies[b]);
    for (size_t c = 0; c < 3; c++) {
      snprintf(golden.name, sizeof golden.name, "%s_%s", bodies[b], cases[c]);
      check_golden_case(body, &golden);
    }
    body_free(body);
  }
  npz_close(golden.npz);
}

// --- a body in a pose ---------------------------------------------------------------------------

struct posed {
  struct body *body;
  size_t size; // floats of a vertex array
  float *rest, *displacement, *skinned, *unskinned;
  float joints[BODY_JOINTS * 3], pose[BODY_POSE_SIZE], trans[3];
  float transforms[BODY_JOINTS * 12], posed_joints[BODY_JOINTS * 3];
};

static int setup(void **state) {
  struct posed *p = calloc(1, sizeof *p);
  assert_non_null(p);
  p->body = load("smpl");
  p->size = body_vertices(p->body) * 3;
  p->rest = floats(p->size);
  p->displacement = floats(p->size);
  p->skinned = floats(p->size);
  p->unskinned = floats(p->size);
  body_shape(p->body, NULL, 0, p->rest, p->joints);
  *state = p;
  return 0;
}

static int teardown(void **state) {
  struct posed *p = *state;
  body_free(p->body);
  free(p->rest);
  free(p->displacement);
  free(p->skinned);
  free(p->unskinned);
  free(p);
  return 0;
}

static void transform(struct posed *p) {
  body_transforms(p->body, p->joints, p->pose, p->trans, p->transforms, p->posed_joints);
}

static void randomise(struct posed *p, uint64_t seed, double turn) {
  struct random_state random;
  random_init(&random, seed);
  for (size_t i = 0; i < BODY_POSE_SIZE; i++)
    p->pose[i] = (float)(turn * random_normal(&random));
  for (size_t i = 0; i < 3; i++)
    p->trans[i] = (float)(0.5 * random_normal(&random));
  for (size_t i = 0; i < p->size; i++)
    p->displacement[i] = (float)(0.01 * random_normal(&random));
}

static void assert_near(const float *values, const float *expected, size_t count,
                        double tolerance) {
  for (size_t i = 0; i < count; i++)
    if (!(fabs((double)values[i] - expected[i]) <= tolerance))
      fail_msg("element %zu: %.9g, expected %.9g", i, (double)values[i], (double)expected[i]);
}

static void the_rest_pose_is_the_shaped_body_exactly(void **state) {
  struct posed *p = *state;
  float with_part[3 * 1024];
  assert_true(p->size <= 3 * 1024);
  transform(p);
  memcpy(with_part, p->rest, p->size * sizeof(float));
  body_add_pose_part(p->body, p->pose, with_part);
  assert_memory_equal(with_part, p->rest, p->size * sizeof(float));
  body_skin(p->body, p->transforms, p->rest, NULL, p->skinned);
  assert_memory_equal(p->skinned, p->rest, p->size * sizeof(float));
  assert_memory_equal(p->posed_joints, p->joints, sizeof p->joints);
}

// Half turns are where axis-angle is at its limit. About y, (x, y, z) goes to (-x, y, -z).
static void a_root_turned_by_pi_turns_everything_rigidly(void **state) {
  struct posed *p = *state;
  for (int axis = 0; axis < 3; axis++)
    for (int sign = -1; sign <= 1; sign += 2) {
      memset(p->pose, 0, sizeof p->pose);
      p->pose[axis] = (float)(sign * PI);
      p->trans[1] = 0.5f;
      transform(p);
      for (int k = 12; k < BODY_JOINTS * 12; k++)
        assert_true(fabsf(p->transforms[k] - p->transforms[k % 12]) < 1e-6f);
      body_skin(p->body, p->transforms, p->rest, NULL, p->skinned);
      for (size_t i = 0; i < p->size; i++) {
        const int c = (int)(i % 3);
        const double about = p->joints[c];
        const double offset = (c == axis ? 1 : -1) * (p->rest[i] - about);
        assert_true(fabs(p->skinned[i] - (about + offset + p->trans[c])) < 1e-6);
      }
    }
}

static void angles_just_under_pi_and_just_over_agree(void **state) {
  struct posed *p = *state;
  p->pose[0] = (float)(PI - 1e-6);
  transform(p);
  body_skin(p->body, p->transforms, p->rest, NULL, p->skinned);
  p->pose[0] = (float)-(PI - 1e-6);
  transform(p);
  body_skin(p->body, p->transforms, p->rest, NULL, p->unskinned);
  assert_near(p->skinned, p->unskinned, p->size, 5e-6);
}

// The series for small angles and the closed form must meet, and both must be sine and cosine.
static void small_angles_turn_by_sine_and_cosine(void **state) {
  struct posed *p = *state;
  static const double angles[] = {1e-30, 1e-12, 1e-6, 9.9e-5, 1.01e-4, 1e-3, 0.1};
  for (size_t i = 0; i < sizeof angles / sizeof angles[0]; i++) {
    p->pose[2] = (float)angles[i];
    const double angle = p->pose[2];
    transform(p);
    assert_true(p->transforms[0] == (float)cos(angle));
    assert_true(fabs(p->transforms[4] / sin(angle) - 1) < 1e-7);
    assert_true(p->transforms[1] == -p->transforms[4]);
    assert_true(p->transforms[10] == 1);
  }
}

static void the_hands_stay_with_the_wrists(void **state) {
  struct posed *p = *state;
  randomise(p, 3, 1);
  transform(p);
  assert_memory_equal(p->transforms + 12 * 22, p->transforms + 12 * 20, 12 * sizeof(float));
  assert_memory_equal(p->transforms + 12 * 23, p->transforms + 12 * 21, 12 * sizeof(float));
}

static void bones_keep_their_length(void **state) {
  struct posed *p = *state;
  randomise(p, 4, 2);
  transform(p);
  for (int j = 1; j < BODY_JOINTS; j++) {
    double before = 0, after = 0;
    const int parent = body_parents(p->body)[j];
    for (int c = 0; c < 3; c++) {
      before += pow(p->joints[3 * j + c] - p->joints[3 * parent + c], 2);
      after += pow(p->posed_joints[3 * j + c] - p->posed_joints[3 * parent + c], 2);
    }
    assert_true(fabs(sqrt(before) - sqrt(after)) < 1e-6);
  }
}

static void unskinning_gives_back_the_displacement(void **state) {
  struct posed *p = *state;
  struct dsnet_error error = {0};
  for (uint64_t seed = 0; seed < 20; seed++) {
    randomise(p, seed, 0.3);
    transform(p);
    body_skin(p->body, p->transforms, p->rest, p->displacement, p->skinned);
    ok(body_unskin(p->body, p->transforms, p->rest, p->skinned, p->unskinned, &error), &error);
    assert_near(p->unskinned, p->displacement, p->size, 1e-6);
  }
}

static void skinning_in_place_is_the_same(void **state) {
  struct posed *p = *state;
  randomise(p, 5, 0.5);
  transform(p);
  body_skin(p->body, p->transforms, p->rest, p->displacement, p->skinned);
  body_skin(p->body, p->transforms, p->rest, p->displacement, p->rest);
  assert_memory_equal(p->rest, p->skinned, p->size * sizeof(float));
}

static void surplus_betas_are_ignored_and_missing_ones_are_zero(void **state) {
  struct posed *p = *state;
  const float betas[16] = {1, -2, 0.5f, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9};
  float joints[2][BODY_JOINTS * 3];
  body_shape(p->body, betas, 3, p->skinned, joints[0]);
  body_shape(p->body, betas, 16, p->unskinned, NULL);
  body_shape(p->body, betas, 16, NULL, joints[1]);
  assert_memory_equal(p->skinned, p->unskinned, p->size * sizeof(float));
  assert_memory_equal(joints[0], joints[1], sizeof joints[0]);
  assert_memory_not_equal(p->skinned, p->rest, p->size * sizeof(float));
}

// --- made bodies --------------------------------------------------------------------------------

static struct body *make(const struct body_sample *sample) {
  struct body *body;
  struct dsnet_error error = {0};
  ok(body_new_from_arrays(&body, &sample->arrays, &error), &error);
  return body;
}

static void a_body_without_pose_directions_has_no_pose_part(void **state) {
  (void)state;
  struct body_sample *sample = calloc(1, sizeof *sample);
  assert_non_null(sample);
  sample_init(sample, 24, 10, 0);
  struct body *body = make(sample);
  float pose[BODY_POSE_SIZE], rest[SAMPLE_VERTICES * 3];
  for (size_t i = 0; i < BODY_POSE_SIZE; i++)
    pose[i] = 0.1f;
  memcpy(rest, sample->v_template, sizeof rest);
  body_add_pose_part(body, pose, rest);
  assert_memory_equal(rest, sample->v_template, sizeof rest);
  body_free(body);
  free(sample);
}

// Two joints that turn by pi against each other about one axis, in equal parts, press a vertex onto
// that axis: where it came from is lost.
static void a_singular_blend_is_refused_and_names_the_vertex(void **state) {
  (void)state;
  struct body_sample *sample = calloc(1, sizeof *sample);
  assert_non_null(sample);
  sample_init(sample, 24, 10, 0);
  memset(sample->weights, 0, sizeof sample->weights);
  for (size_t v = 0; v < SAMPLE_VERTICES; v++) {
    sample->weights[v * 24 + 1] = v == 5 ? 0.5f : 1;
    sample->weights[v * 24 + 2] = v == 5 ? 0.5f : 0;
  }
  struct body *body = make(sample);
  float joints[BODY_JOINTS * 3], transforms[BODY_JOINTS * 12], pose[BODY_POSE_SIZE] = {0};
  float rest[SAMPLE_VERTICES * 3], posed[SAMPLE_VERTICES * 3], back[SAMPLE_VERTICES * 3];
  static const float trans[3] = {0, 0, 0};
  struct dsnet_error error = {0};
  pose[3 * 1 + 2] = (float)(PI / 2);
  pose[3 * 2 + 2] = (float)(-PI / 2);
  body_shape(body, NULL, 0, rest, joints);
  body_transforms(body, joints, pose, trans, transforms, NULL);
  body_skin(body, transforms, rest, NULL, posed);
  assert_int_equal(body_unskin(body, transforms, rest, posed, back, &error), DSNET_EVALUE);
  assert_non_null(strstr(error.text, "vertex 5 "));
  body_free(body);
  free(sample);
}

int main(void) {
#define POSED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_equal_an_independent_implementation),
      POSED(the_rest_pose_is_the_shaped_body_exactly),
      POSED(a_root_turned_by_pi_turns_everything_rigidly),
      POSED(angles_just_under_pi_and_just_over_agree),
      POSED(small_angles_turn_by_sine_and_cosine),
      POSED(the_hands_stay_with_the_wrists),
      POSED(bones_keep_their_length),
      POSED(unskinning_gives_back_the_displacement),
      POSED(skinning_in_place_is_the_same),
      POSED(surplus_betas_are_ignored_and_missing_ones_are_zero),
      cmocka_unit_test(a_body_without_pose_directions_has_no_pose_part),
      cmocka_unit_test(a_singular_blend_is_refused_and_names_the_vertex),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
