// SPDX-License-Identifier: Apache-2.0
// The solid of one shape: columns of nodes under the coarse surface and the tetrahedra between
// them. Elements that would be inside out or flat (tissue that is too deep for the curve of the
// skin) are made good by thinning their columns, and where that does not help by binding them, so
// that any body and any shape gives a valid solid.
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/pose.h"
#include "sim/anatomy.h"
#include "sim/thickness.h"

// Tissue thinner than this hardly moves (its shear rings above 20 Hz) but would rule the time step.
#define DEPTH_FREE   0.012
#define DEPTH_LEAST  0.008 // of the mesh under a bound column beside a free one
#define VOLUME_LEAST 0.2   // of a third of skin triangle times layer, for every element
#define THIN_ROUNDS  30    // rounds of thinning before binding begins
#define THIN_FACTOR  0.9

struct draft {
  const struct tissue *tissue;
  const float *shaped;
  struct thickness thickness;
  uint8_t *bound; // [columns]
};

// A node's place: level 0 is the skin, `layers` the bone.
static void node_place(const struct draft *draft, uint32_t column, int level, double x[3]) {
  const float *skin = draft->shaped + 3 * (size_t)draft->tissue->vertex[column];
  double depth = fmax(draft->thickness.depth[column], DEPTH_LEAST);
  for (int c = 0; c < 3; c++)
    x[c] = skin[c] +
           depth * level / draft->tissue->settings.layers * draft->thickness.inward[column][c];
}

static double tet_volume(double x[4][3]) {
  double e[3][3];
  for (int k = 0; k < 3; k++)
    for (int c = 0; c < 3; c++)
      e[k][c] = x[k + 1][c] - x[0][c];
  return (e[0][0] * (e[1][1] * e[2][2] - e[1][2] * e[2][1]) -
          e[0][1] * (e[1][0] * e[2][2] - e[1][2] * e[2][0]) +
          e[0][2] * (e[1][0] * e[2][1] - e[1][1] * e[2][0])) /
         6;
}

// A corner of a prism's tetrahedron: which of the triangle's columns, and how many levels down.
struct corner {
  int column, down;
};

// The three tetrahedra of the prism under triangle t between two levels. Columns are taken in the
// order of their numbers, which makes neighbouring prisms cut their common side along the same
// diagonal; the last two corners are swapped where that leaves an element inside out.
static void prism_cut(const uint32_t t[3], struct corner cut[3][4]) {
  int order[3] = {0, 1, 2};
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2 - i; j++)
      if (t[order[j]] > t[order[j + 1]]) {
        int swap = order[j];
        order[j] = order[j + 1], order[j + 1] = swap;
      }
  bool turned = (order[1] - order[0] + 3) % 3 != 1;
  for (int k = 0; k < 3; k++) {
    // Along the stairs: the first k + 1 columns at the lower level, from the k-th on the upper.
    int corner = 0;
    for (int i = 0; i <= k; i++)
      cut[k][corner++] = (struct corner){order[i], 1};
    for (int i = k; i < 3; i++)
      cut[k][corner++] = (struct corner){order[i], 0};
    if (turned != (k == 1)) {
      struct corner swap = cut[k][2];
      cut[k][2] = cut[k][3], cut[k][3] = swap;
    }
  }
}

static bool prism_moves(const struct draft *draft, const uint32_t t[3]) {
  return !(draft->bound[t[0]] && draft->bound[t[1]] && draft->bound[t[2]]);
}

// Smallest volume of the prism's tetrahedra, relative to a third of triangle times layer.
static double prism_quality(const struct draft *draft, const uint32_t t[3], int level) {
  struct corner cut[3][4];
  prism_cut(t, cut);
  double a[3], b[3], c[3], square = 0, depth = 0, worst = INFINITY;
  node_place(draft, t[0], 0, a);
  node_place(draft, t[1], 0, b);
  node_place(draft, t[2], 0, c);
  for (int i = 0; i < 3; i++) {
    int u = (i + 1) % 3, v = (i + 2) % 3;
    square += pow((b[u] - a[u]) * (c[v] - a[v]) - (b[v] - a[v]) * (c[u] - a[u]), 2);
    depth += fmax(draft->thickness.depth[t[i]], DEPTH_LEAST) / 3;
  }
  double ideal = 0.5 * sqrt(square) * depth / draft->tissue->settings.layers / 3;
  for (int k = 0; k < 3; k++) {
    double x[4][3];
    for (int i = 0; i < 4; i++)
      node_place(draft, t[cut[k][i].column], level + cut[k][i].down, x[i]);
    worst = fmin(worst, tet_volume(x));
  }
  return ideal > 0 ? worst / ideal : -1;
}

static void columns_bind(struct draft *draft) {
  for (size_t c = 0; c < draft->tissue->columns; c++)
    if (!(draft->thickness.depth[c] >= DEPTH_FREE))
      draft->bound[c] = 1;
}

// One round over the prisms that move; returns how many were bad and thinned or bound.
static size_t prisms_mend(struct draft *draft, bool bind, uint8_t *thin) {
  const struct tissue *tissue = draft->tissue;
  size_t bad = 0;
  memset(thin, 0, tissue->columns);
  for (size_t f = 0; f < tissue->faces; f++) {
    const uint32_t *t = tissue->triangles + 3 * f;
    bool good = true;
    for (int level = 0; level < tissue->settings.layers && good && prism_moves(draft, t); level++)
      good = prism_quality(draft, t, level) >= VOLUME_LEAST;
    for (int k = 0; k < 3 && !good; k++) {
      thin[t[k]] = 1;
      draft->bound[t[k]] |= bind;
    }
    bad += !good;
  }
  for (size_t c = 0; c < tissue->columns; c++)
    if (thin[c])
      draft->thickness.depth[c] *= THIN_FACTOR;
  columns_bind(draft);
  return bad;
}

static int draft_mend(struct draft *draft, struct dsnet_error *error) {
  uint8_t *thin = memory_alloc(draft->tissue->columns, 1);
  if (!thin)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the tissue");
  columns_bind(draft);
  // Once binding has begun every bad round binds a column, so the end is always reached.
  for (int round = 0; prisms_mend(draft, round >= THIN_ROUNDS, thin) > 0; round++)
    ;
  free(thin);
  return DSNET_OK;
}

// Numbers the nodes of the columns that have a prism that moves; first [columns] is the skin node.
static size_t nodes_number(const struct draft *draft, uint32_t *first, size_t *tets) {
  const struct tissue *tissue = draft->tissue;
  size_t nodes = 0;
  *tets = 0;
  for (size_t c = 0; c < tissue->columns; c++)
    first[c] = UINT32_MAX;
  for (size_t f = 0; f < tissue->faces; f++) {
    const uint32_t *t = tissue->triangles + 3 * f;
    if (!prism_moves(draft, t))
      continue;
    *tets += 3 * (size_t)tissue->settings.layers;
    for (int k = 0; k < 3; k++)
      first[t[k]] = 0;
  }
  for (size_t c = 0; c < tissue->columns; c++)
    if (first[c] == 0) {
      first[c] = (uint32_t)nodes;
      nodes += (size_t)tissue->settings.layers + 1;
    }
  return nodes;
}

static struct material prism_material(const struct draft *draft, const uint32_t t[3], int level) {
  struct anatomy mixed = {0};
  double share = 0;
  int layers = draft->tissue->settings.layers;
  for (int k = 0; k < 3; k++) {
    mixed.muscle_young += draft->thickness.muscle_young[t[k]] / 3;
    share += fmin(fmax(draft->thickness.fat_share[t[k]] * layers - level, 0), 1) / 3;
  }
  return anatomy_material(&mixed, share);
}

// Fills nodes, tets and materials; elements of bound nodes alone are left out.
static void solid_fill(const struct draft *draft, struct tissue_solid *made, uint8_t *bound,
                       struct material *materials) {
  const struct tissue *tissue = draft->tissue;
  int layers = tissue->settings.layers;
  for (uint32_t c = 0; c < tissue->columns; c++)
    for (int level = 0; level <= layers && made->skin_node[c] != UINT32_MAX; level++) {
      size_t node = made->skin_node[c] + (size_t)level;
      node_place(draft, c, level, made->positions + 3 * node);
      made->column[node] = c;
      bound[node] = draft->bound[c] || level == layers;
    }
  made->tets = 0;
  for (size_t f = 0; f < tissue->faces; f++) {
    const uint32_t *t = tissue->triangles + 3 * f;
    if (!prism_moves(draft, t))
      continue;
    struct corner cut[3][4];
    prism_cut(t, cut);
    for (int level = 0; level < layers; level++)
      for (int k = 0; k < 3; k++) {
        uint32_t *corners = made->corners + 4 * made->tets;
        bool moves = false;
        for (int i = 0; i < 4; i++) {
          corners[i] = made->skin_node[t[cut[k][i].column]] + (uint32_t)(level + cut[k][i].down);
          moves |= !bound[corners[i]];
        }
        if (moves)
          materials[made->tets++] = prism_material(draft, t, level);
      }
  }
}

static int solid_make(const struct draft *draft, struct tissue_solid *made,
                      struct dsnet_error *error) {
  const struct tissue *tissue = draft->tissue;
  made->skin_node = memory_alloc(tissue->columns, sizeof *made->skin_node);
  if (!made->skin_node)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the tissue");
  made->nodes = nodes_number(draft, made->skin_node, &made->tets);
  if (made->nodes == 0)
    return dsnet_error_set(error, DSNET_EVALUE, "the body has no soft tissue that could move");
  made->positions = memory_alloc(made->nodes, 3 * sizeof *made->positions);
  made->column = memory_alloc(made->nodes, sizeof *made->column);
  made->corners = memory_alloc(made->tets, 4 * sizeof *made->corners);
  uint8_t *bound = memory_alloc(made->nodes, 1);
  struct material *materials = memory_alloc(made->tets, sizeof *materials);
  int code = DSNET_ENOMEM;
  if (made->positions && made->column && made->corners && bound && materials) {
    solid_fill(draft, made, bound, materials);
    struct solid_mesh mesh = {made->nodes, made->tets, made->positions,        made->corners,
                              bound,       materials,  ANATOMY_RELAXATION_TIME};
    code = solid_new(&made->solid, &mesh, error);
  } else {
    dsnet_error_set(error, DSNET_ENOMEM, "no memory for the tissue");
  }
  free(bound);
  free(materials);
  return code;
}

int tissue_solid_init(struct tissue_solid *made, const struct tissue *tissue, const float *betas,
                      size_t betas_count, struct dsnet_error *error) {
  float joints[BODY_JOINTS * 3];
  *made = (struct tissue_solid){0};
  float *shaped = memory_alloc(body_vertices(tissue->body), 3 * sizeof *shaped);
  struct draft draft = {.tissue = tissue, .shaped = shaped};
  draft.bound = memory_alloc(tissue->columns, 1);
  int code = DSNET_ENOMEM;
  if (!shaped || !draft.bound) {
    dsnet_error_set(error, code, "no memory for the tissue");
    goto done;
  }
  body_shape(tissue->body, betas, betas_count, shaped, joints);
  code = thickness_init(&draft.thickness, tissue, shaped, joints, error);
  if (code == DSNET_OK)
    code = draft_mend(&draft, error);
  if (code == DSNET_OK)
    code = solid_make(&draft, made, error);
  if (code == DSNET_OK) {
    made->thickness = draft.thickness.depth;
    draft.thickness.depth = NULL;
  }
done:
  thickness_deinit(&draft.thickness);
  free(draft.bound);
  free(shaped);
  if (code != DSNET_OK)
    tissue_solid_deinit(made);
  return code;
}

void tissue_solid_deinit(struct tissue_solid *made) {
  solid_free(made->solid);
  free(made->positions);
  free(made->column);
  free(made->corners);
  free(made->skin_node);
  free(made->thickness);
  *made = (struct tissue_solid){0};
}
