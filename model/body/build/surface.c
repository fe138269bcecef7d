// SPDX-License-Identifier: Apache-2.0
#include "surface.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "figure.h"
#include "half_mesh.h"
#include "polygonise.h"
#include "remesh.h"
#include "vector.h"

#define GRID_STEP     0.004
#define TRUNK_LENGTH  0.0245
#define FIRST_ROUNDS  8
#define ADJUST_ROUNDS 4
#define ADJUST_MAX    6
#define QUANTUM       (1.0 / 1048576) // coordinates are whole multiples: about a micrometre

// Where the mesh is finer than the trunk's: inside `inner` the edges have `length`, outside `outer`
// none of it is felt.
static const struct {
  double centre[3], inner, outer, length;
} details[] = {
    {{0, 0.385, 0.110}, 0.046, 0.120, 0.0060},      // face
    {{0.078, 0.410, 0.0}, 0.030, 0.090, 0.0080},    // ear
    {{0, 0.430, 0.020}, 0.100, 0.260, 0.0150},      // head
    {{0.815, 0.210, -0.030}, 0.070, 0.150, 0.0068}, // fingers
    {{0.740, 0.210, -0.030}, 0.060, 0.160, 0.0105}, // palm and thumb
    {{0.108, -1.175, 0.160}, 0.055, 0.110, 0.0074}, // toes
    {{0.092, -1.140, 0.020}, 0.120, 0.220, 0.0150}, // foot
    {{0.102, -0.690, 0.000}, 0.070, 0.180, 0.0180}, // knee
    {{0, -0.151, 0.100}, 0.020, 0.090, 0.0120},     // navel
    {{0, 0.220, 0.030}, 0.080, 0.200, 0.0180},      // collarbones
};

static double desired_length(const void *field, const double point[3]) {
  (void)field;
  double length = TRUNK_LENGTH;
  for (size_t i = 0; i < sizeof details / sizeof details[0]; i++) {
    double far =
        smooth_ramp(details[i].inner, details[i].outer, vector_distance(point, details[i].centre));
    length = fmin(length, details[i].length + far * (TRUNK_LENGTH - details[i].length));
  }
  return length;
}

static double value(const void *field, const double point[3]) {
  return field_value(field, point);
}

static void project(const void *field, bool seam, double point[3]) {
  field_project(field, seam, point);
}

static void normal(const void *field, const double point[3], double out[3]) {
  field_gradient(field, point, out);
  vector_normalise(out);
}

// Points of the whole body that half a mesh stands for.
static int whole_count(const struct half_mesh *mesh) {
  int count = 0;
  for (int i = 0; i < mesh->point_count; i++)
    if (mesh->leaving[i] >= 0)
      count += mesh->seam[i] ? 1 : 2;
  return count;
}

static int polygonise_half(struct half_mesh *mesh, const struct field *field,
                           struct dsnet_error *error) {
  const struct polygonise_box box = {
      .low = {0, -1.212, -0.16}, .cells = {224, 448, 96}, .step = GRID_STEP};
  struct triangles triangles = {0};
  int code = polygonise(value, field, &box, &triangles, error);
  if (!code)
    code = half_mesh_init(mesh, &triangles, error);
  triangles_deinit(&triangles);
  return code;
}

static int remesh_to_count(struct half_mesh *mesh, const struct field *field, int target,
                           struct dsnet_error *error) {
  const struct remesh_surface surface = {
      .field = field, .length = desired_length, .project = project, .normal = normal};
  double scale = 1;
  int code = remesh(mesh, &surface, scale, FIRST_ROUNDS, error);
  for (int i = 0; i < ADJUST_MAX && !code; i++) {
    int count = whole_count(mesh);
    if (i > 0 && abs(count - target) < target / 100)
      break;
    scale *= sqrt((double)count / target);
    code = remesh(mesh, &surface, scale, ADJUST_ROUNDS, error);
  }
  if (!code)
    remesh_sharpen(mesh);
  return code;
}

static void quantise(double point[3]) {
  for (int i = 0; i < 3; i++)
    point[i] = round(point[i] / QUANTUM) * QUANTUM;
}

// Adds the reflected points and faces to the half in surface->mesh.
static int reflect(struct surface *surface, const bool *seam, struct dsnet_error *error) {
  struct triangles *mesh = &surface->mesh;
  int points = mesh->point_count, faces = mesh->face_count;
  surface->mirror = memory_alloc((size_t)points * 2, sizeof *surface->mirror);
  bool out = !surface->mirror;
  for (int i = 0; i < points && !out; i++) {
    quantise(mesh->points[i]);
    if (seam[i]) {
      mesh->points[i][0] = 0;
      surface->mirror[i] = i;
      continue;
    }
    const double *p = mesh->points[i], q[3] = {-p[0], p[1], p[2]};
    int image = triangles_add_point(mesh, q);
    out = image < 0;
    if (!out) {
      surface->mirror[i] = image;
      surface->mirror[image] = i;
    }
  }
  for (int f = 0; f < faces && !out; f++) {
    const int *face = mesh->faces[f], *mirror = surface->mirror;
    out = triangles_add_face(mesh, mirror[face[0]], mirror[face[2]], mirror[face[1]]) < 0;
  }
  return out ? dsnet_error_set(error, DSNET_ENOMEM, "out of memory reflecting the body") : DSNET_OK;
}

int surface_make(struct surface *surface, const struct field *field, int target,
                 struct dsnet_error *error) {
  struct half_mesh half = {0};
  bool *seam = NULL;
  memset(surface, 0, sizeof *surface);
  int code = polygonise_half(&half, field, error);
  if (!code)
    code = remesh_to_count(&half, field, target, error);
  if (!code)
    code = half_mesh_export(&half, &surface->mesh, &seam, error);
  if (!code)
    code = reflect(surface, seam, error);
  free(seam);
  half_mesh_deinit(&half);
  if (code)
    surface_deinit(surface);
  return code;
}

void surface_deinit(struct surface *surface) {
  triangles_deinit(&surface->mesh);
  free(surface->mirror);
  surface->mirror = NULL;
}
