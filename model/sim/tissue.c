// SPDX-License-Identifier: Apache-2.0
#include "sim/tissue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/anatomy.h"
#include "sim/decimate.h"
#include "sim/tissue_private.h"

#define EDGE_FIRM       0.06 // metres: edges where nothing moves
#define SOFTNESS_PASSES 12   // of averaging, for a softness that is only known by region

const struct tissue_settings tissue_settings_default = {.edge = 0.03, .layers = 2};

// softness[v] <- half itself, half the average around it, some times over.
static void softness_smooth(const struct body *body, float *softness, float *sum, float *count) {
  const uint32_t *t = body_triangles(body);
  size_t vertices = body_vertices(body);
  for (int pass = 0; pass < SOFTNESS_PASSES; pass++) {
    memset(sum, 0, vertices * sizeof *sum);
    memset(count, 0, vertices * sizeof *count);
    for (size_t i = 0; i < 3 * body_faces(body); i++) {
      uint32_t a = t[i], b = t[i % 3 == 2 ? i - 2 : i + 1];
      sum[a] += softness[b];
      count[a]++;
      sum[b] += softness[a];
      count[b]++;
    }
    for (size_t v = 0; v < vertices; v++)
      if (count[v] > 0)
        softness[v] = 0.5f * softness[v] + 0.5f * sum[v] / count[v];
  }
}

// softness [V]: the body's own map, or that of the regions.
static int softness_make(const struct body *body, const uint8_t *regions, float *softness) {
  size_t vertices = body_vertices(body);
  if (body_soft_tissue(body)) {
    memcpy(softness, body_soft_tissue(body), vertices * sizeof *softness);
    return DSNET_OK;
  }
  for (size_t v = 0; v < vertices; v++)
    softness[v] = (float)anatomy_of(regions[v])->softness;
  float *scratch = memory_alloc(vertices, 2 * sizeof *scratch);
  if (!scratch)
    return DSNET_ENOMEM;
  softness_smooth(body, softness, scratch, scratch + vertices);
  free(scratch);
  return DSNET_OK;
}

// Numbers the coarse vertices as columns. `root` becomes the
// column of each vertex.
static int columns_make(struct tissue *tissue, struct decimation *coarse) {
  size_t vertices = body_vertices(tissue->body);
  uint32_t *number = memory_alloc(vertices, sizeof *number);
  if (!number)
    return DSNET_ENOMEM;
  for (size_t v = 0; v < vertices; v++)
    if (coarse->root[v] == v)
      number[v] = (uint32_t)tissue->columns++;
  tissue->vertex = memory_alloc(tissue->columns, sizeof *tissue->vertex);
  if (!tissue->vertex) {
    free(number);
    return DSNET_ENOMEM;
  }
  for (size_t v = 0; v < vertices; v++)
    if (coarse->root[v] == v)
      tissue->vertex[number[v]] = (uint32_t)v;
  tissue->faces = coarse->faces;
  tissue->triangles = coarse->triangles;
  coarse->triangles = NULL;
  for (size_t i = 0; i < 3 * tissue->faces; i++)
    tissue->triangles[i] = number[tissue->triangles[i]];
  for (size_t v = 0; v < vertices; v++)
    coarse->root[v] = number[coarse->root[v]];
  free(number);
  return DSNET_OK;
}

static int tissue_plan(struct tissue *tissue, struct dsnet_error *error) {
  const struct body *body = tissue->body;
  size_t vertices = body_vertices(body);
  struct decimation coarse = {0};
  tissue->region = memory_alloc(vertices, 1);
  tissue->softness = memory_alloc(vertices, sizeof *tissue->softness);
  float *edge = memory_alloc(vertices, sizeof *edge);
  int code = DSNET_ENOMEM;
  if (!tissue->region || !tissue->softness || !edge)
    goto done;
  body_regions(body, tissue->region);
  code = softness_make(body, tissue->region, tissue->softness);
  if (code != DSNET_OK)
    goto done;
  for (size_t v = 0; v < vertices; v++) {
    double firm = fmax(0, 1 - 4 * tissue->softness[v]), soft = tissue->settings.edge;
    edge[v] = (float)(soft + firm * fmax(0, EDGE_FIRM - soft));
  }
  code = decimation_init(&coarse, body_template(body), vertices, body_triangles(body),
                         body_faces(body), edge, error);
  if (code == DSNET_OK)
    code = columns_make(tissue, &coarse);
  if (code == DSNET_OK)
    code = tissue_spread_build(tissue, coarse.root, error);
done:
  decimation_deinit(&coarse);
  free(edge);
  if (code == DSNET_ENOMEM)
    dsnet_error_set(error, DSNET_ENOMEM, "no memory for the tissue");
  return code;
}

int tissue_new(struct tissue **out, const struct body *body, const struct tissue_settings *settings,
               struct dsnet_error *error) {
  *out = NULL;
  if (!(settings->edge >= 0.005 && settings->edge <= 0.2) || settings->layers < 1 ||
      settings->layers > TISSUE_LAYERS_MAX)
    return dsnet_error_set(error, DSNET_EVALUE,
                           "tissue needs edges of 5 to 200 mm and 1 to %d layers",
                           TISSUE_LAYERS_MAX);
  struct tissue *tissue = calloc(1, sizeof *tissue);
  if (!tissue)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the tissue");
  tissue->body = body;
  tissue->settings = *settings;
  int code = tissue_plan(tissue, error);
  if (code != DSNET_OK) {
    tissue_free(tissue);
    return code;
  }
  *out = tissue;
  return DSNET_OK;
}

void tissue_free(struct tissue *tissue) {
  if (!tissue)
    return;
  free(tissue->vertex);
  free(tissue->triangles);
  free(tissue->region);
  free(tissue->softness);
  free(tissue->spread);
  free(tissue->weight);
  free(tissue);
}

const struct body *tissue_body(const struct tissue *tissue) {
  return tissue->body;
}
size_t tissue_columns(const struct tissue *tissue) {
  return tissue->columns;
}
const uint32_t *tissue_column_vertices(const struct tissue *tissue) {
  return tissue->vertex;
}

void tissue_spread(const struct tissue *tissue, const float *columns, float *displacement) {
  size_t vertices = body_vertices(tissue->body);
  for (size_t v = 0; v < vertices; v++) {
    const uint32_t *from = tissue->spread + v * TISSUE_SPREAD;
    const float *weight = tissue->weight + v * TISSUE_SPREAD;
    float sum[3] = {0, 0, 0};
    for (int k = 0; k < TISSUE_SPREAD; k++)
      for (int c = 0; c < 3; c++)
        sum[c] += weight[k] * columns[3 * (size_t)from[k] + (size_t)c];
    memcpy(displacement + 3 * v, sum, sizeof sum);
  }
}
