// SPDX-License-Identifier: Apache-2.0
#include "body/pose.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "body/struct.h"

// Joints 1..21 have pose directions that can act; those of the hands (22, 23) never turn.
#define DRIVEN_COLUMNS (9 * (BODY_POSE_JOINTS - 1))
#define LANES          8 // partial sums that the compiler may keep in one or two registers
#define PADDED_COLUMNS ((DRIVEN_COLUMNS + LANES - 1) / LANES * LANES)
_Static_assert(PADDED_COLUMNS <= BODY_POSE_COLUMNS, "a padded row stays inside its row");

#define DETERMINANT_MIN 1e-6

// --- shape --------------------------------------------------------------------------------------

static void shape_vertices(const struct body *body, const double *betas, size_t first, size_t count,
                           float *shaped) {
  const size_t B = body->shapes;
  for (size_t i = 0; i < count * 3; i++) {
    const float *row = body->shapedirs + (3 * first + i) * B;
    double sum = body->v_template[3 * first + i];
    for (size_t b = 0; b < B; b++)
      sum += row[b] * betas[b];
    shaped[i] = (float)sum;
  }
}

static void shape_joints(const struct body *body, const double *betas, float *joints) {
  for (size_t j = 0; j < BODY_JOINTS; j++)
    for (size_t c = 0; c < 3; c++) {
      double sum = body->joint_template[j][c];
      for (size_t b = 0; b < body->shapes; b++)
        sum += body->joint_shapedirs[j][c][b] * betas[b];
      joints[j * 3 + c] = (float)sum;
    }
}

static void betas_used(const struct body *body, const float *betas, size_t count, double *used) {
  for (size_t b = 0; b < BODY_SHAPES_MAX; b++)
    used[b] = b < count && b < body->shapes ? betas[b] : 0;
}

void body_shape_part(const struct body *body, const float *betas, size_t betas_count, size_t first,
                     size_t count, float *shaped) {
  double used[BODY_SHAPES_MAX];
  betas_used(body, betas, betas_count, used);
  shape_vertices(body, used, first, count, shaped);
}

void body_shape(const struct body *body, const float *betas, size_t count, float *shaped,
                float *joints) {
  double used[BODY_SHAPES_MAX];
  betas_used(body, betas, count, used);
  if (shaped)
    shape_vertices(body, used, 0, body->vertices, shaped);
  if (joints)
    shape_joints(body, used, joints);
}

// --- rotations ----------------------------------------------------------------------------------

// R [3][3] = exp([r]x) = I + a [r]x + b [r]x^2 with a = sin t / t, b = (1 - cos t) / t^2, t = |r|
// (Rodrigues). b is written with the half angle, which does not cancel. r = 0 gives I exactly.
static void rotation_matrix(const float r[3], double R[9]) {
  const double x = r[0], y = r[1], z = r[2];
  const double square = x * x + y * y + z * z;
  double a = 1 - square / 6, b = 0.5 - square / 24;
  if (square > 1e-8) {
    const double angle = sqrt(square), half = sin(angle / 2) / angle;
    a = sin(angle) / angle;
    b = 2 * half * half;
  }
  R[0] = 1 - b * (y * y + z * z);
  R[1] = b * x * y - a * z;
  R[2] = b * x * z + a * y;
  R[3] = b * x * y + a * z;
  R[4] = 1 - b * (x * x + z * z);
  R[5] = b * y * z - a * x;
  R[6] = b * x * z - a * y;
  R[7] = b * y * z + a * x;
  R[8] = 1 - b * (x * x + y * y);
}

// c = A b
static void rotate(const double A[9], const double b[3], double c[3]) {
  for (int i = 0; i < 3; i++)
    c[i] = A[3 * i] * b[0] + A[3 * i + 1] * b[1] + A[3 * i + 2] * b[2];
}

// C = A B
static void multiply(const double A[9], const double B[9], double C[9]) {
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++)
      C[3 * i + k] = A[3 * i] * B[k] + A[3 * i + 1] * B[3 + k] + A[3 * i + 2] * B[6 + k];
}

// --- forward kinematics -------------------------------------------------------------------------

// A joint's rest-to-world map x -> R x + t.
struct rigid {
  double R[9], t[3];
};

// A turn R_j about the rest joint J_j maps x to R_j x + (J_j - R_j J_j); the parent's map follows.
// Written so, an unturned joint has exactly its parent's map, and the rest pose is exactly I, 0.
static void joint_map(const struct rigid *parent, const double turn[9], const double place[3],
                      struct rigid *map) {
  double moved[3], shift[3];
  rotate(turn, place, moved);
  for (int c = 0; c < 3; c++)
    moved[c] = place[c] - moved[c];
  multiply(parent->R, turn, map->R);
  rotate(parent->R, moved, shift);
  for (int c = 0; c < 3; c++)
    map->t[c] = parent->t[c] + shift[c];
}

static void write_transform(const struct rigid *map, float out[12]) {
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < 3; k++)
      out[4 * i + k] = (float)map->R[3 * i + k];
    out[4 * i + 3] = (float)map->t[i];
  }
}

void body_transforms(const struct body *body, const float *joints, const float *pose,
                     const float *trans, float *transforms, float *posed_joints) {
  static const float rest[3] = {0, 0, 0};
  const struct rigid world = {.R = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                              .t = {trans[0], trans[1], trans[2]}};
  struct rigid maps[BODY_JOINTS];
  for (int j = 0; j < BODY_JOINTS; j++) {
    const double place[3] = {joints[3 * j], joints[3 * j + 1], joints[3 * j + 2]};
    double turn[9];
    rotation_matrix(j < BODY_POSE_JOINTS ? pose + 3 * j : rest, turn);
    joint_map(j ? &maps[body->parents[j]] : &world, turn, place, &maps[j]);
    write_transform(&maps[j], transforms + 12 * j);
    if (!posed_joints)
      continue;
    double posed[3];
    rotate(maps[j].R, place, posed);
    for (int c = 0; c < 3; c++)
      posed_joints[3 * j + c] = (float)(posed[c] + maps[j].t[c]);
  }
}

// --- pose part ----------------------------------------------------------------------------------

void body_add_pose_part(const struct body *body, const float *pose, float *vertices) {
  body_add_pose_part_of(body, pose, 0, body->vertices, vertices);
}

void body_add_pose_part_of(const struct body *body, const float *pose, size_t first, size_t count,
                           float *vertices) {
  if (!body->posedirs)
    return;
  float turns[PADDED_COLUMNS] = {0}; // R_j - I of joints 1..21, then zeros
  for (int j = 1; j < BODY_POSE_JOINTS; j++) {
    double R[9];
    rotation_matrix(pose + 3 * j, R);
    for (int k = 0; k < 9; k++)
      turns[9 * (j - 1) + k] = (float)(R[k] - (k % 4 == 0));
  }
  for (size_t i = 0; i < count * 3; i++) {
    const float *row = body->posedirs + (3 * first + i) * BODY_POSE_COLUMNS;
    float sums[LANES] = {0};
    for (int k = 0; k < PADDED_COLUMNS; k += LANES)
      for (int lane = 0; lane < LANES; lane++)
        sums[lane] += row[k + lane] * turns[k + lane];
    vertices[i] +=
        ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  }
}

// --- skinning -----------------------------------------------------------------------------------

// The blend sum_k w_k M_k is taken as M_0 + sum_{k>0} w_k (M_k - M_0): the weights then sum to 1
// exactly, whatever their rounding, so joints that move alike move the skin exactly alike.

// A transform by columns, each padded to four floats, so that a vertex is three multiply-adds of
// whole registers.
struct columns {
  float m[16];
};

static void columns_set(const float *transform, struct columns *columns) {
  memset(columns, 0, sizeof *columns);
  for (int row = 0; row < 3; row++)
    for (int column = 0; column < 4; column++)
      columns->m[4 * column + row] = transform[4 * row + column];
}

static void skin_vertex(const struct columns *maps, const uint8_t *joints, const float *weights,
                        const float x[3], float *posed) {
  const float *first = maps[joints[0]].m;
  float blend[16], out[4];
  for (int i = 0; i < 16; i++)
    blend[i] = first[i];
  for (int k = 1; k < BODY_WEIGHTS_MAX; k++) {
    const float *other = maps[joints[k]].m, weight = weights[k];
    for (int i = 0; i < 16; i++)
      blend[i] += weight * (other[i] - first[i]);
  }
  for (int i = 0; i < 4; i++)
    out[i] = blend[i] * x[0] + blend[4 + i] * x[1] + blend[8 + i] * x[2] + blend[12 + i];
  memcpy(posed, out, 3 * sizeof *posed);
}

void body_skin(const struct body *body, const float *transforms, const float *rest,
               const float *displacement, float *posed) {
  body_skin_part(body, transforms, 0, body->vertices, rest, displacement, posed);
}

void body_skin_part(const struct body *body, const float *transforms, size_t first, size_t count,
                    const float *rest, const float *displacement, float *posed) {
  static const float none[3] = {0, 0, 0};
  struct columns maps[BODY_JOINTS];
  for (int j = 0; j < BODY_JOINTS; j++)
    columns_set(transforms + 12 * j, &maps[j]);
  const uint8_t *joints = body->weight_joints + first * BODY_WEIGHTS_MAX;
  const float *weights = body->weight_values + first * BODY_WEIGHTS_MAX;
  for (size_t v = 0; v < count; v++) {
    const float *move = displacement ? displacement + 3 * v : none;
    const float x[3] = {rest[3 * v] + move[0], rest[3 * v + 1] + move[1],
                        rest[3 * v + 2] + move[2]};
    skin_vertex(maps, joints + v * BODY_WEIGHTS_MAX, weights + v * BODY_WEIGHTS_MAX, x,
                posed + 3 * v);
  }
}

// --- inverse skinning ---------------------------------------------------------------------------

static void blend_map(const float *transforms, const uint8_t *joints, const float *weights,
                      double blend[12]) {
  const float *first = transforms + 12 * joints[0];
  for (int i = 0; i < 12; i++)
    blend[i] = first[i];
  for (int k = 1; k < BODY_WEIGHTS_MAX; k++) {
    const float *other = transforms + 12 * joints[k];
    for (int i = 0; i < 12; i++)
      blend[i] += (double)weights[k] * ((double)other[i] - first[i]);
  }
}

// x with M (x, 1) = y for a row-major 3x4 M, by cofactors; false when M is singular.
static bool solve_map(const double M[12], const float y[3], double x[3]) {
  const double a[3] = {M[0], M[4], M[8]}, b[3] = {M[1], M[5], M[9]}, c[3] = {M[2], M[6], M[10]};
  const double r[3] = {y[0] - M[3], y[1] - M[7], y[2] - M[11]};
  // The rows of the inverse times the determinant are b x c, c x a and a x b.
  const double bc[3] = {b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2],
                        b[0] * c[1] - b[1] * c[0]};
  const double ca[3] = {c[1] * a[2] - c[2] * a[1], c[2] * a[0] - c[0] * a[2],
                        c[0] * a[1] - c[1] * a[0]};
  const double ab[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                        a[0] * b[1] - a[1] * b[0]};
  const double determinant = a[0] * bc[0] + a[1] * bc[1] + a[2] * bc[2];
  if (!(fabs(determinant) >= DETERMINANT_MIN))
    return false;
  x[0] = (bc[0] * r[0] + bc[1] * r[1] + bc[2] * r[2]) / determinant;
  x[1] = (ca[0] * r[0] + ca[1] * r[1] + ca[2] * r[2]) / determinant;
  x[2] = (ab[0] * r[0] + ab[1] * r[1] + ab[2] * r[2]) / determinant;
  return true;
}

int body_unskin(const struct body *body, const float *transforms, const float *rest,
                const float *posed, float *displacement, struct dsnet_error *error) {
  for (size_t v = 0; v < body->vertices; v++) {
    double blend[12], x[3];
    blend_map(transforms, body->weight_joints + v * BODY_WEIGHTS_MAX,
              body->weight_values + v * BODY_WEIGHTS_MAX, blend);
    if (!solve_map(blend, posed + 3 * v, x))
      return dsnet_error_set(error, DSNET_EVALUE,
                             "vertex %zu cannot be un-posed: its skinning matrix is singular in "
                             "this pose",
                             v);
    for (int c = 0; c < 3; c++)
      displacement[3 * v + c] = (float)(x[c] - rest[3 * v + c]);
  }
  return 0;
}
