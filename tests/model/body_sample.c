// SPDX-License-Identifier: Apache-2.0
#include "body_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "io/npz.h"

static const int smpl_parents[24] = {-1, 0, 0, 0,  1,  2,  3,  4,  5,  6,  7,  8,
                                     9,  9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21};

// Jaw and eyes hang from the head (SMPL-X only), three joints a finger from the wrists.
static int larger_tree_parent(size_t joint, size_t joints) {
  const size_t fingers = joints - 30;
  if (joint < 22)
    return smpl_parents[joint];
  if (joint < fingers)
    return 15;
  const size_t finger = joint - fingers;
  if (finger % 3)
    return (int)joint - 1;
  return finger < 15 ? 20 : 21;
}

static void fill(float *values, size_t count, double scale, struct random_state *random) {
  for (size_t i = 0; i < count; i++)
    values[i] = (float)(scale * random_normal(random));
}

static void fill_weights(struct body_sample *sample, size_t joints, struct random_state *random) {
  for (size_t v = 0; v < SAMPLE_VERTICES; v++) {
    float *row = sample->weights + v * joints;
    size_t first = random_bits(random) % joints;
    row[first] += 0.5f;
    row[(first + 1) % joints] += 0.25f;
    row[(first + 5) % joints] += 0.25f;
  }
}

void sample_init(struct body_sample *sample, size_t joints, size_t shapes, size_t columns) {
  struct random_state random;
  random_init(&random, 7);
  memset(sample, 0, sizeof *sample);
  sample->arrays = (struct body_arrays){
      .vertices = SAMPLE_VERTICES,
      .faces = SAMPLE_FACES,
      .joints = joints,
      .shapes = shapes,
      .columns = columns,
      .v_template = sample->v_template,
      .shapedirs = sample->shapedirs,
      .posedirs = columns ? sample->posedirs : NULL,
      .J_regressor = sample->J_regressor,
      .weights = sample->weights,
      .kintree_table = sample->kintree_table,
      .f = sample->f,
      .soft_tissue = sample->soft_tissue,
  };
  fill(sample->v_template, SAMPLE_VERTICES * 3, 0.5, &random);
  fill(sample->shapedirs, SAMPLE_VERTICES * 3 * shapes, 0.02, &random);
  fill(sample->posedirs, SAMPLE_VERTICES * 3 * columns, 0.01, &random);
  for (size_t i = 0; i < joints * SAMPLE_VERTICES; i++)
    sample->J_regressor[i] = i % 3 ? 0 : 3.0f / SAMPLE_VERTICES;
  fill_weights(sample, joints, &random);
  for (size_t j = 0; j < joints; j++) {
    sample->kintree_table[j] = joints == 24 ? smpl_parents[j] : larger_tree_parent(j, joints);
    sample->kintree_table[joints + j] = (int64_t)j;
  }
  for (size_t i = 0; i < SAMPLE_FACES * 3; i++)
    sample->f[i] = (int64_t)((i / 3 + i % 3) % SAMPLE_VERTICES);
  for (size_t v = 0; v < SAMPLE_VERTICES; v++)
    sample->soft_tissue[v] = (float)v / SAMPLE_VERTICES;
}

static void check(int code, const struct dsnet_error *error) {
  if (code)
    fail_msg("sample file: %s", error->text);
}

static void add(struct npz_writer *writer, const struct sample_form *form, const char *name,
                const char *dtype, size_t dimensions, const size_t *shape, const void *data) {
  struct dsnet_error error = {0};
  if (form->skip && !strcmp(form->skip, name))
    return;
  if (!form->replace || strcmp(form->replace, name)) {
    check(npz_writer_add(writer, name, dtype, dimensions, shape, data, &error), &error);
    return;
  }
  size_t bytes = 128; // enough for one element of any type
  for (size_t i = 0; i < form->dimensions; i++)
    bytes *= form->shape[i] ? form->shape[i] : 1;
  void *zeros = memory_alloc(bytes, 1);
  assert_non_null(zeros);
  check(npz_writer_add(writer, name, form->dtype, form->dimensions, form->shape, zeros, &error),
        &error);
  free(zeros);
}

static void add_floats(struct npz_writer *writer, const struct sample_form *form, const char *name,
                       size_t dimensions, const size_t *shape, const float *values) {
  size_t count = 1;
  for (size_t i = 0; i < dimensions; i++)
    count *= shape[i];
  double *wide = memory_alloc(count, sizeof *wide);
  assert_non_null(wide);
  for (size_t i = 0; i < count; i++)
    wide[i] = values[i];
  add(writer, form, name, form->wide ? "<f8" : "<f4", dimensions, shape,
      form->wide ? (const void *)wide : values);
  free(wide);
}

static void add_integers(struct npz_writer *writer, const struct sample_form *form,
                         const char *name, const size_t shape[2], const int64_t *values) {
  const size_t count = shape[0] * shape[1];
  uint32_t *narrow = memory_alloc(count, sizeof *narrow);
  assert_non_null(narrow);
  for (size_t i = 0; i < count; i++)
    narrow[i] = (uint32_t)values[i];
  add(writer, form, name, form->wide ? "<i8" : "<u4", 2, shape,
      form->wide ? (const void *)values : narrow);
  free(narrow);
}

void sample_write(const struct body_sample *sample, const struct sample_form *form,
                  const char *path) {
  const struct body_arrays *a = &sample->arrays;
  const size_t V = a->vertices, J = a->joints;
  struct npz_writer *writer;
  struct dsnet_error error = {0};
  check(npz_writer_open(&writer, path, true, &error), &error);
  add_floats(writer, form, "v_template", 2, (size_t[]){V, 3}, a->v_template);
  add_floats(writer, form, "shapedirs", 3, (size_t[]){V, 3, a->shapes}, a->shapedirs);
  if (a->columns)
    add_floats(writer, form, "posedirs", 3, (size_t[]){V, 3, a->columns}, a->posedirs);
  add_floats(writer, form, "J_regressor", 2, (size_t[]){J, V}, a->J_regressor);
  add_floats(writer, form, "weights", 2, (size_t[]){V, J}, a->weights);
  add_integers(writer, form, "kintree_table", (size_t[]){2, J}, a->kintree_table);
  add_integers(writer, form, "f", (size_t[]){a->faces, 3}, a->f);
  if (a->soft_tissue)
    add_floats(writer, form, "soft_tissue", 1, (size_t[]){V}, a->soft_tissue);
  check(npz_writer_close(writer, &error), &error);
}
