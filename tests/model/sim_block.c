// SPDX-License-Identifier: Apache-2.0
#include "sim_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

size_t block_node(const struct block_plan *plan, int i, int j, int k) {
  const int *n = plan->cells;
  return ((size_t)i * (size_t)(n[1] + 1) + (size_t)j) * (size_t)(n[2] + 1) + (size_t)k;
}

// Six tetrahedra share the diagonal from corner 000 to 111 of the cell, after the cell has been
// mirrored along each axis on which its index is odd.
static size_t cell_split(const struct block_plan *plan, const int cell[3], uint32_t *corners) {
  static const int paths[6][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
  int mirrors = (cell[0] & 1) + (cell[1] & 1) + (cell[2] & 1);
  for (int p = 0; p < 6; p++) {
    int at[3] = {0, 0, 0};
    uint32_t tet[4];
    for (int step = 0; step < 4; step++) {
      int g[3];
      for (int c = 0; c < 3; c++)
        g[c] = cell[c] + ((cell[c] & 1) ? 1 - at[c] : at[c]);
      tet[step] = (uint32_t)block_node(plan, g[0], g[1], g[2]);
      if (step < 3)
        at[paths[p][step]] = 1;
    }
    // The first three paths are even permutations, the rest odd; each mirror flips the sign.
    bool flip = (p >= 3) != (mirrors & 1);
    corners[4 * p] = tet[0];
    corners[4 * p + 1] = tet[flip ? 2 : 1];
    corners[4 * p + 2] = tet[flip ? 1 : 2];
    corners[4 * p + 3] = tet[3];
  }
  return 6;
}

struct solid *block_new(const struct block_plan *plan, double **positions) {
  const int *n = plan->cells;
  size_t nodes = block_node(plan, n[0], n[1], n[2]) + 1;
  size_t tets = 6 * (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
  double *x = calloc(nodes, 3 * sizeof *x);
  uint8_t *bound = calloc(nodes, 1);
  uint32_t *corners = calloc(tets, 4 * sizeof *corners);
  struct material *materials = calloc(tets, sizeof *materials);
  assert_true(x && bound && corners && materials);
  for (int i = 0; i <= n[0]; i++)
    for (int j = 0; j <= n[1]; j++)
      for (int k = 0; k <= n[2]; k++) {
        size_t node = block_node(plan, i, j, k);
        int at[3] = {i, j, k};
        for (int c = 0; c < 3; c++)
          x[3 * node + (size_t)c] = plan->size[c] * at[c] / n[c];
        bound[node] = plan->bound_axis >= 0 && at[plan->bound_axis] == 0;
      }
  size_t t = 0;
  for (int i = 0; i < n[0]; i++)
    for (int j = 0; j < n[1]; j++)
      for (int k = 0; k < n[2]; k++)
        t += cell_split(plan, (int[3]){i, j, k}, corners + 4 * t);
  for (size_t m = 0; m < tets; m++)
    materials[m] = plan->material;
  struct solid_mesh mesh = {nodes, tets, x, corners, bound, materials, plan->relaxation_time};
  struct solid *solid = NULL;
  struct dsnet_error error = {0};
  if (solid_new(&solid, &mesh, &error) != DSNET_OK)
    fail_msg("%s", error.text);
  free(bound);
  free(corners);
  free(materials);
  if (positions)
    *positions = x;
  else
    free(x);
  return solid;
}
