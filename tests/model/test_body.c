// SPDX-License-Identifier: Apache-2.0
// Bodies from arrays and files: every layout, every refusal, saving, and the hash.
#include "body/body.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "body/arrays.h"
#include "body/pose.h"
#include "body/save.h"
#include "body_sample.h"
#include "io/npz.h"

// Counts the library's allocations (the linker sends them here, see CMakeLists.txt); the one whose
// turn it is fails.
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

static const struct sample_form plain;

// A sample to spoil and a file name to write to, in a folder of the test's own.
struct bench {
  struct body_sample sample;
  char folder[64], path[96];
};

static int setup(void **state) {
  struct bench *bench = calloc(1, sizeof *bench);
  assert_non_null(bench);
  strcpy(bench->folder, "/tmp/dsnet-test-body-XXXXXX");
  assert_non_null(mkdtemp(bench->folder));
  snprintf(bench->path, sizeof bench->path, "%s/body.npz", bench->folder);
  sample_init(&bench->sample, 24, 10, 207);
  *state = bench;
  return 0;
}

static int teardown(void **state) {
  struct bench *bench = *state;
  unlink(bench->path);
  assert_int_equal(rmdir(bench->folder), 0); // no temporary is left behind
  free(bench);
  return 0;
}

static void ok(int code, const struct dsnet_error *error) {
  if (code)
    fail_msg("%s", error->text);
}

static struct body *load(const char *path) {
  struct body *body;
  struct dsnet_error error = {0};
  ok(body_load(&body, path, &error), &error);
  return body;
}

static struct body *make(const struct body_sample *sample) {
  struct body *body;
  struct dsnet_error error = {0};
  ok(body_new_from_arrays(&body, &sample->arrays, &error), &error);
  return body;
}

static void assert_hash_equal(const struct body *a, const struct body *b) {
  assert_memory_equal(body_hash(a), body_hash(b), BODY_HASH_SIZE);
}

static void *read_bytes(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  *size = (size_t)ftell(file);
  rewind(file);
  void *bytes = malloc(*size);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *size, file), *size);
  fclose(file);
  return bytes;
}

// --- files that NumPy wrote ---------------------------------------------------------------------

static void assert_array(struct npz *npz, const char *name, const float *values, size_t count) {
  float *expected;
  struct npy_info info;
  struct dsnet_error error = {0};
  ok(npz_read_f32(npz, name, 1 << 20, &expected, &info, &error), &error);
  assert_int_equal(info.count, count);
  assert_memory_equal(values, expected, count * sizeof *values);
  free(expected);
}

static void a_numpy_file_is_read_as_it_was_written(void **state) {
  (void)state;
  struct body *body = load(DSNET_TEST_DATA "/body_smpl.npz");
  const size_t V = body_vertices(body);
  struct npz *npz;
  int64_t *hash;
  struct dsnet_error error = {0};
  assert_int_equal(body_shapes(body), 10);
  ok(npz_open(&npz, DSNET_TEST_DATA "/body_smpl.npz", &error), &error);
  assert_array(npz, "v_template", body_template(body), V * 3);
  assert_array(npz, "shapedirs", body_shapedirs(body), V * 3 * 10);
  assert_array(npz, "posedirs", body_posedirs(body), V * 3 * 207);
  assert_array(npz, "soft_tissue", body_soft_tissue(body), V);
  npz_close(npz);
  assert_int_equal(body_parents(body)[0], -1);
  assert_int_equal(body_parents(body)[23], 21);
  for (size_t i = 0; i < body_faces(body) * 3; i++)
    assert_int_equal(body_triangles(body)[i], (i / 3 + i % 3) % V);

  ok(npz_open(&npz, DSNET_TEST_DATA "/body_golden.npz", &error), &error);
  ok(npz_read_i64(npz, "smpl_hash", BODY_HASH_SIZE, &hash, NULL, &error), &error);
  for (size_t i = 0; i < BODY_HASH_SIZE; i++)
    assert_int_equal(body_hash(body)[i], hash[i]);
  free(hash);
  npz_close(npz);
  body_free(body);
}

// --- layouts ------------------------------------------------------------------------------------

static void every_layout_loads_and_keeps_what_a_body_has(void **state) {
  struct bench *bench = *state;
  static const size_t joints[] = {24, 52, 55}, shapes[] = {1, 10, 16, 300},
                      columns[] = {0, 207, 459, 486};
  for (int i = 0; i < 3 * 4 * 4 * 2; i++) {
    const size_t J = joints[i % 3], S = shapes[i / 3 % 4], C = columns[i / 12 % 4];
    const struct sample_form form = {.wide = i / 48};
    struct body_sample *sample = &bench->sample;
    sample_init(sample, J, S, C);
    if (!form.wide)
      sample->kintree_table[0] = INT64_C(4294967295);
    sample_write(sample, &form, bench->path);
    struct body *body = load(bench->path), *direct = make(sample);
    const size_t B = S < 10 ? S : 10;
    assert_int_equal(body_vertices(body), SAMPLE_VERTICES);
    assert_int_equal(body_faces(body), SAMPLE_FACES);
    assert_int_equal(body_shapes(body), B);
    assert_int_equal(body_parents(body)[0], -1);
    assert_int_equal(body_parents(body)[22], 20);
    assert_int_equal(body_parents(body)[23], 21);
    assert_int_equal(body_posedirs(body) != NULL, C != 0);
    for (size_t row = 0; row < SAMPLE_VERTICES * 3; row++) {
      assert_memory_equal(body_shapedirs(body) + row * B, sample->shapedirs + row * S,
                          B * sizeof(float));
      if (C)
        assert_memory_equal(body_posedirs(body) + row * 207, sample->posedirs + row * C,
                            207 * sizeof(float));
    }
    assert_hash_equal(body, direct);
    body_free(body);
    body_free(direct);
  }
}

static float weight_of(const struct body *body, size_t vertex, int joint) {
  float sum = 0;
  for (size_t k = 0; k < BODY_WEIGHTS_MAX; k++)
    if (body_weight_joints(body)[vertex * BODY_WEIGHTS_MAX + k] == joint)
      sum += body_weight_values(body)[vertex * BODY_WEIGHTS_MAX + k];
  return sum;
}

static void one_weight(struct body_sample *sample, size_t vertex, size_t joint) {
  float *row = sample->weights + vertex * sample->arrays.joints;
  memset(row, 0, sample->arrays.joints * sizeof *row);
  row[joint] = 1;
}

static void fingers_jaw_and_eyes_fold_into_hands_and_head(void **state) {
  struct bench *bench = *state;
  static const struct {
    size_t joints, file_joint;
    int body_joint;
  } cases[] = {{24, 22, 22}, {24, 23, 23}, {52, 20, 20}, {52, 22, 22}, {52, 36, 22}, {52, 37, 23},
               {52, 51, 23}, {55, 22, 15}, {55, 24, 15}, {55, 25, 22}, {55, 39, 22}, {55, 54, 23}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sample_init(&bench->sample, cases[i].joints, 10, 0);
    one_weight(&bench->sample, 4, cases[i].file_joint);
    struct body *body = make(&bench->sample);
    if (weight_of(body, 4, cases[i].body_joint) != 1)
      fail_msg("joint %zu of %zu went elsewhere", cases[i].file_joint, cases[i].joints);
    body_free(body);
  }
}

static void a_hand_is_where_its_first_finger_joint_is(void **state) {
  struct bench *bench = *state;
  struct body_sample *sample = &bench->sample;
  float joints[BODY_JOINTS * 3];
  sample_init(sample, 55, 10, 0);
  for (size_t v = 0; v < SAMPLE_VERTICES; v++) {
    sample->J_regressor[25 * SAMPLE_VERTICES + v] = v == 2;
    sample->J_regressor[40 * SAMPLE_VERTICES + v] = v == 7;
  }
  struct body *body = make(sample);
  body_shape(body, NULL, 0, NULL, joints);
  assert_memory_equal(joints + 3 * 22, sample->v_template + 3 * 2, 3 * sizeof(float));
  assert_memory_equal(joints + 3 * 23, sample->v_template + 3 * 7, 3 * sizeof(float));
  body_free(body);
}

// --- weights ------------------------------------------------------------------------------------

static void the_four_heaviest_weights_are_kept_and_scaled(void **state) {
  struct bench *bench = *state;
  float *row = bench->sample.weights + 3 * 24;
  memset(row, 0, 24 * sizeof *row);
  row[0] = 0.05f;
  row[4] = 0.2f;
  row[5] = 0.1f;
  row[9] = 0.4f;
  row[11] = 0.05f;
  row[20] = 0.2f;
  struct body *body = make(&bench->sample);
  const uint8_t *joints = body_weight_joints(body) + 3 * 4;
  const float *values = body_weight_values(body) + 3 * 4;
  static const uint8_t expected_joints[] = {9, 4, 20, 5};
  static const double expected[] = {0.4 / 0.9, 0.2 / 0.9, 0.2 / 0.9, 0.1 / 0.9};
  assert_memory_equal(joints, expected_joints, 4);
  for (int k = 0; k < 4; k++)
    assert_true(fabs(values[k] - expected[k]) < 1e-7);
  body_free(body);
}

static void unused_weight_slots_are_harmless(void **state) {
  struct bench *bench = *state;
  one_weight(&bench->sample, 0, 17);
  struct body *body = make(&bench->sample);
  static const uint8_t joints[] = {17, 17, 17, 17};
  static const float values[] = {1, 0, 0, 0};
  assert_memory_equal(body_weight_joints(body), joints, sizeof joints);
  assert_memory_equal(body_weight_values(body), values, sizeof values);
  body_free(body);
}

// --- saving -------------------------------------------------------------------------------------

static void a_saved_body_loads_as_the_same_body(void **state) {
  struct bench *bench = *state;
  static const char *const names[] = {"/body_smpl.npz", "/body_smplh.npz"};
  struct dsnet_error error = {0};
  for (int i = 0; i < 2; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", DSNET_TEST_DATA, names[i]);
    struct body *body = load(path);
    ok(body_save(body, bench->path, &error), &error);
    struct body *again = load(bench->path);
    assert_hash_equal(body, again);
    if (body_soft_tissue(body))
      assert_memory_equal(body_soft_tissue(body), body_soft_tissue(again),
                          body_vertices(body) * sizeof(float));
    else
      assert_null(body_soft_tissue(again));
    body_free(body);
    body_free(again);
  }
}

static void a_saved_body_has_the_layout_of_smpl(void **state) {
  struct bench *bench = *state;
  struct dsnet_error error = {0};
  struct npy_info info;
  int64_t *table;
  struct npz *npz;
  struct body *body = make(&bench->sample);
  ok(body_save(body, bench->path, &error), &error);
  body_free(body);
  ok(npz_open(&npz, bench->path, &error), &error);
  assert_int_equal(npz_count(npz), 8);
  ok(npz_read_i64(npz, "kintree_table", 48, &table, &info, &error), &error);
  assert_int_equal(info.kind, NPY_UINT);
  assert_int_equal(info.width, 4);
  assert_int_equal(table[0], INT64_C(4294967295));
  assert_int_equal(table[24 + 23], 23);
  free(table);
  ok(npz_info(npz, "f", &info, &error), &error);
  assert_int_equal(info.kind, NPY_UINT);
  ok(npz_info(npz, "weights", &info, &error), &error);
  assert_int_equal(info.kind, NPY_FLOAT);
  assert_int_equal(info.width, 4);
  assert_int_equal(info.shape[1], 24);
  npz_close(npz);
}

static void saving_where_nothing_can_be_written_fails(void **state) {
  struct bench *bench = *state;
  struct dsnet_error error = {0};
  char path[128];
  snprintf(path, sizeof path, "%s/missing/body.npz", bench->folder);
  struct body *body = make(&bench->sample);
  assert_int_equal(body_save(body, path, &error), DSNET_EIO);
  assert_non_null(strstr(error.text, path));
  body_free(body);
}

// --- the hash -----------------------------------------------------------------------------------

static void the_hash_depends_on_every_array_that_displacements_refer_to(void **state) {
  struct bench *bench = *state;
  struct body_sample *sample = &bench->sample;
  struct body *body = make(sample);
  float *const floats[] = {sample->v_template + 26, sample->shapedirs + 269,
                           sample->posedirs + 5588, sample->J_regressor + 215};
  for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
    const float kept = *floats[i];
    *floats[i] += 0.125f;
    struct body *other = make(sample);
    assert_memory_not_equal(body_hash(body), body_hash(other), BODY_HASH_SIZE);
    body_free(other);
    *floats[i] = kept;
  }
  sample->f[14] = 0;
  struct body *faces = make(sample);
  sample_init(sample, 24, 10, 207);
  one_weight(sample, 8, 3);
  struct body *weights = make(sample);
  sample_init(sample, 24, 10, 207);
  sample->kintree_table[23] = 20;
  struct body *tree = make(sample);
  sample_init(sample, 24, 10, 0);
  struct body *flat = make(sample);
  assert_memory_not_equal(body_hash(body), body_hash(faces), BODY_HASH_SIZE);
  assert_memory_not_equal(body_hash(body), body_hash(weights), BODY_HASH_SIZE);
  assert_memory_not_equal(body_hash(body), body_hash(tree), BODY_HASH_SIZE);
  assert_memory_not_equal(body_hash(body), body_hash(flat), BODY_HASH_SIZE);
  body_free(faces);
  body_free(weights);
  body_free(tree);
  body_free(flat);
  body_free(body);
}

static void the_hash_does_not_depend_on_the_rest(void **state) {
  struct bench *bench = *state;
  struct body_sample *sample = &bench->sample;
  sample_init(sample, 24, 16, 459);
  struct body *body = make(sample);
  sample->soft_tissue[0] = 0.75f;
  sample->shapedirs[10] = 1; // the eleventh direction
  sample->posedirs[207] = 1; // the first column beyond the body's
  struct body *other = make(sample);
  sample->arrays.soft_tissue = NULL;
  struct body *hard = make(sample);
  assert_hash_equal(body, other);
  assert_hash_equal(body, hard);
  body_free(body);
  body_free(other);
  body_free(hard);
}

// --- refusals -----------------------------------------------------------------------------------

static void no_vertices(struct body_sample *s) {
  s->arrays.vertices = 0;
}
static void many_vertices(struct body_sample *s) {
  s->arrays.vertices = BODY_VERTICES_MAX + 1;
}
static void no_faces(struct body_sample *s) {
  s->arrays.faces = 0;
}
static void many_faces(struct body_sample *s) {
  s->arrays.faces = BODY_FACES_MAX + 1;
}
static void no_shapes(struct body_sample *s) {
  s->arrays.shapes = 0;
}
static void many_shapes(struct body_sample *s) {
  s->arrays.shapes = BODY_FILE_SHAPES_MAX + 1;
}
static void odd_columns(struct body_sample *s) {
  s->arrays.columns = 208;
}
static void odd_joints(struct body_sample *s) {
  s->arrays.joints = 23;
}
static void second_root(struct body_sample *s) {
  s->kintree_table[5] = INT64_C(4294967295);
}
static void root_with_parent(struct body_sample *s) {
  s->kintree_table[0] = 0;
}
static void child_before_parent(struct body_sample *s) {
  s->kintree_table[4] = 7;
}
static void own_parent(struct body_sample *s) {
  s->kintree_table[4] = 4;
}
static void shuffled_ids(struct body_sample *s) {
  s->kintree_table[24 + 6] = 7;
}
static void handless(struct body_sample *s) {
  sample_init(s, 52, 10, 0);
  for (size_t j = 37; j < 52; j++)
    s->kintree_table[j] = 20;
}
static void template_nan(struct body_sample *s) {
  s->v_template[7] = NAN;
}
static void template_infinite(struct body_sample *s) {
  s->v_template[26] = -INFINITY;
}
static void template_in_millimetres(struct body_sample *s) {
  s->v_template[9] = 1700;
}
static void shape_nan(struct body_sample *s) {
  s->shapedirs[269] = NAN;
}
static void pose_nan(struct body_sample *s) {
  s->posedirs[0] = NAN;
}
static void regressor_infinite(struct body_sample *s) {
  s->J_regressor[215] = INFINITY;
}
static void weight_nan(struct body_sample *s) {
  s->weights[0] = NAN;
}
static void weight_negative(struct body_sample *s) {
  s->weights[0] = -0.25f;
}
static void weight_sum(struct body_sample *s) {
  s->weights[2 * 24 + 1] += 0.01f;
}
static void weightless(struct body_sample *s) {
  memset(s->weights + 8 * 24, 0, 24 * 4);
}
static void tissue_above(struct body_sample *s) {
  s->soft_tissue[1] = 1.5f;
}
static void face_beyond(struct body_sample *s) {
  s->f[14] = SAMPLE_VERTICES;
}
static void face_negative(struct body_sample *s) {
  s->f[0] = -1;
}

static void unsound_arrays_are_refused_by_name(void **state) {
  struct bench *bench = *state;
  static const struct {
    void (*spoil)(struct body_sample *);
    int code;
    const char *array, *mentions;
  } cases[] = {
      {no_vertices, DSNET_ELIMIT, "v_template", "0 vertices"},
      {many_vertices, DSNET_ELIMIT, "v_template", "200001 vertices"},
      {no_faces, DSNET_ELIMIT, "f", "0 faces"},
      {many_faces, DSNET_ELIMIT, "f", "faces"},
      {no_shapes, DSNET_ELIMIT, "shapedirs", "0 shape directions"},
      {many_shapes, DSNET_ELIMIT, "shapedirs", "513"},
      {odd_columns, DSNET_EUNSUPPORTED, "posedirs", "208"},
      {odd_joints, DSNET_EUNSUPPORTED, "kintree_table", "23 joints"},
      {second_root, DSNET_EMISMATCH, "kintree_table", "joint 5"},
      {root_with_parent, DSNET_EMISMATCH, "kintree_table", "joint 0"},
      {child_before_parent, DSNET_EMISMATCH, "kintree_table", "joint 4 has parent 7"},
      {own_parent, DSNET_EMISMATCH, "kintree_table", "joint 4 has parent 4"},
      {shuffled_ids, DSNET_EMISMATCH, "kintree_table", "column 6"},
      {handless, DSNET_EMISMATCH, "kintree_table", "joint 21"},
      {template_nan, DSNET_EVALUE, "v_template", "row 2 is not finite"},
      {template_infinite, DSNET_EVALUE, "v_template", "row 8 is not finite"},
      {template_in_millimetres, DSNET_EVALUE, "v_template", "1700"},
      {shape_nan, DSNET_EVALUE, "shapedirs", "row 8"},
      {pose_nan, DSNET_EVALUE, "posedirs", "row 0"},
      {regressor_infinite, DSNET_EVALUE, "J_regressor", "row 23"},
      {weight_nan, DSNET_EVALUE, "weights", "row 0 is not finite"},
      {weight_negative, DSNET_EVALUE, "weights", "row 0"},
      {weight_sum, DSNET_EVALUE, "weights", "row 2 sums to 1.01"},
      {weightless, DSNET_EVALUE, "weights", "row 8 sums to 0"},
      {tissue_above, DSNET_EVALUE, "soft_tissue", "1.5 in row 1"},
      {face_beyond, DSNET_EVALUE, "f", "face 4 names vertex 9"},
      {face_negative, DSNET_EVALUE, "f", "face 0 names vertex -1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct body *body = NULL;
    struct dsnet_error error = {0};
    char start[32];
    sample_init(&bench->sample, 24, 10, 207);
    cases[i].spoil(&bench->sample);
    int code = body_new_from_arrays(&body, &bench->sample.arrays, &error);
    snprintf(start, sizeof start, "%s: ", cases[i].array);
    if (code != cases[i].code || body || strncmp(error.text, start, strlen(start)) ||
        !strstr(error.text, cases[i].mentions))
      fail_msg("case %zu: code %d, text \"%s\"", i, code, error.text);
  }
}

static void unfit_files_are_refused_by_the_array(void **state) {
  struct bench *bench = *state;
  static const struct {
    struct sample_form form;
    int code;
    const char *array;
  } cases[] = {
      {{.skip = "v_template"}, DSNET_EMISSING, "v_template"},
      {{.skip = "shapedirs"}, DSNET_EMISSING, "shapedirs"},
      {{.skip = "J_regressor"}, DSNET_EMISSING, "J_regressor"},
      {{.skip = "weights"}, DSNET_EMISSING, "weights"},
      {{.skip = "kintree_table"}, DSNET_EMISSING, "kintree_table"},
      {{.skip = "f"}, DSNET_EMISSING, "f"},
#define SHAPED(name, type, ...)                                                                    \
  {.replace = name,                                                                                \
   .dtype = type,                                                                                  \
   .dimensions = sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t),                                 \
   .shape = {__VA_ARGS__}}
      {SHAPED("v_template", "<f4", 9, 2), DSNET_EMISMATCH, "v_template"},
      {SHAPED("v_template", "<f4", 27), DSNET_EMISMATCH, "v_template"},
      {SHAPED("v_template", "<f4", 0, 3), DSNET_EMISMATCH, "v_template"},
      {SHAPED("v_template", "<f4", 8, 3), DSNET_EMISMATCH, "shapedirs"},
      {SHAPED("shapedirs", "<f4", 9, 3), DSNET_EMISMATCH, "shapedirs"},
      {SHAPED("shapedirs", "<f4", 9, 3, 0), DSNET_EMISMATCH, "shapedirs"},
      {SHAPED("shapedirs", "<f4", 9, 3, 513), DSNET_ELIMIT, "shapedirs"},
      {SHAPED("posedirs", "<f4", 9, 3, 206), DSNET_EUNSUPPORTED, "posedirs"},
      {SHAPED("posedirs", "<f4", 207, 27), DSNET_EMISMATCH, "posedirs"},
      {SHAPED("J_regressor", "<f4", 9, 24), DSNET_EMISMATCH, "J_regressor"},
      {SHAPED("weights", "<f4", 24, 9), DSNET_EMISMATCH, "weights"},
      {SHAPED("weights", "<f4", 9, 52), DSNET_EMISMATCH, "weights"},
      {SHAPED("kintree_table", "<u4", 24, 2), DSNET_EMISMATCH, "kintree_table"},
      {SHAPED("f", "<u4", 5, 4), DSNET_EMISMATCH, "f"},
      {SHAPED("f", "<f4", 5, 3), DSNET_EUNSUPPORTED, "f"},
      {SHAPED("soft_tissue", "<f4", 9, 1), DSNET_EMISMATCH, "soft_tissue"},
      {SHAPED("v_template", "<U4", 9, 3), DSNET_EUNSUPPORTED, "v_template"},
      {SHAPED("weights", "<f4", 9, 24), DSNET_EVALUE, "weights"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct body *body = NULL;
    struct dsnet_error error = {0};
    char middle[64];
    sample_write(&bench->sample, &cases[i].form, bench->path);
    int code = body_load(&body, bench->path, &error);
    snprintf(middle, sizeof middle, "body.npz: %s: ", cases[i].array);
    if (code != cases[i].code || body || !strstr(error.text, middle))
      fail_msg("case %zu: code %d, text \"%s\"", i, code, error.text);
  }
}

static void a_missing_file_is_named(void **state) {
  struct bench *bench = *state;
  struct body *body;
  struct dsnet_error error = {0};
  assert_int_equal(body_load(&body, bench->path, &error), DSNET_EIO);
  assert_non_null(strstr(error.text, bench->path));
}

static void truncated_and_damaged_files_are_refused(void **state) {
  struct bench *bench = *state;
  size_t size;
  sample_init(&bench->sample, 24, 1, 0);
  sample_write(&bench->sample, &plain, bench->path);
  uint8_t *bytes = read_bytes(bench->path, &size);
  struct body *body;
  for (size_t length = 0; length < size; length++) {
    struct dsnet_error error = {0};
    uint8_t *cut = malloc(length ? length : 1); // so that reading beyond it is seen
    assert_non_null(cut);
    memcpy(cut, bytes, length);
    assert_true(body_load_memory(&body, cut, length, &error) < 0);
    assert_true(error.text[0] != 0);
    free(cut);
  }
  struct body *whole;
  struct dsnet_error error = {0};
  ok(body_load_memory(&whole, bytes, size, &error), &error);
  for (size_t at = 0; at < size; at++) {
    struct dsnet_error spoilt = {0};
    bytes[at] ^= 0xff;
    // Some bytes of a zip file mean nothing; then the body is the same body.
    if (body_load_memory(&body, bytes, size, &spoilt) == 0) {
      assert_hash_equal(body, whole);
      body_free(body);
    }
    bytes[at] ^= 0xff;
  }
  body_free(whole);
  free(bytes);
}

// Leaks are the sanitizer's to find.
static void each_allocation_that_fails_is_reported(void **state) {
  struct bench *bench = *state;
  struct body *body = NULL;
  sample_write(&bench->sample, &plain, bench->path);
  int code = DSNET_ENOMEM;
  size_t turns = 0;
  for (; code == DSNET_ENOMEM; turns++) {
    struct dsnet_error error = {0};
    allocations = 0;
    failing = turns;
    code = body_load(&body, bench->path, &error);
    failing = SIZE_MAX;
    assert_int_equal(code, error.code);
    assert_true(code == 0 || !body);
  }
  assert_int_equal(code, 0);
  assert_true(turns > 9); // eight arrays and the body at least
  code = DSNET_ENOMEM;
  for (turns = 0; code == DSNET_ENOMEM; turns++) {
    struct dsnet_error error = {0};
    allocations = 0;
    failing = turns;
    code = body_save(body, bench->path, &error);
    failing = SIZE_MAX;
    assert_int_equal(code, error.code);
    struct body *kept = load(bench->path); // the file that was there, or the whole new one
    assert_hash_equal(kept, body);
    body_free(kept);
  }
  assert_int_equal(code, 0);
  assert_true(turns > 2);
  body_free(body);
}

static void joints_have_smpl_names(void **state) {
  (void)state;
  assert_string_equal(body_joint_name(0), "pelvis");
  assert_string_equal(body_joint_name(9), "spine3");
  assert_string_equal(body_joint_name(15), "head");
  assert_string_equal(body_joint_name(23), "right_hand");
  assert_null(body_joint_name(24));
  assert_null(body_joint_name(-1));
}

int main(void) {
#define BENCH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_numpy_file_is_read_as_it_was_written),
      BENCH(every_layout_loads_and_keeps_what_a_body_has),
      BENCH(fingers_jaw_and_eyes_fold_into_hands_and_head),
      BENCH(a_hand_is_where_its_first_finger_joint_is),
      BENCH(the_four_heaviest_weights_are_kept_and_scaled),
      BENCH(unused_weight_slots_are_harmless),
      BENCH(a_saved_body_loads_as_the_same_body),
      BENCH(a_saved_body_has_the_layout_of_smpl),
      BENCH(saving_where_nothing_can_be_written_fails),
      BENCH(the_hash_depends_on_every_array_that_displacements_refer_to),
      BENCH(the_hash_does_not_depend_on_the_rest),
      BENCH(unsound_arrays_are_refused_by_name),
      BENCH(unfit_files_are_refused_by_the_array),
      BENCH(a_missing_file_is_named),
      BENCH(truncated_and_damaged_files_are_refused),
      BENCH(each_allocation_that_fails_is_reported),
      cmocka_unit_test(joints_have_smpl_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
