// SPDX-License-Identifier: Apache-2.0
#include "remesh.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "vector.h"

#define SPLIT_OVER     (4.0 / 3.0) // of the desired length, as in the paper
#define COLLAPSE_BELOW (4.0 / 5.0)
#define RELAX          0.6 // of the way to the centre of the ring

struct remesher {
  struct half_mesh *mesh;
  const struct remesh_surface *surface;
  double scale;
  double *length; // [point] desired
  int length_room;
};

static int measure_lengths(struct remesher *r) {
  struct half_mesh *mesh = r->mesh;
  if (mesh->point_room > r->length_room) {
    free(r->length);
    r->length_room = mesh->point_room;
    r->length = memory_alloc((size_t)r->length_room, sizeof *r->length);
    if (!r->length)
      return -1;
  }
  for (int i = 0; i < mesh->point_count; i++)
    if (mesh->leaving[i] >= 0)
      r->length[i] = r->scale * r->surface->length(r->surface->field, mesh->points[i]);
  return 0;
}

static double edge_length(const struct half_mesh *mesh, int h) {
  return vector_distance(mesh->points[mesh->from[h]], mesh->points[half_to(mesh, h)]);
}

// Each edge is looked at once, from its lower half-edge.
static bool edge_is_live(const struct half_mesh *mesh, int h) {
  return mesh->from[h] >= 0 && mesh->twin[h] < h;
}

static int split_long(struct remesher *r) {
  struct half_mesh *mesh = r->mesh;
  int halves = 3 * mesh->face_count; // edges that splits make wait for the next round
  for (int h = 0; h < halves; h++) {
    if (!edge_is_live(mesh, h))
      continue;
    int a = mesh->from[h], b = half_to(mesh, h);
    // An inner edge between two seam points would be doubled by the reflection: always split.
    bool bridge = mesh->seam[a] && mesh->seam[b] && mesh->twin[h] >= 0;
    if (a >= r->length_room || b >= r->length_room)
      continue;
    double desired = (r->length[a] + r->length[b]) / 2;
    if (!bridge && edge_length(mesh, h) <= SPLIT_OVER * desired)
      continue;
    int middle = half_mesh_split(mesh, h);
    if (middle < 0)
      return -1;
    if (bridge) // off the seam, so that projection leaves it inside
      mesh->points[middle][0] += 0.25 * desired;
    r->surface->project(r->surface->field, mesh->seam[middle], mesh->points[middle]);
    if (middle < r->length_room)
      r->length[middle] = desired;
    else if (measure_lengths(r))
      return -1;
  }
  return 0;
}

static void collapse_short(struct remesher *r) {
  struct half_mesh *mesh = r->mesh;
  for (int h = 0; h < 3 * mesh->face_count; h++) {
    if (!edge_is_live(mesh, h))
      continue;
    int a = mesh->from[h], b = half_to(mesh, h);
    double desired = (r->length[a] + r->length[b]) / 2;
    if (edge_length(mesh, h) >= COLLAPSE_BELOW * desired)
      continue;
    double place[3];
    if (mesh->seam[a] == mesh->seam[b]) {
      for (int i = 0; i < 3; i++)
        place[i] = (mesh->points[a][i] + mesh->points[b][i]) / 2;
    } else {
      memcpy(place, mesh->points[mesh->seam[a] ? a : b], sizeof place);
    }
    int way = mesh->seam[a] && !mesh->seam[b] ? mesh->twin[h] : h; // the origin is what goes
    half_mesh_collapse(mesh, way, place, r->length, SPLIT_OVER);
  }
}

static int valence_error(const struct half_mesh *mesh, int point, int change) {
  int ring[HALF_MESH_RING_MAX];
  int count = half_mesh_ring(mesh, point, ring), ideal = mesh->seam[point] ? 4 : 6;
  return abs(count + change - ideal);
}

static void flip_for_valence(struct remesher *r) {
  struct half_mesh *mesh = r->mesh;
  for (int h = 0; h < 3 * mesh->face_count; h++) {
    if (!edge_is_live(mesh, h) || mesh->twin[h] < 0)
      continue;
    int a = mesh->from[h], b = half_to(mesh, h);
    int c = half_apex(mesh, h), d = half_apex(mesh, mesh->twin[h]);
    int now = valence_error(mesh, a, 0) + valence_error(mesh, b, 0) + valence_error(mesh, c, 0) +
              valence_error(mesh, d, 0);
    int then = valence_error(mesh, a, -1) + valence_error(mesh, b, -1) + valence_error(mesh, c, 1) +
               valence_error(mesh, d, 1);
    if (then < now)
      half_mesh_flip(mesh, h);
  }
}

// The centre of a point's ring; neighbours count as the area they stand for, over the desired area.
static bool ring_centre(const struct remesher *r, int point, double centre[3]) {
  const struct half_mesh *mesh = r->mesh;
  int ring[HALF_MESH_RING_MAX], count = half_mesh_ring(mesh, point, ring);
  if (count < 3)
    return false;
  double total = 0;
  memset(centre, 0, 3 * sizeof *centre);
  for (int i = 0; i < count; i++) {
    if (mesh->seam[point] && i != 0 && i != count - 1)
      continue; // the seam slides along itself
    double weight = 1 / r->length[ring[i]];
    vector_add_scaled(centre, weight, mesh->points[ring[i]]);
    total += weight;
  }
  for (int i = 0; i < 3; i++)
    centre[i] /= total;
  return true;
}

static bool relaxed_is_sound(const struct half_mesh *mesh, int point, const double place[3]) {
  int ring[HALF_MESH_RING_MAX], count = half_mesh_ring(mesh, point, ring);
  int faces = mesh->seam[point] ? count - 1 : count;
  for (int i = 0; i < faces; i++) {
    const double *b = mesh->points[ring[i]], *c = mesh->points[ring[(i + 1) % count]];
    double before[3], after[3];
    vector_triangle_normal(mesh->points[point], b, c, before);
    vector_triangle_normal(place, b, c, after);
    if (vector_dot(before, after) <= 0.3 * vector_norm(before) * vector_norm(after))
      return false;
  }
  return true;
}

// Takes the point to `place` on the surface, unless that would turn a face or reach the seam.
static bool settle(struct remesher *r, int v, double place[3]) {
  struct half_mesh *mesh = r->mesh;
  r->surface->project(r->surface->field, mesh->seam[v], place);
  if ((!mesh->seam[v] && place[0] <= 0.1 * r->length[v]) || !relaxed_is_sound(mesh, v, place))
    return false;
  memcpy(mesh->points[v], place, 3 * sizeof *place);
  return true;
}

static void relax(struct remesher *r) {
  struct half_mesh *mesh = r->mesh;
  for (int v = 0; v < mesh->point_count; v++) {
    double centre[3], normal[3], move[3], place[3];
    if (mesh->leaving[v] < 0 || !ring_centre(r, v, centre))
      continue;
    r->surface->normal(r->surface->field, mesh->points[v], normal);
    vector_subtract(centre, mesh->points[v], move);
    vector_add_scaled(move, -vector_dot(move, normal), normal);
    memcpy(place, mesh->points[v], sizeof place);
    vector_add_scaled(place, RELAX, move);
    if (!mesh->seam[v]) // never onto or over the seam
      place[0] = fmax(place[0], 0.2 * r->length[v]);
    if (settle(r, v, place))
      continue;
    memcpy(place, mesh->points[v], sizeof place); // at least onto the surface
    settle(r, v, place);
  }
}

int remesh(struct half_mesh *mesh, const struct remesh_surface *surface, double scale, int rounds,
           struct dsnet_error *error) {
  struct remesher r = {.mesh = mesh, .surface = surface, .scale = scale};
  int code = DSNET_OK;
  for (int round = 0; round < rounds; round++) {
    if (measure_lengths(&r) || split_long(&r)) {
      code = dsnet_error_set(error, DSNET_ENOMEM, "out of memory while remeshing");
      break;
    }
    collapse_short(&r);
    flip_for_valence(&r);
    relax(&r);
  }
  free(r.length);
  return code;
}

void remesh_sharpen(struct half_mesh *mesh) {
  for (int changed = 1, pass = 0; changed && pass < 20; pass++) {
    changed = 0;
    for (int h = 0; h < 3 * mesh->face_count; h++) {
      int twin = mesh->from[h] < 0 ? -1 : mesh->twin[h];
      if (twin < 0 || twin > h)
        continue;
      const double *a = mesh->points[mesh->from[h]], *b = mesh->points[half_to(mesh, h)];
      const double *c = mesh->points[half_apex(mesh, h)], *d = mesh->points[half_apex(mesh, twin)];
      double now = fmin(triangle_least_angle(a, b, c), triangle_least_angle(b, a, d));
      double then = fmin(triangle_least_angle(d, c, a), triangle_least_angle(c, d, b));
      if (then > now + 0.02)
        changed += half_mesh_flip(mesh, h);
    }
  }
}
