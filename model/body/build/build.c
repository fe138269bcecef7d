// SPDX-License-Identifier: Apache-2.0
#include "build.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/body.h"
#include "figure.h"
#include "regressor.h"
#include "shapes.h"
#include "softness.h"
#include "surface.h"
#include "vector.h"
#include "weights.h"

_Static_assert(BODY_BUILD_SHAPES == SHAPES, "one count of shape directions");

const char *body_build_shape_name(int shape) { return shapes_names[shape]; }

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
  code = weights_solve(&draft->surface, draft->weights, error);
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

static int draft_narrow(const struct draft *draft, struct body_build *build,
                        struct dsnet_error *error) {
  const struct triangles *mesh = &draft->surface.mesh;
  size_t count = build->vertices = (size_t)mesh->point_count;
  build->faces = (size_t)mesh->face_count;
  build->rest = narrow(mesh->points[0], count * 3, 0);
  build->shapedirs = narrow(draft->directions, count * 3 * SHAPES, 1.0 / (1 << 20));
  build->regressor = narrow(draft->rows, count * BODY_JOINTS, 0);
  build->weights = narrow(draft->weights, count * BODY_JOINTS, 0);
  build->soft_tissue = narrow(draft->softness, count, 1.0 / 1024);
  build->triangles = memory_alloc(build->faces * 3, sizeof *build->triangles);
  build->mirror = memory_alloc(count, sizeof *build->mirror);
  if (!build->rest || !build->shapedirs || !build->regressor || !build->weights ||
      !build->soft_tissue || !build->triangles || !build->mirror)
    return out_of_memory(error);
  for (size_t i = 0; i < build->faces * 3; i++)
    build->triangles[i] = (uint32_t)mesh->faces[i / 3][i % 3];
  for (size_t i = 0; i < count; i++)
    build->mirror[i] = (uint32_t)draft->surface.mirror[i];
  return DSNET_OK;
}

int body_build(struct body_build *build, struct dsnet_error *error) {
  memset(build, 0, sizeof *build);
  struct draft *draft = calloc(1, sizeof *draft);
  int code = draft ? draft_make(draft, error) : out_of_memory(error);
  if (!code)
    code = draft_narrow(draft, build, error);
  draft_free(draft);
  if (code)
    body_build_deinit(build);
  return code;
}

void body_build_deinit(struct body_build *build) {
  free(build->rest);
  free(build->shapedirs);
  free(build->regressor);
  free(build->weights);
  free(build->soft_tissue);
  free(build->triangles);
  free(build->mirror);
  memset(build, 0, sizeof *build);
}
