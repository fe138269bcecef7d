// SPDX-License-Identifier: Apache-2.0
#include "half_mesh.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "vector.h"

#define ROOM_POINTS 64  // spare room at the start; both arrays double when they are full
#define FLAT_COSINE 0.2 // a face may turn by less than this says in one operation

struct directed_edge {
  int a, b, half;
};

static int compare_edges(const void *x, const void *y) {
  const struct directed_edge *p = x, *q = y;
  if (p->a != q->a)
    return p->a < q->a ? -1 : 1;
  return p->b < q->b ? -1 : p->b > q->b;
}

static const struct directed_edge *find_edge(const struct directed_edge *edges, int count, int a,
                                             int b) {
  const struct directed_edge key = {.a = a, .b = b};
  return bsearch(&key, edges, (size_t)count, sizeof key, compare_edges);
}

// Pairs each half-edge with the one that runs the other way.
static int pair_edges(struct half_mesh *mesh, struct dsnet_error *error) {
  int count = 3 * mesh->face_count;
  struct directed_edge *edges = memory_alloc((size_t)count, sizeof *edges);
  if (!edges)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for the edges of a mesh");
  for (int h = 0; h < count; h++)
    edges[h] = (struct directed_edge){mesh->from[h], half_to(mesh, h), h};
  qsort(edges, (size_t)count, sizeof *edges, compare_edges);
  int code = DSNET_OK;
  for (int i = 1; i < count && !code; i++)
    if (!compare_edges(&edges[i - 1], &edges[i]))
      code = dsnet_error_set(error, DSNET_EVALUE, "edge %d-%d has two faces on one side",
                             edges[i].a, edges[i].b);
  for (int h = 0; h < count && !code; h++) {
    const struct directed_edge *twin = find_edge(edges, count, half_to(mesh, h), mesh->from[h]);
    mesh->twin[h] = twin ? twin->half : -1;
    mesh->leaving[mesh->from[h]] = h;
    if (!twin)
      mesh->seam[mesh->from[h]] = mesh->seam[half_to(mesh, h)] = true;
  }
  free(edges);
  return code;
}

int half_mesh_init(struct half_mesh *mesh, const struct triangles *triangles,
                   struct dsnet_error *error) {
  memset(mesh, 0, sizeof *mesh);
  mesh->point_count = triangles->point_count;
  mesh->point_room = triangles->point_count + ROOM_POINTS;
  mesh->face_count = triangles->face_count;
  mesh->face_room = triangles->face_count + 2 * ROOM_POINTS;
  size_t points = (size_t)mesh->point_room, halves = 3 * (size_t)mesh->face_room;
  mesh->points = memory_alloc(points, sizeof *mesh->points);
  mesh->leaving = memory_alloc(points, sizeof *mesh->leaving);
  mesh->seam = memory_alloc(points, sizeof *mesh->seam);
  mesh->from = memory_alloc(halves, sizeof *mesh->from);
  mesh->twin = memory_alloc(halves, sizeof *mesh->twin);
  int code;
  if (!mesh->points || !mesh->leaving || !mesh->seam || !mesh->from || !mesh->twin) {
    code = dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a mesh of %d points",
                           mesh->point_count);
    goto fail;
  }
  if (mesh->face_count) {
    memcpy(mesh->points, triangles->points, (size_t)mesh->point_count * sizeof *mesh->points);
    memcpy(mesh->from, triangles->faces, (size_t)mesh->face_count * sizeof *triangles->faces);
  }
  for (int i = 0; i < mesh->point_count; i++)
    mesh->leaving[i] = -1;
  code = pair_edges(mesh, error);
  if (code)
    goto fail;
  return DSNET_OK;
fail:
  half_mesh_deinit(mesh);
  return code;
}

void half_mesh_deinit(struct half_mesh *mesh) {
  free(mesh->points);
  free(mesh->leaving);
  free(mesh->seam);
  free(mesh->from);
  free(mesh->twin);
  memset(mesh, 0, sizeof *mesh);
}

int half_mesh_export(const struct half_mesh *mesh, struct triangles *triangles, bool **seam,
                     struct dsnet_error *error) {
  int *moved = memory_alloc((size_t)mesh->point_count, sizeof *moved);
  *seam = memory_alloc((size_t)mesh->point_count, sizeof **seam);
  bool out = !moved || !*seam;
  for (int i = 0; i < mesh->point_count && !out; i++) {
    if (mesh->leaving[i] < 0)
      continue;
    moved[i] = triangles_add_point(triangles, mesh->points[i]);
    out = moved[i] < 0;
    if (!out)
      (*seam)[moved[i]] = mesh->seam[i];
  }
  for (int f = 0; f < mesh->face_count && !out; f++) {
    const int *corner = &mesh->from[3 * f];
    if (corner[0] >= 0)
      out = triangles_add_face(triangles, moved[corner[0]], moved[corner[1]], moved[corner[2]]) < 0;
  }
  free(moved);
  if (!out)
    return DSNET_OK;
  free(*seam);
  *seam = NULL;
  triangles_deinit(triangles);
  return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a mesh");
}

// The half-edge leaving `point` with which a turn around it starts: at a boundary the one that has
// no twin, so that the turn meets every face.
static int first_leaving(const struct half_mesh *mesh, int point) {
  int start = mesh->leaving[point], h = start;
  while (mesh->twin[h] >= 0) {
    h = half_next(mesh->twin[h]);
    if (h == start)
      break;
  }
  return h;
}

// The half-edge that leaves the same point as h, one face on, or -1 past the boundary.
static int turn(const struct half_mesh *mesh, int h) {
  return mesh->twin[half_previous(h)];
}

int half_mesh_ring(const struct half_mesh *mesh, int point, int ring[HALF_MESH_RING_MAX]) {
  int start = first_leaving(mesh, point), count = 0;
  for (int h = start;;) {
    if (count == HALF_MESH_RING_MAX)
      return -1;
    ring[count++] = half_to(mesh, h);
    int next = turn(mesh, h);
    if (next == start)
      return count;
    if (next < 0) {
      if (count == HALF_MESH_RING_MAX)
        return -1;
      ring[count++] = half_apex(mesh, h);
      return count;
    }
    h = next;
  }
}

static int grow(void **items, size_t old, size_t more, size_t size) {
  void *moved = memory_alloc(more, size);
  if (!moved)
    return -1;
  memcpy(moved, *items, old * size);
  free(*items);
  *items = moved;
  return 0;
}

#define GROW(member, old, more)                                                                    \
  do {                                                                                             \
    void *items_ = mesh->member;                                                                   \
    if (grow(&items_, (size_t)(old), (size_t)(more), sizeof *mesh->member))                        \
      return -1;                                                                                   \
    mesh->member = items_;                                                                         \
  } while (0)

static int reserve(struct half_mesh *mesh) {
  if (mesh->point_count > INT_MAX / 8 || mesh->face_count > INT_MAX / 8)
    return -1;
  if (mesh->point_count + 1 > mesh->point_room) {
    int more = 2 * mesh->point_room;
    GROW(points, mesh->point_room, more);
    GROW(leaving, mesh->point_room, more);
    GROW(seam, mesh->point_room, more);
    mesh->point_room = more;
  }
  if (mesh->face_count + 2 > mesh->face_room) {
    int more = 2 * mesh->face_room;
    GROW(from, 3 * mesh->face_room, 3 * more);
    GROW(twin, 3 * mesh->face_room, 3 * more);
    mesh->face_room = more;
  }
  return 0;
}

static void join(struct half_mesh *mesh, int h, int twin) {
  if (h >= 0)
    mesh->twin[h] = twin;
  if (twin >= 0)
    mesh->twin[twin] = h;
}

// Halves the face of h (a, b, c with h = a -> b) at the new point m on h: it becomes m, b, c and a
// new face a, m, c is added, whose half-edge a -> m is returned.
static int split_face(struct half_mesh *mesh, int h, int m) {
  int a = mesh->from[h], c = half_apex(mesh, h), ca = half_previous(h), outer = mesh->twin[ca];
  int added = 3 * mesh->face_count++;
  mesh->from[added] = a;
  mesh->from[added + 1] = m;
  mesh->from[added + 2] = c;
  mesh->from[h] = m;
  join(mesh, added + 2, outer);
  join(mesh, added + 1, ca);
  mesh->twin[added] = -1;
  mesh->leaving[a] = added;
  mesh->leaving[c] = added + 2;
  return added;
}

int half_mesh_split(struct half_mesh *mesh, int h) {
  if (reserve(mesh))
    return -1;
  int twin = mesh->twin[h], m = mesh->point_count++;
  int a = mesh->from[h], b = half_to(mesh, h);
  for (int i = 0; i < 3; i++)
    mesh->points[m][i] = (mesh->points[a][i] + mesh->points[b][i]) / 2;
  mesh->seam[m] = twin < 0;
  mesh->leaving[m] = h;
  int am = split_face(mesh, h, m);
  if (twin < 0)
    return m;
  int bm = split_face(mesh, twin, m); // twin, b -> a, is now m -> a
  join(mesh, am, twin);
  join(mesh, h, bm);
  return m;
}

// Would the faces around `point` (but those that hold `other`) stay the same way up and within the
// length if it moved to `place`?
static bool move_is_sound(const struct half_mesh *mesh, int point, int other, const double place[3],
                          const double *length, double longest) {
  int start = first_leaving(mesh, point);
  for (int h = start; h >= 0;) {
    int b = half_to(mesh, h), c = half_apex(mesh, h);
    if (b != other && c != other) {
      double before[3], after[3];
      const double *pb = mesh->points[b], *pc = mesh->points[c];
      vector_triangle_normal(mesh->points[point], pb, pc, before);
      vector_triangle_normal(place, pb, pc, after);
      double area = vector_norm(after);
      if (vector_dot(before, after) < FLAT_COSINE * vector_norm(before) * area || area < 1e-12)
        return false;
      if (vector_distance(place, pb) > longest * length[b] ||
          vector_distance(place, pc) > longest * length[c])
        return false;
    }
    h = turn(mesh, h);
    if (h == start)
      break;
  }
  return true;
}

// The link condition (Dey et al. 1999) and the rules of the seam.
static bool collapse_keeps_topology(const struct half_mesh *mesh, int h) {
  int u = mesh->from[h], v = half_to(mesh, h), twin = mesh->twin[h];
  if (mesh->seam[u] && (!mesh->seam[v] || twin >= 0))
    return false;
  int around_u[HALF_MESH_RING_MAX], around_v[HALF_MESH_RING_MAX], common = 0;
  int nu = half_mesh_ring(mesh, u, around_u), nv = half_mesh_ring(mesh, v, around_v);
  if (nu < 0 || nv < 0 || nu + nv > HALF_MESH_RING_MAX)
    return false;
  for (int i = 0; i < nu; i++) {
    bool shared = false;
    for (int k = 0; k < nv; k++)
      shared |= around_u[i] == around_v[k];
    common += shared;
    bool becomes_boundary = mesh->seam[u] && (i == 0 || i == nu - 1);
    if (mesh->seam[v] && mesh->seam[around_u[i]] && around_u[i] != v && !shared &&
        !becomes_boundary)
      return false;
  }
  if (common != (twin < 0 ? 1 : 2))
    return false;
  // The corners across must keep at least three (on the seam two) faces.
  for (int side = h; side >= 0; side = side == h ? twin : -1) {
    int ring[HALF_MESH_RING_MAX], apex = half_apex(mesh, side);
    int least = mesh->seam[apex] ? 3 : 4;
    if (half_mesh_ring(mesh, apex, ring) < least)
      return false;
    if (mesh->twin[half_next(side)] < 0 && mesh->twin[half_previous(side)] < 0)
      return false;
  }
  return true;
}

// Takes the face of h (u -> v, apex a) out and sews its two other sides together.
static void remove_face(struct half_mesh *mesh, int h, int v) {
  int va = half_next(h), au = half_previous(h), a = half_apex(mesh, h);
  int av_out = mesh->twin[va], ua_out = mesh->twin[au];
  join(mesh, av_out, ua_out);
  // av_out runs a -> v, ua_out runs (u, now v) -> a.
  mesh->leaving[a] = av_out >= 0 ? av_out : half_next(ua_out);
  mesh->leaving[v] = ua_out >= 0 ? ua_out : half_next(av_out);
  for (int i = 0; i < 3; i++)
    mesh->from[h / 3 * 3 + i] = -1;
}

bool half_mesh_collapse(struct half_mesh *mesh, int h, const double place[3], const double *length,
                        double longest) {
  int u = mesh->from[h], v = half_to(mesh, h), twin = mesh->twin[h];
  if (!collapse_keeps_topology(mesh, h) || !move_is_sound(mesh, u, v, place, length, longest) ||
      !move_is_sound(mesh, v, u, place, length, longest))
    return false;
  int start = first_leaving(mesh, u), leaving[HALF_MESH_RING_MAX], count = 0;
  for (int g = start; g >= 0 && count < HALF_MESH_RING_MAX;) {
    leaving[count++] = g;
    g = turn(mesh, g);
    if (g == start)
      break;
  }
  for (int i = 0; i < count; i++)
    mesh->from[leaving[i]] = v;
  remove_face(mesh, h, v);
  if (twin >= 0)
    remove_face(mesh, twin, v);
  mesh->leaving[u] = -1;
  memcpy(mesh->points[v], place, sizeof mesh->points[v]);
  return true;
}

double triangle_least_angle(const double a[3], const double b[3], const double c[3]) {
  const double *corner[3] = {a, b, c};
  double least = 10;
  for (int i = 0; i < 3; i++) {
    double p[3], q[3], n[3];
    vector_subtract(corner[(i + 1) % 3], corner[i], p);
    vector_subtract(corner[(i + 2) % 3], corner[i], q);
    vector_cross(p, q, n);
    least = fmin(least, atan2(vector_norm(n), vector_dot(p, q)));
  }
  return least;
}

static bool flip_is_sound(const struct half_mesh *mesh, int a, int b, int c, int d) {
  const double *pa = mesh->points[a], *pb = mesh->points[b], *pc = mesh->points[c],
               *pd = mesh->points[d];
  double old[2][3], new[2][3];
  vector_triangle_normal(pa, pb, pc, old[0]);
  vector_triangle_normal(pb, pa, pd, old[1]);
  vector_triangle_normal(pd, pc, pa, new[0]);
  vector_triangle_normal(pc, pd, pb, new[1]);
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 2; k++)
      if (vector_dot(old[i], new[k]) < FLAT_COSINE * vector_norm(old[i]) * vector_norm(new[k]))
        return false;
  double before = fmin(triangle_least_angle(pa, pb, pc), triangle_least_angle(pb, pa, pd));
  double after = fmin(triangle_least_angle(pd, pc, pa), triangle_least_angle(pc, pd, pb));
  return after > 1e-6 && after > before / 3;
}

bool half_mesh_flip(struct half_mesh *mesh, int h) {
  int twin = mesh->twin[h];
  if (twin < 0)
    return false;
  int a = mesh->from[h], b = half_to(mesh, h), c = half_apex(mesh, h), d = half_apex(mesh, twin);
  if (c == d || (mesh->seam[c] && mesh->seam[d]))
    return false;
  int ring[HALF_MESH_RING_MAX], count = half_mesh_ring(mesh, c, ring);
  if (count < 0)
    return false;
  for (int i = 0; i < count; i++)
    if (ring[i] == d)
      return false;
  int ring_a[HALF_MESH_RING_MAX], ring_b[HALF_MESH_RING_MAX];
  if (half_mesh_ring(mesh, a, ring_a) < (mesh->seam[a] ? 3 : 4) ||
      half_mesh_ring(mesh, b, ring_b) < (mesh->seam[b] ? 3 : 4) || !flip_is_sound(mesh, a, b, c, d))
    return false;
  // Faces (a b c), (b a d) become (d c a) with h = d -> c, and (c d b) with twin = c -> d.
  int bc = half_next(h), ca = half_previous(h), ad = half_next(twin), db = half_previous(twin);
  int bc_out = mesh->twin[bc], ca_out = mesh->twin[ca], ad_out = mesh->twin[ad],
      db_out = mesh->twin[db];
  mesh->from[h] = d, mesh->from[bc] = c, mesh->from[ca] = a;
  mesh->from[twin] = c, mesh->from[ad] = d, mesh->from[db] = b;
  join(mesh, bc, ca_out);
  join(mesh, ca, ad_out);
  join(mesh, ad, db_out);
  join(mesh, db, bc_out);
  mesh->leaving[a] = ca;
  mesh->leaving[b] = db;
  mesh->leaving[c] = twin;
  mesh->leaving[d] = h;
  return true;
}
