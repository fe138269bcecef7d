// SPDX-License-Identifier: Apache-2.0
#include "body/arrays.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/fold.h"
#include "body/hash.h"
#include "body/struct.h"
#include "body/weights.h"

#define WEIGHT_SUM_TOLERANCE 1e-3  // of a row of skinning weights
#define WEIGHT_ROUNDING      1e-6f // a weight may be this far below 0, and then is 0
#define REGRESSOR_MAX        1e3f  // far over any interpolation weight

// --- checks -------------------------------------------------------------------------------------

static int check_size(const char *name, const char *what, size_t value, size_t max,
                      struct dsnet_error *error) {
  if (value >= 1 && value <= max)
    return 0;
  return dsnet_error_set(error, DSNET_ELIMIT, "%s: %zu %s, but a body has 1 to %zu", name, value,
                         what, max);
}

int body_arrays_check_sizes(const struct body_arrays *arrays, struct dsnet_error *error) {
  int code = check_size("v_template", "vertices", arrays->vertices, BODY_VERTICES_MAX, error);
  if (!code)
    code = check_size("f", "faces", arrays->faces, BODY_FACES_MAX, error);
  if (!code)
    code = check_size("shapedirs", "shape directions", arrays->shapes, BODY_FILE_SHAPES_MAX, error);
  const size_t C = arrays->columns;
  if (!code && C != 0 && C != BODY_POSE_COLUMNS && C != 459 && C != BODY_FILE_COLUMNS_MAX)
    code = dsnet_error_set(error, DSNET_EUNSUPPORTED,
                           "posedirs: %zu columns, but there must be 207, 459 or 486", C);
  return code;
}

// Every value of [rows][columns] must be finite and within low..high.
static int check_range(const char *name, const float *values, size_t rows, size_t columns,
                       float low, float high, struct dsnet_error *error) {
  for (size_t i = 0; i < rows * columns; i++) {
    if (values[i] >= low && values[i] <= high)
      continue;
    if (!isfinite(values[i]))
      return dsnet_error_set(error, DSNET_EVALUE, "%s: a value of row %zu is not finite", name,
                             i / columns);
    return dsnet_error_set(error, DSNET_EVALUE, "%s: %g in row %zu is outside %g to %g", name,
                           (double)values[i], i / columns, (double)low, (double)high);
  }
  return 0;
}

static int check_weight_sums(const struct body_arrays *arrays, struct dsnet_error *error) {
  for (size_t v = 0; v < arrays->vertices; v++) {
    double sum = 0;
    for (size_t j = 0; j < arrays->joints; j++)
      sum += arrays->weights[v * arrays->joints + j];
    if (fabs(sum - 1) > WEIGHT_SUM_TOLERANCE)
      return dsnet_error_set(error, DSNET_EVALUE, "weights: row %zu sums to %.6g, not to 1", v,
                             sum);
  }
  return 0;
}

static int check_values(const struct body_arrays *arrays, struct dsnet_error *error) {
  const float reach = BODY_COORDINATE_MAX;
  const size_t V = arrays->vertices, J = arrays->joints;
  int code = check_range("v_template", arrays->v_template, V, 3, -reach, reach, error);
  if (!code)
    code = check_range("shapedirs", arrays->shapedirs, V, 3 * arrays->shapes, -reach, reach, error);
  if (!code && arrays->columns)
    code = check_range("posedirs", arrays->posedirs, V, 3 * arrays->columns, -reach, reach, error);
  if (!code)
    code =
        check_range("J_regressor", arrays->J_regressor, J, V, -REGRESSOR_MAX, REGRESSOR_MAX, error);
  if (!code)
    code =
        check_range("weights", arrays->weights, V, J, -WEIGHT_ROUNDING, 1 + WEIGHT_ROUNDING, error);
  if (!code)
    code = check_weight_sums(arrays, error);
  if (!code && arrays->soft_tissue)
    code = check_range("soft_tissue", arrays->soft_tissue, V, 1, 0, 1, error);
  return code;
}

static int check_faces(const struct body_arrays *arrays, struct dsnet_error *error) {
  for (size_t i = 0; i < arrays->faces * 3; i++)
    if (arrays->f[i] < 0 || arrays->f[i] >= (int64_t)arrays->vertices)
      return dsnet_error_set(error, DSNET_EVALUE,
                             "f: face %zu names vertex %" PRId64 ", but there are %zu", i / 3,
                             arrays->f[i], arrays->vertices);
  return 0;
}

// --- the block ----------------------------------------------------------------------------------

// Takes an aligned piece off the end of the block being laid out. The sizes have been checked: the
// largest body is far under SIZE_MAX.
static size_t reserve(size_t *end, size_t count, size_t size) {
  size_t offset = *end;
  *end += (count * size + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
  return offset;
}

static struct body *allocate(const struct body_arrays *arrays) {
  const size_t V = arrays->vertices, F = arrays->faces;
  const size_t B = arrays->shapes < BODY_SHAPES_MAX ? arrays->shapes : BODY_SHAPES_MAX;
  size_t end = 0;
  reserve(&end, 1, sizeof(struct body));
  size_t v_template = reserve(&end, V * 3, sizeof(float));
  size_t shapedirs = reserve(&end, V * 3 * B, sizeof(float));
  size_t regressor = reserve(&end, BODY_JOINTS * V, sizeof(float));
  size_t weight_values = reserve(&end, V * BODY_WEIGHTS_MAX, sizeof(float));
  size_t weight_joints = reserve(&end, V * BODY_WEIGHTS_MAX, 1);
  size_t triangles = reserve(&end, F * 3, sizeof(uint32_t));
  size_t soft_tissue = reserve(&end, arrays->soft_tissue ? V : 0, sizeof(float));
  size_t posedirs = reserve(&end, arrays->columns ? V * 3 * BODY_POSE_COLUMNS : 0, sizeof(float));
  char *block = memory_alloc(end, 1);
  if (!block)
    return NULL;
  struct body *body = (struct body *)block;
  *body = (struct body){
      .vertices = V,
      .faces = F,
      .shapes = B,
      .v_template = (float *)(block + v_template),
      .shapedirs = (float *)(block + shapedirs),
      .posedirs = arrays->columns ? (float *)(block + posedirs) : NULL,
      .regressor = (float *)(block + regressor),
      .weight_values = (float *)(block + weight_values),
      .weight_joints = (uint8_t *)(block + weight_joints),
      .triangles = (uint32_t *)(block + triangles),
      .soft_tissue = arrays->soft_tissue ? (float *)(block + soft_tissue) : NULL,
  };
  return body;
}

// --- filling ------------------------------------------------------------------------------------

// The first `kept` of each row's columns.
static void copy_columns(float *to, size_t kept, const float *from, size_t columns, size_t rows) {
  for (size_t r = 0; r < rows; r++)
    memcpy(to + r * kept, from + r * columns, kept * sizeof *to);
}

static void fill_weights(struct body *body, const struct body_arrays *arrays,
                         const struct fold *fold) {
  for (size_t v = 0; v < body->vertices; v++) {
    float row[BODY_JOINTS] = {0};
    for (size_t j = 0; j < arrays->joints; j++)
      row[fold->target[j]] += arrays->weights[v * arrays->joints + j];
    weights_select(row, body->weight_joints + v * BODY_WEIGHTS_MAX,
                   body->weight_values + v * BODY_WEIGHTS_MAX);
  }
}

// J(betas) = regressor (template + shapedirs betas), expanded; sums in double.
static void fill_joints(struct body *body) {
  const size_t V = body->vertices, B = body->shapes;
  for (int j = 0; j < BODY_JOINTS; j++) {
    const float *row = body->regressor + (size_t)j * V;
    for (size_t v = 0; v < V; v++) {
      if (row[v] == 0) // nearly all of them
        continue;
      for (size_t c = 0; c < 3; c++) {
        body->joint_template[j][c] += (double)row[v] * body->v_template[v * 3 + c];
        for (size_t b = 0; b < B; b++)
          body->joint_shapedirs[j][c][b] += (double)row[v] * body->shapedirs[(v * 3 + c) * B + b];
      }
    }
  }
}

static void fill(struct body *body, const struct body_arrays *arrays, const struct fold *fold) {
  const size_t V = body->vertices;
  memcpy(body->v_template, arrays->v_template, V * 3 * sizeof(float));
  copy_columns(body->shapedirs, body->shapes, arrays->shapedirs, arrays->shapes, V * 3);
  if (body->posedirs)
    copy_columns(body->posedirs, BODY_POSE_COLUMNS, arrays->posedirs, arrays->columns, V * 3);
  for (int j = 0; j < BODY_JOINTS; j++)
    memcpy(body->regressor + (size_t)j * V, arrays->J_regressor + fold->source[j] * V,
           V * sizeof(float));
  memcpy(body->parents, fold->parents, sizeof body->parents);
  for (size_t i = 0; i < body->faces * 3; i++)
    body->triangles[i] = (uint32_t)arrays->f[i];
  if (body->soft_tissue)
    memcpy(body->soft_tissue, arrays->soft_tissue, V * sizeof(float));
  fill_weights(body, arrays, fold);
  fill_joints(body);
  hash_body(body);
}

int body_new_from_arrays(struct body **body, const struct body_arrays *arrays,
                         struct dsnet_error *error) {
  struct fold fold;
  int code = body_arrays_check_sizes(arrays, error);
  if (!code)
    code = fold_joints(arrays->kintree_table, arrays->joints, &fold, error);
  if (!code)
    code = check_values(arrays, error);
  if (!code)
    code = check_faces(arrays, error);
  if (code)
    return code;
  struct body *made = allocate(arrays);
  if (!made)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a body of %zu vertices",
                           arrays->vertices);
  fill(made, arrays, &fold);
  *body = made;
  return 0;
}
