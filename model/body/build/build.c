// SPDX-License-Identifier: Apache-2.0
#include "build.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/arrays.h"
#include "figure.h"
#include "regressor.h"
#include "shapes.h"
#include "skinning.h"
#include "softness.h"
#include "surface.h"
#include "vector.h"

#define METRE_QUANTUM    (1.0 / 1048576) // about a micrometre
#define SOFTNESS_QUANTUM (1.0 / 1024)

_Static_assert(BODY_BUILD_SHAPES == SHAPES, "one count of shape directions");

const char *body_build_shape_name(int shape) {
  return shapes_names[shape];
}

// The arrays in double, while they are being made.
struct draft {
  struct field field;
  struct surface surface;
  double *weights, *directions, *rows, *softness;
};

static void draft_free(struct draft *draft) {
  if (!draft)
    return;
  surface_deinit(&draft->surface);
  free(draft->weights);
  free(draft->directions);
  free(draft->rows);
  free(draft->softness);
  free(draft);
}

static int out_of_memory(struct dsnet_error *error) {
  return dsnet_error_set(error, DSNET_ENOMEM, "out of memory building the body");
}

static int draft_make(struct draft *draft, struct dsnet_error *error) {
  figure_draw(&draft->field);
  field_finish(&draft->field);
  int code = surface_make(&draft->surface, &draft->field, BODY_BUILD_VERTICES, error);
  if (code)
    return code;
  size_t count = (size_t)draft->surface.mesh.point_count;
  draft->weights = memory_alloc(count * BODY_JOINTS, sizeof(double));
  draft->directions = memory_alloc(count * 3 * SHAPES, sizeof(double));
  draft->rows = memory_alloc(count * BODY_JOINTS, sizeof(double));
  draft->softness = memory_alloc(count, sizeof(double));
  if (!draft->weights || !draft->directions || !draft->rows || !draft->softness)
    return out_of_memory(error);
  code = skinning_solve(&draft->surface, draft->weights, error);
  if (!code)
    code = shapes_measure(&draft->surface, draft->weights, draft->directions, error);
  if (!code)
    code = regressor_solve(&draft->surface, draft->directions, draft->rows, error);
  if (!code)
    code = softness_measure(&draft->surface, draft->weights, draft->softness, error);
  return code;
}

// Rounds to a multiple of `quantum` (0: not at all): fewer bits in the file for what nobody sees.
static float *narrow(const double *values, size_t count, double quantum) {
  float *out = memory_alloc(count, sizeof *out);
  for (size_t i = 0; out && i < count; i++)
    out[i] = (float)(quantum > 0 ? round(values[i] / quantum) * quantum : values[i]);
  return out;
}

static int64_t *list_faces(const struct triangles *mesh) {
  int64_t *out = memory_alloc((size_t)mesh->face_count * 3, sizeof *out);
  for (int i = 0; out && i < 3 * mesh->face_count; i++)
    out[i] = mesh->faces[i / 3][i % 3];
  return out;
}

static int draft_finish(const struct draft *draft, struct body **body, struct dsnet_error *error) {
  const struct triangles *mesh = &draft->surface.mesh;
  size_t count = (size_t)mesh->point_count;
  int64_t tree[2][BODY_JOINTS];
  for (int j = 0; j < BODY_JOINTS; j++) {
    tree[0][j] = figure_parents[j];
    tree[1][j] = j;
  }
  float *rest = narrow(mesh->points[0], count * 3, 0);
  float *shapedirs = narrow(draft->directions, count * 3 * SHAPES, METRE_QUANTUM);
  float *regressor = narrow(draft->rows, count * BODY_JOINTS, 0);
  float *weights = narrow(draft->weights, count * BODY_JOINTS, 0);
  float *soft_tissue = narrow(draft->softness, count, SOFTNESS_QUANTUM);
  int64_t *faces = list_faces(mesh);
  int code;
  if (rest && shapedirs && regressor && weights && soft_tissue && faces) {
    const struct body_arrays arrays = {
        .vertices = count,
        .faces = (size_t)mesh->face_count,
        .joints = BODY_JOINTS,
        .shapes = SHAPES,
        .v_template = rest,
        .shapedirs = shapedirs,
        .J_regressor = regressor,
        .weights = weights,
        .kintree_table = tree[0],
        .f = faces,
        .soft_tissue = soft_tissue,
    };
    code = body_new_from_arrays(body, &arrays, error);
  } else {
    code = out_of_memory(error);
  }
  free(rest);
  free(shapedirs);
  free(regressor);
  free(weights);
  free(soft_tissue);
  free(faces);
  return code;
}

int body_build(struct body **body, struct dsnet_error *error) {
  struct draft *draft = calloc(1, sizeof *draft);
  int code = draft ? draft_make(draft, error) : out_of_memory(error);
  if (!code)
    code = draft_finish(draft, body, error);
  draft_free(draft);
  return code;
}
