// SPDX-License-Identifier: Apache-2.0
// Three-vectors of the body builder: plain arrays of double, every function inline and total.
#ifndef DSNET_BODY_BUILD_VECTOR_H
#define DSNET_BODY_BUILD_VECTOR_H

#include <math.h>

static inline double vector_dot(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline double vector_norm(const double a[3]) {
  return sqrt(vector_dot(a, a));
}

static inline void vector_subtract(const double a[3], const double b[3], double out[3]) {
  for (int i = 0; i < 3; i++)
    out[i] = a[i] - b[i];
}

static inline void vector_add_scaled(double a[3], double scale, const double b[3]) {
  for (int i = 0; i < 3; i++)
    a[i] += scale * b[i];
}

static inline void vector_cross(const double a[3], const double b[3], double out[3]) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

static inline double vector_distance(const double a[3], const double b[3]) {
  double d[3];
  vector_subtract(a, b, d);
  return vector_norm(d);
}

// To unit length; a zero vector stays zero.
static inline void vector_normalise(double a[3]) {
  double norm = vector_norm(a);
  for (int i = 0; i < 3 && norm > 0; i++)
    a[i] /= norm;
}

// (b - a) x (c - a): twice the triangle's area along its normal.
static inline void vector_triangle_normal(const double a[3], const double b[3], const double c[3],
                                          double out[3]) {
  double ab[3], ac[3];
  vector_subtract(b, a, ab);
  vector_subtract(c, a, ac);
  vector_cross(ab, ac, out);
}

// 0 below `from`, 1 above `to`, smooth between. `from` may exceed `to`.
static inline double smooth_ramp(double from, double to, double x) {
  double t = (x - from) / (to - from);
  t = t < 0 ? 0 : t > 1 ? 1 : t;
  return t * t * (3 - 2 * t);
}

// Distance of p from the segment a..b; *t in 0..1 is where on it the nearest point lies.
static inline double segment_distance(const double p[3], const double a[3], const double b[3],
                                      double *t) {
  double ab[3], ap[3];
  vector_subtract(b, a, ab);
  vector_subtract(p, a, ap);
  double length2 = vector_dot(ab, ab);
  double s = length2 > 0 ? vector_dot(ap, ab) / length2 : 0;
  *t = s < 0 ? 0 : s > 1 ? 1 : s;
  vector_add_scaled(ap, -*t, ab);
  return vector_norm(ap);
}

#endif
