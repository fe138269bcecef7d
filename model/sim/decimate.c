// SPDX-License-Identifier: Apache-2.0
#include "sim/decimate.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ROUNDS_MAX  60
#define VALENCE_MAX 9
#define TURN_COSINE 0.5  // of the largest angle by which a collapse may turn a triangle
#define SHAPE_MIN   0.25 // least quality of a triangle made, 1 being equilateral
#define LENGTH_MAX  1.7  // longest edge made, relative to `edge`

struct edge {
  uint32_t keep, drop;
  float length; // relative to the wanted one
};

// The surface as it is now, with the triangles around each vertex.
struct surface {
  const float *positions;
  const float *wanted; // edge length at each vertex
  size_t vertices, faces;
  uint32_t *triangles; // [faces][3], compacted after each round
  size_t *start;       // [vertices + 1] into around
  uint32_t *around;    // triangle numbers
  uint8_t *locked;     // [vertices] touched in this round
};

static void subtract(const float *a, const float *b, double d[3]) {
  for (int c = 0; c < 3; c++)
    d[c] = (double)a[c] - b[c];
}

static double dot(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static const float *point(const struct surface *s, uint32_t v) {
  return s->positions + 3 * v;
}

static double distance(const struct surface *s, uint32_t a, uint32_t b) {
  double d[3];
  subtract(point(s, a), point(s, b), d);
  return sqrt(dot(d, d));
}

static double edge_wanted(const struct surface *s, uint32_t a, uint32_t b) {
  return fmin(s->wanted[a], s->wanted[b]);
}

// Twice the area vector, and the quality 4 sqrt(3) area / sum of squared edges.
static double triangle_normal(const struct surface *s, const uint32_t t[3], double normal[3]) {
  double e1[3], e2[3], e3[3];
  subtract(point(s, t[1]), point(s, t[0]), e1);
  subtract(point(s, t[2]), point(s, t[0]), e2);
  subtract(point(s, t[2]), point(s, t[1]), e3);
  for (int c = 0; c < 3; c++)
    normal[c] = e1[(c + 1) % 3] * e2[(c + 2) % 3] - e1[(c + 2) % 3] * e2[(c + 1) % 3];
  double squares = dot(e1, e1) + dot(e2, e2) + dot(e3, e3);
  return squares > 0 ? 2 * sqrt(3) * sqrt(dot(normal, normal)) / squares : 0;
}

static void surface_index(struct surface *s) {
  memset(s->start, 0, (s->vertices + 1) * sizeof *s->start);
  for (size_t i = 0; i < 3 * s->faces; i++)
    s->start[s->triangles[i] + 1]++;
  for (size_t v = 0; v < s->vertices; v++)
    s->start[v + 1] += s->start[v];
  for (size_t i = 0; i < 3 * s->faces; i++)
    s->around[s->start[s->triangles[i]]++] = (uint32_t)(i / 3);
  for (size_t v = s->vertices; v > 0; v--)
    s->start[v] = s->start[v - 1];
  s->start[0] = 0;
}

static bool triangle_has(const uint32_t t[3], uint32_t v) {
  return t[0] == v || t[1] == v || t[2] == v;
}

static size_t valence(const struct surface *s, uint32_t v) {
  return s->start[v + 1] - s->start[v];
}

// Whether a and b have an edge. The surface is closed, so one of a's triangles then has b.
static bool adjacent(const struct surface *s, uint32_t a, uint32_t b) {
  for (size_t i = s->start[a]; i < s->start[a + 1]; i++)
    if (triangle_has(s->triangles + 3 * (size_t)s->around[i], b))
      return true;
  return false;
}

// The ring of `drop` after it has moved to `keep`: no needle, no fold, no long edge.
static bool geometry_allows(const struct surface *s, uint32_t keep, uint32_t drop) {
  for (size_t i = s->start[drop]; i < s->start[drop + 1]; i++) {
    const uint32_t *t = s->triangles + 3 * (size_t)s->around[i];
    if (triangle_has(t, keep))
      continue;
    uint32_t moved[3];
    for (int c = 0; c < 3; c++) {
      moved[c] = t[c] == drop ? keep : t[c];
      if (t[c] != drop && distance(s, keep, t[c]) > LENGTH_MAX * edge_wanted(s, keep, t[c]))
        return false;
    }
    double before[3], after[3];
    double quality = triangle_normal(s, t, before), made = triangle_normal(s, moved, after);
    if (made < fmin(SHAPE_MIN, quality))
      return false;
    if (dot(before, after) < TURN_COSINE * sqrt(dot(before, before) * dot(after, after)))
      return false;
  }
  return true;
}

// Link condition: the two ends share exactly the two vertices across the edge, which must not be
// left with fewer than three triangles.
static bool topology_allows(const struct surface *s, uint32_t keep, uint32_t drop) {
  int shared_triangles = 0, shared_vertices = 0;
  for (size_t i = s->start[drop]; i < s->start[drop + 1]; i++) {
    const uint32_t *t = s->triangles + 3 * (size_t)s->around[i];
    bool both = triangle_has(t, keep);
    shared_triangles += both;
    for (int c = 0; c < 3; c++) {
      if (t[c] == drop || t[c] == keep)
        continue;
      if (both && valence(s, t[c]) <= 3)
        return false;
      shared_vertices += adjacent(s, keep, t[c]);
    }
  }
  // Around `drop` each neighbour is seen in two triangles.
  return shared_triangles == 2 && shared_vertices == 4 &&
         valence(s, keep) + valence(s, drop) - 4 <= VALENCE_MAX;
}

static bool ring_free(const struct surface *s, uint32_t v) {
  for (size_t i = s->start[v]; i < s->start[v + 1]; i++)
    for (int c = 0; c < 3; c++)
      if (s->locked[s->triangles[3 * (size_t)s->around[i] + (size_t)c]])
        return false;
  return true;
}

static void ring_lock(struct surface *s, uint32_t v) {
  for (size_t i = s->start[v]; i < s->start[v + 1]; i++)
    for (int c = 0; c < 3; c++)
      s->locked[s->triangles[3 * (size_t)s->around[i] + (size_t)c]] = 1;
}

static int edge_compare(const void *left, const void *right) {
  const struct edge *a = left, *b = right;
  if (a->length != b->length)
    return a->length < b->length ? -1 : 1;
  if (a->drop != b->drop)
    return a->drop < b->drop ? -1 : 1;
  return a->keep < b->keep ? -1 : a->keep > b->keep;
}

// Both directions of every short edge, shortest first.
static size_t edges_collect(const struct surface *s, struct edge *edges) {
  size_t count = 0;
  for (size_t f = 0; f < s->faces; f++)
    for (int c = 0; c < 3; c++) {
      uint32_t a = s->triangles[3 * f + (size_t)c], b = s->triangles[3 * f + (size_t)(c + 1) % 3];
      double length = distance(s, a, b) / edge_wanted(s, a, b);
      if (length < 1)
        edges[count++] = (struct edge){a, b, (float)length};
    }
  qsort(edges, count, sizeof *edges, edge_compare);
  return count;
}

static void triangles_compact(struct surface *s) {
  size_t kept = 0;
  for (size_t f = 0; f < s->faces; f++) {
    const uint32_t *t = s->triangles + 3 * f;
    if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0])
      continue;
    memmove(s->triangles + 3 * kept++, t, 3 * sizeof *t);
  }
  s->faces = kept;
}

// One round of collapses, none of which touches the ring of another. Returns how many.
static size_t round_collapse(struct surface *s, struct edge *edges, uint32_t *root) {
  surface_index(s);
  memset(s->locked, 0, s->vertices);
  size_t count = edges_collect(s, edges), done = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t keep = edges[i].keep, drop = edges[i].drop;
    if (s->locked[keep] || s->locked[drop] || !ring_free(s, drop) || !ring_free(s, keep))
      continue;
    if (!topology_allows(s, keep, drop) || !geometry_allows(s, keep, drop))
      continue;
    ring_lock(s, keep);
    ring_lock(s, drop);
    for (size_t k = s->start[drop]; k < s->start[drop + 1]; k++)
      for (int c = 0; c < 3; c++) {
        uint32_t *corner = &s->triangles[3 * (size_t)s->around[k] + (size_t)c];
        *corner = *corner == drop ? keep : *corner;
      }
    root[drop] = keep;
    done++;
  }
  triangles_compact(s);
  return done;
}

static void surface_free(struct surface *s) {
  free(s->start);
  free(s->around);
  free(s->locked);
}

int decimation_init(struct decimation *decimation, const float *positions, size_t vertices,
                    const uint32_t *triangles, size_t faces, const float *edge,
                    struct dsnet_error *error) {
  struct surface s = {.positions = positions, .wanted = edge, .vertices = vertices, .faces = faces};
  s.triangles = memory_alloc(faces, 3 * sizeof *s.triangles);
  s.start = memory_alloc(vertices + 1, sizeof *s.start);
  s.around = memory_alloc(faces, 3 * sizeof *s.around);
  s.locked = memory_alloc(vertices, 1);
  uint32_t *root = memory_alloc(vertices, sizeof *root);
  struct edge *edges = memory_alloc(faces, 3 * sizeof *edges);
  if (!s.triangles || !s.start || !s.around || !s.locked || !root || !edges) {
    free(s.triangles);
    free(root);
    free(edges);
    surface_free(&s);
    *decimation = (struct decimation){0};
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory to coarsen the body");
  }
  memcpy(s.triangles, triangles, 3 * faces * sizeof *triangles);
  for (size_t v = 0; v < vertices; v++)
    root[v] = (uint32_t)v;
  for (int round = 0; round < ROUNDS_MAX && round_collapse(&s, edges, root) > 0; round++)
    ;
  // A vertex may have been merged into one that went later: follow to the end.
  for (size_t v = 0; v < vertices; v++)
    while (root[v] != root[root[v]])
      root[v] = root[root[v]];
  free(edges);
  surface_free(&s);
  *decimation = (struct decimation){.faces = s.faces, .triangles = s.triangles, .root = root};
  return DSNET_OK;
}

void decimation_deinit(struct decimation *decimation) {
  free(decimation->triangles);
  free(decimation->root);
  *decimation = (struct decimation){0};
}
