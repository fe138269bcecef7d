// SPDX-License-Identifier: Apache-2.0
// The steps of the body's builder on shapes whose answers are known.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "body/build/field.h"
#include "body/build/figure.h"
#include "body/build/half_mesh.h"
#include "body/build/polygonise.h"
#include "body/build/remesh.h"
#include "body/build/skin_operator.h"
#include "body/build/vector.h"
#include "mesh_measure.h"

#define PI     3.14159265358979323846
#define RADIUS 0.1

static double sphere_value(const void *field, const double p[3]) {
  (void)field;
  return vector_norm(p) - RADIUS;
}

static double sphere_length(const void *field, const double p[3]) {
  (void)field;
  return 0.020 - 0.008 * smooth_ramp(-0.05, 0.05, p[1]);
}

static void sphere_project(const void *field, bool seam, double p[3]) {
  (void)field;
  if (seam)
    p[0] = 0;
  double norm = vector_norm(p);
  for (int i = 0; i < 3; i++)
    p[i] *= RADIUS / norm;
}

static void sphere_normal(const void *field, const double p[3], double normal[3]) {
  (void)field;
  memcpy(normal, p, 3 * sizeof *p);
  vector_normalise(normal);
}

static const struct remesh_surface sphere = {
    .length = sphere_length, .project = sphere_project, .normal = sphere_normal};

// The sphere, or with `half` its part at x >= 0.
static void make_sphere(bool half, struct triangles *mesh) {
  const struct polygonise_box box = {.low = {half ? 0 : -0.132, -0.132, -0.132},
                                     .cells = {half ? 24 : 48, 48, 48},
                                     .step = 0.0055};
  memset(mesh, 0, sizeof *mesh);
  assert_int_equal(polygonise(sphere_value, NULL, &box, mesh, NULL), 0);
}

static const uint32_t (*faces_of(const struct triangles *mesh))[3] {
  return (const void *)mesh->faces;
}

static float (*points_of(const struct triangles *mesh))[3] {
  float(*points)[3] = malloc((size_t)mesh->point_count * sizeof *points);
  for (int i = 0; i < mesh->point_count; i++)
    for (int k = 0; k < 3; k++)
      points[i][k] = (float)mesh->points[i][k];
  return points;
}

static void polygonised_sphere_is_closed_and_outward(void **state) {
  (void)state;
  struct triangles mesh;
  make_sphere(false, &mesh);
  size_t faces = (size_t)mesh.face_count, points = (size_t)mesh.point_count;
  assert_true(mesh_is_manifold(faces_of(&mesh), faces, points, false));
  assert_int_equal(mesh_euler(faces_of(&mesh), faces, points), 2);
  float(*narrow)[3] = points_of(&mesh);
  double volume = mesh_volume((const void *)narrow, faces_of(&mesh), faces);
  double exact = 4 * PI / 3 * RADIUS * RADIUS * RADIUS;
  assert_true(fabs(volume / exact - 1) < 0.01);
  free(narrow);
  triangles_deinit(&mesh);
}

static void polygonised_half_ends_on_the_plane(void **state) {
  (void)state;
  struct triangles mesh;
  make_sphere(true, &mesh);
  assert_true(
      mesh_is_manifold(faces_of(&mesh), (size_t)mesh.face_count, (size_t)mesh.point_count, true));
  assert_int_equal(mesh_euler(faces_of(&mesh), (size_t)mesh.face_count, (size_t)mesh.point_count),
                   1);
  struct half_mesh half;
  assert_int_equal(half_mesh_init(&half, &mesh, NULL), 0);
  int seam = 0;
  for (int i = 0; i < half.point_count; i++) {
    assert_true(half.seam[i] == (half.points[i][0] == 0));
    seam += half.seam[i];
  }
  assert_true(seam > 50);
  half_mesh_deinit(&half);
  triangles_deinit(&mesh);
}

static void a_face_that_is_there_twice_is_refused(void **state) {
  (void)state;
  struct triangles mesh = {0};
  const double points[4][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (int i = 0; i < 4; i++)
    triangles_add_point(&mesh, points[i]);
  triangles_add_face(&mesh, 0, 1, 2);
  triangles_add_face(&mesh, 0, 1, 3);
  struct half_mesh half;
  struct dsnet_error error = {0};
  assert_int_equal(half_mesh_init(&half, &mesh, &error), DSNET_EVALUE);
  assert_non_null(strstr(error.text, "0-1"));
  triangles_deinit(&mesh);
}

static void a_tetrahedron_cannot_be_collapsed_or_flipped(void **state) {
  (void)state;
  struct triangles mesh = {0};
  const double points[4][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const double length[4] = {10, 10, 10, 10};
  for (int i = 0; i < 4; i++)
    triangles_add_point(&mesh, points[i]);
  triangles_add_face(&mesh, 0, 2, 1);
  triangles_add_face(&mesh, 0, 1, 3);
  triangles_add_face(&mesh, 0, 3, 2);
  triangles_add_face(&mesh, 1, 2, 3);
  struct half_mesh half;
  assert_int_equal(half_mesh_init(&half, &mesh, NULL), 0);
  for (int h = 0; h < 12; h++) {
    assert_false(half_mesh_collapse(&half, h, half.points[half_to(&half, h)], length, 10));
    assert_false(half_mesh_flip(&half, h));
  }
  half_mesh_deinit(&half);
  triangles_deinit(&mesh);
}

static void remeshed_half_keeps_its_seam_and_topology(void **state) {
  (void)state;
  struct triangles mesh, out = {0};
  struct half_mesh half;
  bool *seam;
  make_sphere(true, &mesh);
  assert_int_equal(half_mesh_init(&half, &mesh, NULL), 0);
  assert_int_equal(remesh(&half, &sphere, 1, 10, NULL), 0);
  remesh_sharpen(&half);
  assert_int_equal(half_mesh_export(&half, &out, &seam, NULL), 0);
  size_t faces = (size_t)out.face_count, points = (size_t)out.point_count;
  assert_true(points < (size_t)mesh.point_count / 2);
  assert_true(mesh_is_manifold(faces_of(&out), faces, points, true));
  assert_int_equal(mesh_euler(faces_of(&out), faces, points), 1);
  for (size_t i = 0; i < points; i++) {
    assert_true(seam[i] ? out.points[i][0] == 0 : out.points[i][0] > 1e-4);
    assert_true(fabs(vector_norm(out.points[i]) - RADIUS) < 1e-6);
  }
  double length[2] = {0}, shortest = 1e9;
  size_t thin = 0;
  int count[2] = {0};
  float(*narrow)[3] = points_of(&out);
  for (size_t f = 0; f < faces; f++) {
    double angle = mesh_least_angle((const void *)narrow, faces_of(&out)[f]);
    assert_true(angle > 8);
    thin += angle < 25;
    for (int k = 0; k < 3; k++) {
      int a = out.faces[f][k], b = out.faces[f][(k + 1) % 3];
      double l = vector_distance(out.points[a], out.points[b]);
      int upper = out.points[a][1] > 0.05 ? 1 : out.points[a][1] < -0.05 ? 0 : -1;
      shortest = fmin(shortest, l);
      if (upper >= 0) {
        length[upper] += l;
        count[upper]++;
      }
    }
  }
  assert_true(fabs(length[1] / count[1] / 0.012 - 1) < 0.2);
  assert_true(fabs(length[0] / count[0] / 0.020 - 1) < 0.2);
  assert_true(shortest > 0.005);
  assert_true(thin * 100 <= faces);
  free(narrow);
  free(seam);
  half_mesh_deinit(&half);
  triangles_deinit(&out);
  triangles_deinit(&mesh);
}

static void no_inner_edge_joins_two_seam_points(void **state) {
  (void)state;
  struct triangles mesh;
  struct half_mesh half;
  make_sphere(true, &mesh);
  assert_int_equal(half_mesh_init(&half, &mesh, NULL), 0);
  assert_int_equal(remesh(&half, &sphere, 1, 8, NULL), 0);
  remesh_sharpen(&half);
  for (int h = 0; h < 3 * half.face_count; h++)
    if (half.from[h] >= 0 && half.twin[h] >= 0)
      assert_false(half.seam[half.from[h]] && half.seam[half_to(&half, h)]);
  half_mesh_deinit(&half);
  triangles_deinit(&mesh);
}

static void the_figures_field_is_mirrored_exactly(void **state) {
  (void)state;
  struct field *field = malloc(sizeof *field);
  figure_draw(field);
  field_finish(field);
  for (int i = 0; i < 400; i++) { // a low-discrepancy walk through the figure's box
    double p[3] = {0.9 * fmod(i * 0.754877666, 1), 1.8 * fmod(i * 0.569840296, 1) - 1.22,
                   0.35 * fmod(i * 0.438579021, 1) - 0.15};
    const double q[3] = {-p[0], p[1], p[2]};
    assert_true(field_value(field, p) == field_value(field, q));
  }
  free(field);
}

static void every_joint_but_none_of_the_air_is_inside_the_figure(void **state) {
  (void)state;
  struct field *field = malloc(sizeof *field);
  figure_draw(field);
  field_finish(field);
  for (int j = 0; j < BODY_JOINTS; j++)
    if (field_value(field, figure_joints[j]) > -0.005)
      fail_msg("joint %d is not inside", j);
  // Between the thighs, the feet and under the arms there is air.
  static const double air[][3] = {{0, -0.50, 0}, {0, -1.15, 0.05}, {0.30, 0.0, 0}, {0, 0.7, 0}};
  for (size_t i = 0; i < sizeof air / sizeof air[0]; i++)
    assert_true(field_value(field, air[i]) > 0.005);
  free(field);
}

static void projection_ends_on_the_surface(void **state) {
  (void)state;
  struct field *field = malloc(sizeof *field);
  figure_draw(field);
  field_finish(field);
  double p[3] = {0.05, -0.05, 0.13}, q[3] = {0, 0.05, 0.13};
  field_project(field, false, p);
  field_project(field, true, q);
  assert_true(fabs(field_value(field, p)) < 1e-5);
  assert_true(fabs(field_value(field, q)) < 1e-5);
  assert_true(q[0] == 0);
  free(field);
}

static void diffusion_keeps_what_is_even_and_evens_what_is_not(void **state) {
  (void)state;
  struct triangles mesh;
  struct skin_operator skin;
  make_sphere(false, &mesh);
  assert_int_equal(skin_operator_init(&skin, &mesh), 0);
  double *values = malloc((size_t)mesh.point_count * 2 * sizeof *values), area = 0, before = 0,
         after = 0;
  for (int i = 0; i < mesh.point_count; i++) {
    values[2 * i] = 3;
    values[2 * i + 1] = i % 2;
    area += skin.area[i];
    before += skin.area[i] * values[2 * i + 1];
  }
  assert_true(fabs(area / (4 * PI * RADIUS * RADIUS) - 1) < 0.02);
  assert_int_equal(skin_operator_smooth(&skin, 0.03, 2, values), 0);
  for (int i = 0; i < mesh.point_count; i++) {
    assert_true(fabs(values[2 * i] - 3) < 1e-6);
    assert_true(values[2 * i + 1] > 0.2 && values[2 * i + 1] < 0.8);
    after += skin.area[i] * values[2 * i + 1];
  }
  assert_true(fabs(after / before - 1) < 1e-6); // heat is conserved
  free(values);
  skin_operator_deinit(&skin);
  triangles_deinit(&mesh);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(polygonised_sphere_is_closed_and_outward),
      cmocka_unit_test(polygonised_half_ends_on_the_plane),
      cmocka_unit_test(a_face_that_is_there_twice_is_refused),
      cmocka_unit_test(a_tetrahedron_cannot_be_collapsed_or_flipped),
      cmocka_unit_test(remeshed_half_keeps_its_seam_and_topology),
      cmocka_unit_test(no_inner_edge_joins_two_seam_points),
      cmocka_unit_test(the_figures_field_is_mirrored_exactly),
      cmocka_unit_test(every_joint_but_none_of_the_air_is_inside_the_figure),
      cmocka_unit_test(projection_ends_on_the_surface),
      cmocka_unit_test(diffusion_keeps_what_is_even_and_evens_what_is_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
