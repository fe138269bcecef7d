// SPDX-License-Identifier: Apache-2.0
// Any bytes as a body. An input that starts with 'P', as every archive does, is read as a file;
// any other is a list of changes to the arrays of a sound body, which a file's checksums would
// hide. Whatever is taken for a body must pose, un-pose, divide into regions and have normals
// without a number that is not one.
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "body/arrays.h"
#include "body/normals.h"
#include "body/pose.h"
#include "body/region.h"

enum { V = 6, F = 4, J = BODY_FILE_JOINTS_MAX, S = 2, C = 207 };

#define POSED_MAX 20000 // vertices of a body that is looked at further, to keep a run short

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
  if (!holds)
    abort();
}

static void require_finite(const float *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    require(isfinite(values[i]));
}

static void check_tables(const struct body *body) {
  for (int j = 0; j < BODY_JOINTS; j++)
    require(body_parents(body)[j] < j && body_parents(body)[j] >= (j ? 0 : -1));
  for (size_t i = 0; i < body_faces(body) * 3; i++)
    require(body_triangles(body)[i] < body_vertices(body));
  for (size_t v = 0; v < body_vertices(body); v++) {
    const float *weights = body_weight_values(body) + v * BODY_WEIGHTS_MAX;
    double sum = 0;
    for (int k = 0; k < BODY_WEIGHTS_MAX; k++) {
      require(body_weight_joints(body)[v * BODY_WEIGHTS_MAX + k] < BODY_JOINTS);
      require(weights[k] >= 0 && (k == 0 || weights[k] <= weights[k - 1]));
      sum += weights[k];
    }
    require(fabs(sum - 1) < 2e-6);
  }
}

static void check_pose(const struct body *body) {
  const size_t count = body_vertices(body) * 3;
  static const float betas[] = {2, -1}, trans[3] = {1, 2, 3};
  float joints[BODY_JOINTS * 3], transforms[BODY_JOINTS * 12], pose[BODY_POSE_SIZE];
  float *rest = malloc(count * sizeof *rest), *posed = malloc(count * sizeof *posed);
  float *back = malloc(count * sizeof *back);
  uint8_t *regions = malloc(count / 3);
  if (rest && posed && back && regions) {
    for (int i = 0; i < BODY_POSE_SIZE; i++)
      pose[i] = (float)(i % 7) - 3;
    body_shape(body, betas, 2, rest, joints);
    body_add_pose_part(body, pose, rest);
    body_transforms(body, joints, pose, trans, transforms, NULL);
    body_skin(body, transforms, rest, NULL, posed);
    require_finite(posed, count);
    if (body_unskin(body, transforms, rest, posed, back, NULL) == 0)
      require_finite(back, count);
    body_normals(body, posed, back);
    require_finite(back, count);
    body_regions(body, regions);
    for (size_t v = 0; v < count / 3; v++)
      require(regions[v] < BODY_REGION_COUNT);
  }
  free(rest);
  free(posed);
  free(back);
  free(regions);
}

static void check(int code, struct body *body, const struct dsnet_error *error) {
  if (code < 0) {
    require(error->code == (enum dsnet_code)code && error->text[0]);
    return;
  }
  check_tables(body);
  if (body_vertices(body) <= POSED_MAX)
    check_pose(body);
  body_free(body);
}

// A chain of joints, which every count of joints accepts but for the wrists; those have fingers.
struct arrays {
  float v_template[V * 3], shapedirs[V * 3 * S], posedirs[V * 3 * C], J_regressor[J * V];
  float weights[V * J], soft_tissue[V];
  int64_t kintree_table[2 * J], f[F * 3];
};

static void make_sound(struct arrays *arrays, size_t joints) {
  memset(arrays, 0, sizeof *arrays);
  for (size_t i = 0; i < V * 3; i++)
    arrays->v_template[i] = (float)(i * i % 11) / 10;
  for (size_t j = 0; j < joints; j++) {
    arrays->J_regressor[j * V + j % V] = 1;
    arrays->kintree_table[j] = j == 37 || j == 40 ? 21 : (int64_t)j - 1;
    arrays->kintree_table[joints + j] = (int64_t)j;
  }
  arrays->kintree_table[22] = 20;
  for (size_t v = 0; v < V; v++)
    arrays->weights[v * joints + v * 4] = 1;
  for (size_t i = 0; i < F * 3; i++)
    arrays->f[i] = (int64_t)(i % V);
}

// A change is five bytes: the array, its element (modulo its size), and as many quarter units as
// the last two say, or one of the values that are not numbers.
static void change(struct arrays *arrays, const uint8_t *bytes) {
  static const float specials[] = {NAN, INFINITY, -INFINITY, 3e38f};
  const size_t element = bytes[1] | (size_t)bytes[2] << 8;
  const int16_t units = (int16_t)(bytes[3] | bytes[4] << 8);
  const float value = bytes[0] & 0x80 ? specials[bytes[3] % 4] : (float)units / 4;
  switch (bytes[0] & 7) {
  case 0:
    arrays->v_template[element % (V * 3)] = value;
    break;
  case 1:
    arrays->shapedirs[element % (V * 3 * S)] = value;
    break;
  case 2:
    arrays->posedirs[element % (V * 3 * C)] = value;
    break;
  case 3:
    arrays->J_regressor[element % (J * V)] = value;
    break;
  case 4:
    arrays->weights[element % (V * J)] = value;
    break;
  case 5:
    arrays->soft_tissue[element % V] = value;
    break;
  case 6:
    arrays->kintree_table[element % (2 * J)] = units;
    break;
  default:
    arrays->f[element % (F * 3)] = units;
  }
}

static void check_arrays(const uint8_t *data, size_t size) {
  static const size_t joints[] = {24, 52, 55};
  struct arrays made;
  struct body_arrays arrays = {
      .vertices = V,
      .faces = F,
      .joints = joints[data[0] % 3],
      .shapes = S,
      .columns = data[0] & 8 ? C : 0,
      .v_template = made.v_template,
      .shapedirs = made.shapedirs,
      .posedirs = data[0] & 8 ? made.posedirs : NULL,
      .J_regressor = made.J_regressor,
      .weights = made.weights,
      .kintree_table = made.kintree_table,
      .f = made.f,
      .soft_tissue = made.soft_tissue,
  };
  struct body *body = NULL;
  struct dsnet_error error = {0};
  make_sound(&made, arrays.joints);
  for (size_t at = 1; at + 5 <= size; at += 5)
    change(&made, data + at);
  const int code = body_new_from_arrays(&body, &arrays, &error);
  require(size > 5 || code == 0); // what nothing has changed is sound
  check(code, body, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0 && data[0] != 'P') {
    check_arrays(data, size);
    return 0;
  }
  struct body *body = NULL;
  struct dsnet_error error = {0};
  const int code = body_load_memory(&body, data, size, &error);
  check(code, body, &error);
  return 0;
}
