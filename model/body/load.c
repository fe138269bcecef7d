// SPDX-License-Identifier: Apache-2.0
// The SMPL npz layout into the arrays of body/arrays.h. Here only names, types and shapes are
// checked, before anything is read, so that no size is taken from one array and used on another;
// values and limits are body_new_from_arrays's.
#include "body/body.h"

#include <stdio.h>
#include <stdlib.h>

#include "body/arrays.h"
#include "io/npz.h"

// More than any real model has (SMPL-X's pose directions are 15 million values), so that a file
// cannot ask for all the memory there is.
#define VALUES_MAX ((size_t)1 << 27)

#define ANY 0 // in a wanted shape: a size that this array decides

// "(6890, 3, 10)", or "()" for a scalar; cut off when it does not fit.
static const char *shape_text(const struct npy_info *info, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "(");
  for (size_t i = 0; i < info->dimensions && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, i ? ", %zu" : "%zu", info->shape[i]);
  if (used < size)
    snprintf(text + used, size - used, ")");
  return text;
}

// The array must be there, numeric, and of a shape that matches wanted[dimensions].
static int expect(struct npz *npz, const char *name, const char *form, size_t dimensions,
                  const size_t *wanted, struct npy_info *info, struct dsnet_error *error) {
  int code = npz_info(npz, name, info, error);
  if (code)
    return code;
  if (info->kind == NPY_OTHER)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED,
                           "%s: holds Python objects (a sparse matrix?); store it as a dense array",
                           name);
  bool fits = info->dimensions == dimensions && info->count <= VALUES_MAX;
  for (size_t i = 0; fits && i < dimensions; i++)
    fits = wanted[i] == ANY ? info->shape[i] > 0 : info->shape[i] == wanted[i];
  if (fits)
    return 0;
  char text[128];
  return dsnet_error_set(error, info->count > VALUES_MAX ? DSNET_ELIMIT : DSNET_EMISMATCH,
                         "%s: its shape is %s, but it must be %s of this body", name,
                         shape_text(info, text, sizeof text), form);
}

// Sizes of every array, taken from v_template, kintree_table, shapedirs, posedirs and f, and
// checked against one another.
static int read_sizes(struct npz *npz, struct body_arrays *arrays, struct dsnet_error *error) {
  struct npy_info info;
  int code = expect(npz, "v_template", "(V, 3)", 2, (size_t[]){ANY, 3}, &info, error);
  if (code)
    return code;
  const size_t V = arrays->vertices = info.shape[0];
  if ((code = expect(npz, "kintree_table", "(2, J)", 2, (size_t[]){2, ANY}, &info, error)))
    return code;
  const size_t J = arrays->joints = info.shape[1];
  if ((code = expect(npz, "shapedirs", "(V, 3, B)", 3, (size_t[]){V, 3, ANY}, &info, error)))
    return code;
  arrays->shapes = info.shape[2];
  if ((code = expect(npz, "J_regressor", "(J, V)", 2, (size_t[]){J, V}, &info, error)))
    return code;
  if ((code = expect(npz, "weights", "(V, J)", 2, (size_t[]){V, J}, &info, error)))
    return code;
  if ((code = expect(npz, "f", "(F, 3)", 2, (size_t[]){ANY, 3}, &info, error)))
    return code;
  arrays->faces = info.shape[0];
  if (npz_has(npz, "posedirs")) {
    if ((code = expect(npz, "posedirs", "(V, 3, C)", 3, (size_t[]){V, 3, ANY}, &info, error)))
      return code;
    arrays->columns = info.shape[2];
  }
  if (npz_has(npz, "soft_tissue"))
    code = expect(npz, "soft_tissue", "(V)", 1, (size_t[]){V}, &info, error);
  return code;
}

// Everything a file is read into, until the body has its copy.
struct file {
  float *v_template, *shapedirs, *posedirs, *regressor, *weights, *soft_tissue;
  int64_t *kintree_table, *f;
};

static void file_deinit(struct file *file) {
  free(file->v_template);
  free(file->shapedirs);
  free(file->posedirs);
  free(file->regressor);
  free(file->weights);
  free(file->soft_tissue);
  free(file->kintree_table);
  free(file->f);
}

static int read_floats(struct npz *npz, const char *name, float **data, struct dsnet_error *error) {
  return npz_read_f32(npz, name, VALUES_MAX, data, NULL, error);
}

static int read_integers(struct npz *npz, const char *name, int64_t **data,
                         struct dsnet_error *error) {
  return npz_read_i64(npz, name, VALUES_MAX, data, NULL, error);
}

static int read_file(struct npz *npz, struct file *file, struct dsnet_error *error) {
  int code = read_integers(npz, "kintree_table", &file->kintree_table, error);
  if (!code)
    code = read_integers(npz, "f", &file->f, error);
  if (!code)
    code = read_floats(npz, "v_template", &file->v_template, error);
  if (!code)
    code = read_floats(npz, "shapedirs", &file->shapedirs, error);
  if (!code)
    code = read_floats(npz, "J_regressor", &file->regressor, error);
  if (!code)
    code = read_floats(npz, "weights", &file->weights, error);
  if (!code && npz_has(npz, "posedirs"))
    code = read_floats(npz, "posedirs", &file->posedirs, error);
  if (!code && npz_has(npz, "soft_tissue"))
    code = read_floats(npz, "soft_tissue", &file->soft_tissue, error);
  return code;
}

static int load(struct body **body, struct npz *npz, struct dsnet_error *error) {
  struct body_arrays arrays = {0};
  struct file file = {0};
  int code = read_sizes(npz, &arrays, error);
  if (!code)
    code = body_arrays_check_sizes(&arrays, error);
  if (!code)
    code = read_file(npz, &file, error);
  if (!code) {
    arrays.v_template = file.v_template;
    arrays.shapedirs = file.shapedirs;
    arrays.posedirs = file.posedirs;
    arrays.J_regressor = file.regressor;
    arrays.weights = file.weights;
    arrays.kintree_table = file.kintree_table;
    arrays.f = file.f;
    arrays.soft_tissue = file.soft_tissue;
    code = body_new_from_arrays(body, &arrays, error);
  }
  file_deinit(&file);
  return code;
}

int body_load(struct body **body, const char *path, struct dsnet_error *error) {
  struct npz *npz;
  int code = npz_open(&npz, path, error);
  if (code)
    return code;
  code = load(body, npz, error);
  npz_close(npz);
  if (code)
    dsnet_error_prefix(error, "%s", path);
  return code;
}

int body_load_memory(struct body **body, const void *npz, size_t size, struct dsnet_error *error) {
  struct npz *archive;
  int code = npz_open_memory(&archive, npz, size, error);
  if (code)
    return code;
  code = load(body, archive, error);
  npz_close(archive);
  return code;
}
