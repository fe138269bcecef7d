// SPDX-License-Identifier: Apache-2.0
// The built-in body as committed: every property that users of a body rely on, and that it bends
// and varies without breaking.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "body/body.h"
#include "body/build/build.h"
#include "body/build/figure.h"
#include "body/build/skinning.h"
#include "body/pose.h"
#include "body/region.h"
#include "mesh_measure.h"

#define BODY_FILE DSNET_SOURCE_DIR "/model/builtin/body.npz"
#define PI        3.14159265358979323846

static struct body *body;
static size_t V, F;
static const float (*rest)[3];
static const uint32_t (*faces)[3];

static int load(void **state) {
  (void)state;
  struct dsnet_error error = {0};
  if (body_load(&body, BODY_FILE, &error)) {
    print_error("%s\n", error.text);
    return -1;
  }
  V = body_vertices(body);
  F = body_faces(body);
  rest = (const void *)body_template(body);
  faces = (const void *)body_triangles(body);
  return 0;
}

static int unload(void **state) {
  (void)state;
  body_free(body);
  return 0;
}

static void it_is_a_closed_manifold_of_genus_zero(void **state) {
  (void)state;
  assert_in_range(V, 6500, 7500);
  assert_true(mesh_is_manifold(faces, F, V, false));
  assert_int_equal(mesh_euler(faces, F, V), 2);
}

static void its_faces_look_outwards_and_it_has_a_persons_size(void **state) {
  (void)state;
  double volume = mesh_volume(rest, faces, F);
  if (volume < 0.050 || volume > 0.080) // m3: about as many kilograms per thousandth
    fail_msg("volume %g m3", volume);
  float low = 1e9f, high = -1e9f;
  for (size_t i = 0; i < V; i++) {
    low = fminf(low, rest[i][1]);
    high = fmaxf(high, rest[i][1]);
  }
  if (high - low < 1.68f || high - low > 1.76f)
    fail_msg("height %g m", (double)(high - low));
}

static int compare_points(const void *a, const void *b) {
  const float *p = rest[*(const uint32_t *)a], *q = rest[*(const uint32_t *)b];
  for (int i = 1; i >= 0; i--) // y, then |x|: mirror images are neighbours
    if ((i ? p[1] : fabsf(p[0])) != (i ? q[1] : fabsf(q[0])))
      return (i ? p[1] : fabsf(p[0])) < (i ? q[1] : fabsf(q[0])) ? -1 : 1;
  return p[2] < q[2] ? -1 : p[2] > q[2];
}

// mirror [V], found by geometry; fails where a vertex has no image within a micrometre.
static uint32_t *find_mirror(void) {
  uint32_t *order = malloc(V * sizeof *order), *mirror = malloc(V * sizeof *mirror);
  for (size_t i = 0; i < V; i++)
    order[i] = (uint32_t)i;
  qsort(order, V, sizeof *order, compare_points);
  for (size_t k = 0; k < V; k++) {
    const float *p = rest[order[k]];
    uint32_t best = UINT32_MAX;
    for (size_t n = k > 8 ? k - 8 : 0; n < V && n < k + 9; n++) {
      const float *q = rest[order[n]];
      if (fabsf(p[0] + q[0]) <= 1e-6f && fabsf(p[1] - q[1]) <= 1e-6f && fabsf(p[2] - q[2]) <= 1e-6f)
        best = order[n];
    }
    if (best == UINT32_MAX)
      fail_msg("vertex %u at (%g, %g, %g) has no mirror image", order[k], (double)p[0],
               (double)p[1], (double)p[2]);
    mirror[order[k]] = best;
  }
  free(order);
  return mirror;
}

static float weight_of(size_t vertex, int joint) {
  for (int k = 0; k < BODY_WEIGHTS_MAX; k++) {
    size_t at = vertex * BODY_WEIGHTS_MAX + (size_t)k;
    if (body_weight_joints(body)[at] == joint && body_weight_values(body)[at] > 0)
      return body_weight_values(body)[at];
  }
  return 0;
}

static void left_and_right_mirror_each_other(void **state) {
  (void)state;
  uint32_t *mirror = find_mirror();
  const float *directions = body_shapedirs(body), *soft = body_soft_tissue(body);
  size_t B = body_shapes(body);
  assert_non_null(soft);
  for (size_t i = 0; i < V; i++) {
    size_t m = mirror[i];
    assert_int_equal(mirror[m], i);
    for (size_t k = 0; k < 3 * B; k++) {
      float sign = k < B ? -1 : 1;
      if (fabsf(directions[m * 3 * B + k] - sign * directions[i * 3 * B + k]) > 1e-6f)
        fail_msg("vertex %zu: shape direction %zu is not mirrored", i, k % B);
    }
    for (int j = 0; j < BODY_JOINTS; j++)
      if (fabsf(weight_of(i, j) - weight_of(m, skinning_mirror_joint(j))) > 1e-6f)
        fail_msg("vertex %zu: the weight of %s is not mirrored", i, body_joint_name(j));
    assert_true(soft[i] == soft[m]);
  }
  free(mirror);
}

static void its_triangles_are_well_shaped(void **state) {
  (void)state;
  size_t thin = 0;
  for (size_t f = 0; f < F; f++)
    thin += mesh_least_angle(rest, faces[f]) < 15;
  if (thin * 100 > F)
    fail_msg("%zu of %zu triangles have an angle under 15 degrees", thin, F);
}

static void its_weights_are_few_and_sum_to_one(void **state) {
  (void)state;
  for (size_t i = 0; i < V; i++) {
    double sum = 0;
    for (int k = 0; k < BODY_WEIGHTS_MAX; k++) {
      float weight = body_weight_values(body)[i * BODY_WEIGHTS_MAX + (size_t)k];
      assert_true(weight >= 0);
      sum += (double)weight;
    }
    if (fabs(sum - 1) > 1e-6)
      fail_msg("vertex %zu: weights sum to %.9g", i, sum);
  }
}

// No part hangs on what it does not touch: hands not on legs, feet not on the trunk.
static void its_weights_stay_near_their_bones(void **state) {
  (void)state;
  for (size_t i = 0; i < V; i++) {
    const float *p = rest[i];
    for (int j = 0; j < BODY_JOINTS; j++) {
      double reach = j == 16 || j == 17 || j == 4 || j == 5 || j == 1 || j == 2 ? 0.55 : 0.42;
      double d = 0;
      for (int k = 0; k < 3; k++)
        d += pow((double)p[k] - figure_joints[j][k], 2);
      if (weight_of(i, j) > 0.05f && sqrt(d) > reach)
        fail_msg("vertex %zu hangs on %s, %.2f m away", i, body_joint_name(j), sqrt(d));
    }
  }
}

static void joints_are_where_the_skeleton_has_them(void **state) {
  (void)state;
  float joints[BODY_JOINTS][3];
  body_shape(body, NULL, 0, NULL, joints[0]);
  for (int j = 0; j < BODY_JOINTS; j++)
    for (int k = 0; k < 3; k++)
      if (fabs((double)joints[j][k] - figure_joints[j][k]) > 1e-5)
        fail_msg("%s is at (%g, %g, %g)", body_joint_name(j), (double)joints[j][0],
                 (double)joints[j][1], (double)joints[j][2]);
}

static void joints_move_little_with_any_shape(void **state) {
  (void)state;
  for (int shape = 0; shape < BODY_BUILD_SHAPES; shape++)
    for (int sign = -3; sign <= 3; sign += 6) {
      float betas[BODY_BUILD_SHAPES] = {0}, joints[BODY_JOINTS][3], at_rest[BODY_JOINTS][3];
      betas[shape] = (float)sign;
      body_shape(body, betas, BODY_BUILD_SHAPES, NULL, joints[0]);
      body_shape(body, NULL, 0, NULL, at_rest[0]);
      for (int j = 0; j < BODY_JOINTS; j++)
        for (int k = 0; k < 3; k++)
          if (fabsf(joints[j][k] - at_rest[j][k]) > 0.15f)
            fail_msg("%s moves %g m with shape %s", body_joint_name(j),
                     (double)(joints[j][k] - at_rest[j][k]), body_build_shape_name(shape));
    }
}

static void no_shape_turns_or_flattens_a_triangle(void **state) {
  (void)state;
  float(*shaped)[3] = malloc(V * sizeof *shaped);
  assert_int_equal(body_shapes(body), BODY_BUILD_SHAPES);
  for (int shape = 0; shape < BODY_BUILD_SHAPES; shape++)
    for (int sign = -3; sign <= 3; sign += 6) {
      float betas[BODY_BUILD_SHAPES] = {0};
      betas[shape] = (float)sign;
      body_shape(body, betas, BODY_BUILD_SHAPES, shaped[0], NULL);
      const float(*now)[3] = (const void *)shaped;
      double moved = 0;
      for (size_t f = 0; f < F; f++) {
        double before[3], after[3], dot = 0, a = 0, b = 0;
        mesh_face_normal(rest, faces[f], before);
        mesh_face_normal(now, faces[f], after);
        for (int k = 0; k < 3; k++) {
          dot += before[k] * after[k];
          a += before[k] * before[k];
          b += after[k] * after[k];
        }
        if (dot < 0.3 * sqrt(a * b) || b < 0.09 * a || mesh_least_angle(now, faces[f]) < 5)
          fail_msg("shape %s at %d: triangle %zu turns by cosine %.2f, its area becomes %.2f",
                   body_build_shape_name(shape), sign, f, dot / sqrt(a * b), sqrt(b / a));
        moved = fmax(moved, fabs(shaped[faces[f][0]][1] - rest[faces[f][0]][1]) +
                                fabs(shaped[faces[f][0]][0] - rest[faces[f][0]][0]) +
                                fabs(shaped[faces[f][0]][2] - rest[faces[f][0]][2]));
      }
      assert_true(moved > 0.01); // a direction does something: over a centimetre at three sigma
    }
  free(shaped);
}

// The share of its volume that the neighbourhood of a joint keeps when bent: of all triangles whose
// centre at rest lies within 1.5 limb radii of the joint, measured along the limb (the radius being
// the mean distance of the twelve nearest vertices), closed by fans at both ends. Skin that folds
// into itself on the inside of the bend counts against it.
static double volume_kept(int joint, int along, const float turn[3]) {
  float joints[BODY_JOINTS][3], pose[BODY_POSE_JOINTS][3] = {{0}}, trans[3] = {0};
  float transforms[BODY_JOINTS][12], (*posed)[3] = malloc(V * sizeof *posed);
  bool *inside = calloc(F, sizeof *inside);
  body_shape(body, NULL, 0, NULL, joints[0]);
  double nearest[12], radius = 0;
  for (int k = 0; k < 12; k++)
    nearest[k] = 1e9;
  for (size_t i = 0; i < V; i++) {
    double d = 0;
    for (int k = 0; k < 3; k++)
      d += pow((double)rest[i][k] - joints[joint][k], 2);
    d = sqrt(d);
    for (int k = 0; k < 12; k++)
      if (d < nearest[k]) {
        double swap = nearest[k];
        nearest[k] = d;
        d = swap;
      }
  }
  for (int k = 0; k < 12; k++)
    radius += nearest[k] / 12;
  for (size_t f = 0; f < F; f++) {
    double centre[3], d = 0;
    for (int k = 0; k < 3; k++) {
      centre[k] = ((double)rest[faces[f][0]][k] + rest[faces[f][1]][k] + rest[faces[f][2]][k]) / 3;
      d += pow(centre[k] - joints[joint][k], 2);
    }
    inside[f] = fabs(centre[along] - joints[joint][along]) < 1.5 * radius && sqrt(d) < 4 * radius;
  }
  memcpy(pose[joint], turn, sizeof pose[joint]);
  body_transforms(body, joints[0], pose[0], trans, transforms[0], NULL);
  body_skin(body, transforms[0], rest[0], NULL, posed[0]);
  double before = mesh_patch_volume(rest, faces, F, inside, V);
  double after = mesh_patch_volume((const void *)posed, faces, F, inside, V);
  free(posed);
  free(inside);
  assert_true(before > 1e-4); // m3: the patch is a piece of limb, oriented outwards
  return after / before;
}

static void bent_elbows_and_knees_keep_their_volume(void **state) {
  (void)state;
  const float angle = (float)(120 * PI / 180);
  static const struct {
    int joint, along;
    float axis[3];
  } bends[] = {{18, 0, {0, -1, 0}}, {19, 0, {0, 1, 0}}, {4, 1, {1, 0, 0}}, {5, 1, {1, 0, 0}}};
  for (size_t i = 0; i < sizeof bends / sizeof bends[0]; i++) {
    float turn[3];
    for (int k = 0; k < 3; k++)
      turn[k] = angle * bends[i].axis[k];
    double kept = volume_kept(bends[i].joint, bends[i].along, turn);
    if (kept < 0.40 || kept > 1.2)
      fail_msg("%s bent by 120 degrees keeps %.0f%%", body_joint_name(bends[i].joint), 100 * kept);
  }
}

static void its_regions_mirror_each_other(void **state) {
  (void)state;
  uint32_t *mirror = find_mirror();
  uint8_t *regions = malloc(V);
  body_regions(body, regions);
  for (size_t i = 0; i < V; i++)
    if (regions[i] != regions[mirror[i]])
      fail_msg("vertex %zu is of the %s, its image of the %s", i, body_region_name(regions[i]),
               body_region_name(regions[mirror[i]]));
  free(regions);
  free(mirror);
}

static void soft_places_are_softer_than_bony_ones(void **state) {
  (void)state;
  const float *soft = body_soft_tissue(body);
  uint8_t *regions = malloc(V);
  double mean[BODY_REGION_COUNT] = {0};
  size_t count[BODY_REGION_COUNT] = {0};
  body_regions(body, regions);
  for (size_t i = 0; i < V; i++) {
    mean[regions[i]] += (double)soft[i];
    count[regions[i]]++;
  }
  for (int r = 0; r < BODY_REGION_COUNT; r++) {
    if (!count[r])
      fail_msg("the region %s is empty", body_region_name(r));
    mean[r] /= (double)count[r];
  }
  free(regions);
  assert_true(mean[BODY_REGION_BUTTOCKS] > 0.4);
  assert_true(mean[BODY_REGION_BELLY] > 2 * mean[BODY_REGION_SHOULDERS]);
  assert_true(mean[BODY_REGION_THIGHS] > mean[BODY_REGION_CALVES]);
  assert_true(mean[BODY_REGION_HANDS] < 0.1);
  assert_true(mean[BODY_REGION_FEET] < 0.1);
  assert_true(mean[BODY_REGION_HEAD] < 0.1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_a_closed_manifold_of_genus_zero),
      cmocka_unit_test(its_faces_look_outwards_and_it_has_a_persons_size),
      cmocka_unit_test(left_and_right_mirror_each_other),
      cmocka_unit_test(its_triangles_are_well_shaped),
      cmocka_unit_test(its_weights_are_few_and_sum_to_one),
      cmocka_unit_test(its_weights_stay_near_their_bones),
      cmocka_unit_test(joints_are_where_the_skeleton_has_them),
      cmocka_unit_test(joints_move_little_with_any_shape),
      cmocka_unit_test(no_shape_turns_or_flattens_a_triangle),
      cmocka_unit_test(bent_elbows_and_knees_keep_their_volume),
      cmocka_unit_test(its_regions_mirror_each_other),
      cmocka_unit_test(soft_places_are_softer_than_bony_ones),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
