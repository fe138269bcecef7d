// SPDX-License-Identifier: Apache-2.0
#include "body/save.h"

#include <stdlib.h>

#include "base/memory.h"
#include "body/struct.h"
#include "io/npz.h"

static int add(struct npz_writer *writer, const char *name, const char *dtype, size_t a, size_t b,
               size_t c, const void *data, struct dsnet_error *error) {
  const size_t shape[3] = {a, b, c};
  return npz_writer_add(writer, name, dtype, c ? 3 : b ? 2 : 1, shape, data, error);
}

static int add_weights(const struct body *body, struct npz_writer *writer,
                       struct dsnet_error *error) {
  const size_t V = body->vertices;
  float *dense = memory_alloc(V * BODY_JOINTS, sizeof *dense);
  if (!dense)
    return dsnet_error_set(error, DSNET_ENOMEM, "weights: out of memory");
  for (size_t v = 0; v < V; v++)
    for (size_t k = 0; k < BODY_WEIGHTS_MAX; k++)
      dense[v * BODY_JOINTS + body->weight_joints[v * BODY_WEIGHTS_MAX + k]] +=
          body->weight_values[v * BODY_WEIGHTS_MAX + k];
  int code = add(writer, "weights", "<f4", V, BODY_JOINTS, 0, dense, error);
  free(dense);
  return code;
}

static int add_tree(const struct body *body, struct npz_writer *writer, struct dsnet_error *error) {
  uint32_t table[2][BODY_JOINTS];
  for (uint32_t j = 0; j < BODY_JOINTS; j++) {
    table[0][j] = (uint32_t)body->parents[j]; // -1 becomes 4294967295
    table[1][j] = j;
  }
  return add(writer, "kintree_table", "<u4", 2, BODY_JOINTS, 0, table, error);
}

static int add_arrays(const struct body *body, struct npz_writer *writer,
                      struct dsnet_error *error) {
  const size_t V = body->vertices;
  int code = add(writer, "v_template", "<f4", V, 3, 0, body->v_template, error);
  if (!code)
    code = add(writer, "shapedirs", "<f4", V, 3, body->shapes, body->shapedirs, error);
  if (!code && body->posedirs)
    code = add(writer, "posedirs", "<f4", V, 3, BODY_POSE_COLUMNS, body->posedirs, error);
  if (!code)
    code = add(writer, "J_regressor", "<f4", BODY_JOINTS, V, 0, body->regressor, error);
  if (!code)
    code = add_weights(body, writer, error);
  if (!code)
    code = add_tree(body, writer, error);
  if (!code)
    code = add(writer, "f", "<u4", body->faces, 3, 0, body->triangles, error);
  if (!code && body->soft_tissue)
    code = add(writer, "soft_tissue", "<f4", V, 0, 0, body->soft_tissue, error);
  return code;
}

int body_save(const struct body *body, const char *path, struct dsnet_error *error) {
  struct npz_writer *writer;
  int code = npz_writer_open(&writer, path, true, error);
  if (code)
    return code;
  code = add_arrays(body, writer, error);
  if (code) {
    npz_writer_abort(writer);
    return code;
  }
  return npz_writer_close(writer, error);
}
