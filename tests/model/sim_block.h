// SPDX-License-Identifier: Apache-2.0
// Rectangular blocks of tissue for the tests of model/sim: a grid of cells, each split into six
// tetrahedra around its main diagonal, mirrored from cell to cell so that the mesh prefers no
// direction as a whole.
#ifndef DSNET_TESTS_SIM_BLOCK_H
#define DSNET_TESTS_SIM_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/solid.h"

struct block_plan {
  int cells[3];
  double size[3]; // metres, from the origin
  struct material material;
  double relaxation_time;
  int bound_axis; // nodes at coordinate 0 of this axis are bound; -1 for a free block
};

// The solid, and its rest positions [nodes][3] in *positions (free()). Fails the test on error.
struct solid *block_new(const struct block_plan *plan, double **positions);

// The node at grid indices.
size_t block_node(const struct block_plan *plan, int i, int j, int k);

#endif
