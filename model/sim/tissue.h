// SPDX-License-Identifier: Apache-2.0
// The soft tissue of a body as tetrahedra. A coarse surface on the body's own vertices
// (sim/decimate) is the outside; under each of its vertices a column of nodes goes inwards through
// fat and muscle to where the tissue is held by bone. Triangle by triangle, prisms between the
// columns are cut into tetrahedra. Because the layers follow the skin, nothing is coupled across
// the air between the legs or under the arms. Columns where the tissue is thin are bound
// altogether.
//
// What does not depend on the shape is made once a body and is const afterwards (any thread may
// use it); a shape's solid takes some tens of milliseconds.
#ifndef DSNET_SIM_TISSUE_H
#define DSNET_SIM_TISSUE_H

#include "body/body.h"
#include "sim/solid.h"

#define TISSUE_LAYERS_MAX 6
#define TISSUE_SPREAD     10 // columns that one vertex of the body takes its displacement from

struct tissue_settings {
  double edge; // metres: length of the coarse surface's edges where the body is soft
  int layers;  // of prisms between bone and skin
};

// The resolution that training data is made at.
extern const struct tissue_settings tissue_settings_default;

struct tissue;

// Keeps a reference to the body, which must outlive it.
int tissue_new(struct tissue **tissue, const struct body *body,
               const struct tissue_settings *settings, struct dsnet_error *error);
void tissue_free(struct tissue *tissue);

const struct body *tissue_body(const struct tissue *tissue);
size_t tissue_columns(const struct tissue *tissue);
const uint32_t *tissue_column_vertices(const struct tissue *tissue); // [columns] on the body

// The tissue of one shape. Release with tissue_solid_deinit.
struct tissue_solid {
  struct solid *solid;
  size_t nodes, tets;
  double *positions;   // [nodes][3] rest space
  uint32_t *column;    // [nodes] of which column
  uint32_t *corners;   // [tets][4]
  uint32_t *skin_node; // [columns] the node on the skin, UINT32_MAX where nothing can move
  double *thickness;   // [columns] metres
};

int tissue_solid_init(struct tissue_solid *made, const struct tissue *tissue, const float *betas,
                      size_t betas_count, struct dsnet_error *error);
void tissue_solid_deinit(struct tissue_solid *made);

// displacement [V][3] of all vertices from that of the columns [columns][3]: smooth weights that
// sum to one.
void tissue_spread(const struct tissue *tissue, const float *columns, float *displacement);

#endif
