// SPDX-License-Identifier: Apache-2.0
#include "mesh_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct edge {
  uint32_t a, b;
  size_t half;
};

static int compare_edges(const void *x, const void *y) {
  const struct edge *p = x, *q = y;
  if (p->a != q->a)
    return p->a < q->a ? -1 : 1;
  return p->b < q->b ? -1 : p->b > q->b;
}

// The directed edges in order of (a, b); the caller frees them.
static struct edge *sort_edges(const uint32_t (*faces)[3], size_t face_count) {
  struct edge *edges = malloc(3 * face_count * sizeof *edges);
  for (size_t h = 0; edges && h < 3 * face_count; h++)
    edges[h] = (struct edge){faces[h / 3][h % 3], faces[h / 3][(h + 1) % 3], h};
  if (edges)
    qsort(edges, 3 * face_count, sizeof *edges, compare_edges);
  return edges;
}

static const struct edge *find_edge(const struct edge *edges, size_t count, uint32_t a,
                                    uint32_t b) {
  const struct edge key = {a, b, 0};
  return bsearch(&key, edges, count, sizeof key, compare_edges);
}

// Turning from face to face around each vertex must meet as many faces as it has.
static bool fans_are_whole(const struct edge *edges, const uint32_t (*faces)[3], size_t face_count,
                           size_t vertex_count) {
  size_t *faces_at = calloc(vertex_count, sizeof *faces_at);
  bool *done = calloc(vertex_count, sizeof *done), whole = true;
  for (size_t h = 0; h < 3 * face_count; h++)
    faces_at[faces[h / 3][h % 3]]++;
  for (size_t i = 0; i < 3 * face_count && whole; i++) {
    uint32_t v = edges[i].a, to = edges[i].b;
    // Start at a boundary where there is one: an edge out of v without an edge back.
    bool boundary = !find_edge(edges, 3 * face_count, to, v);
    if (done[v] || (!boundary && i + 1 < 3 * face_count && edges[i + 1].a == v))
      continue;
    done[v] = true;
    size_t met = 0, h = edges[i].half;
    for (;;) {
      met++;
      uint32_t apex = faces[h / 3][(h % 3 + 2) % 3];
      const struct edge *next = find_edge(edges, 3 * face_count, v, apex);
      if (!next || next->half == edges[i].half || met > faces_at[v])
        break;
      h = next->half;
    }
    whole = met == faces_at[v];
  }
  for (size_t v = 0; v < vertex_count; v++)
    whole &= faces_at[v] > 0;
  free(faces_at);
  free(done);
  return whole;
}

bool mesh_is_manifold(const uint32_t (*faces)[3], size_t face_count, size_t vertex_count,
                      bool open) {
  struct edge *edges = sort_edges(faces, face_count);
  bool good = edges && face_count > 0;
  for (size_t i = 0; i < 3 * face_count && good; i++) {
    good = edges[i].a != edges[i].b && (i == 0 || compare_edges(&edges[i - 1], &edges[i]) != 0);
    if (good && !open)
      good = find_edge(edges, 3 * face_count, edges[i].b, edges[i].a);
  }
  good = good && fans_are_whole(edges, faces, face_count, vertex_count);
  free(edges);
  return good;
}

long mesh_euler(const uint32_t (*faces)[3], size_t face_count, size_t vertex_count) {
  struct edge *edges = sort_edges(faces, face_count);
  long count = 0;
  for (size_t i = 0; i < 3 * face_count; i++)
    count += edges[i].a < edges[i].b || !find_edge(edges, 3 * face_count, edges[i].b, edges[i].a);
  free(edges);
  return (long)vertex_count - count + (long)face_count;
}

static double triple(const double a[3], const double b[3], const double c[3]) {
  return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
         a[2] * (b[0] * c[1] - b[1] * c[0]);
}

static void widen(const float p[3], double out[3]) {
  for (int i = 0; i < 3; i++)
    out[i] = p[i];
}

static double face_volume(const float (*points)[3], const uint32_t face[3]) {
  double p[3][3];
  for (int i = 0; i < 3; i++)
    widen(points[face[i]], p[i]);
  return triple(p[0], p[1], p[2]) / 6;
}

double mesh_volume(const float (*points)[3], const uint32_t (*faces)[3], size_t face_count) {
  double volume = 0;
  for (size_t f = 0; f < face_count; f++)
    volume += face_volume(points, faces[f]);
  return volume;
}

// Closes the loop that starts at `first`; next[v] is the vertex after v, or -1.
static double close_loop(const float (*points)[3], long *next, size_t first) {
  double mean[3] = {0}, volume = 0;
  size_t count = 0, v = first;
  do {
    for (int i = 0; i < 3; i++)
      mean[i] += points[v][i];
    count++;
    v = (size_t)next[v];
  } while (v != first);
  for (int i = 0; i < 3; i++)
    mean[i] /= (double)count;
  while (next[v] >= 0) {
    size_t to = (size_t)next[v];
    double a[3], b[3];
    widen(points[v], a);
    widen(points[to], b);
    volume += triple(mean, a, b) / 6;
    next[v] = -1;
    v = to;
  }
  return volume;
}

double mesh_patch_volume(const float (*points)[3], const uint32_t (*faces)[3], size_t face_count,
                         const bool *inside, size_t vertex_count) {
  struct edge *edges = sort_edges(faces, face_count);
  long *next = malloc(vertex_count * sizeof *next);
  double volume = 0;
  for (size_t v = 0; v < vertex_count; v++)
    next[v] = -1;
  for (size_t f = 0; f < face_count; f++) {
    if (!inside[f])
      continue;
    volume += face_volume(points, faces[f]);
    for (int k = 0; k < 3; k++) {
      uint32_t a = faces[f][k], b = faces[f][(k + 1) % 3];
      const struct edge *back = find_edge(edges, 3 * face_count, b, a);
      if (!back || !inside[back->half / 3])
        next[b] = a; // the cap runs against the patch
    }
  }
  for (size_t v = 0; v < vertex_count; v++)
    if (next[v] >= 0)
      volume += close_loop(points, next, v);
  free(edges);
  free(next);
  return volume;
}

void mesh_face_normal(const float (*points)[3], const uint32_t face[3], double normal[3]) {
  double a[3], b[3];
  for (int i = 0; i < 3; i++) {
    a[i] = (double)points[face[1]][i] - points[face[0]][i];
    b[i] = (double)points[face[2]][i] - points[face[0]][i];
  }
  normal[0] = a[1] * b[2] - a[2] * b[1];
  normal[1] = a[2] * b[0] - a[0] * b[2];
  normal[2] = a[0] * b[1] - a[1] * b[0];
}

double mesh_least_angle(const float (*points)[3], const uint32_t face[3]) {
  double normal[3], least = 180;
  mesh_face_normal(points, face, normal);
  double area = sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
  for (int k = 0; k < 3; k++) {
    const float *p = points[face[k]], *q = points[face[(k + 1) % 3]],
                *r = points[face[(k + 2) % 3]];
    double dot = 0;
    for (int i = 0; i < 3; i++)
      dot += ((double)q[i] - p[i]) * ((double)r[i] - p[i]);
    least = fmin(least, atan2(area, dot) * 180 / 3.14159265358979323846);
  }
  return least;
}
