// SPDX-License-Identifier: Apache-2.0
#include "motion/rotation.h"

#include <math.h>
#include <string.h>

static double dot3(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

void quaternion_from_vector(const double vector[3], double q[4]) {
  double angle = sqrt(dot3(vector, vector));
  // sin(a/2)/a; below 1e-8 its series ends, in double, after the first term.
  double scale = angle < 1e-8 ? 0.5 : sin(0.5 * angle) / angle;
  double w = cos(0.5 * angle);
  for (int i = 0; i < 3; i++)
    q[i + 1] = scale * vector[i];
  q[0] = w;
}

void quaternion_to_vector(const double q[4], double vector[3]) {
  double sine = sqrt(dot3(q + 1, q + 1)); // sin(a/2) up to the norm of q
  double cosine = fabs(q[0]);
  double sign = q[0] < 0 ? -1 : 1;
  double scale = 0;
  if (sine > 1e-8 * cosine)
    scale = sign * 2 * atan2(sine, cosine) / sine;
  else if (cosine > 0)
    scale = sign * 2 / cosine; // atan2(s, c)/s -> 1/c
  for (int i = 0; i < 3; i++)
    vector[i] = scale * q[i + 1];
}

void quaternion_multiply(const double a[4], const double b[4], double product[4]) {
  double w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  double x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  double y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  double z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
  product[0] = w, product[1] = x, product[2] = y, product[3] = z;
}

void quaternion_conjugate(const double q[4], double conjugate[4]) {
  conjugate[0] = q[0];
  for (int i = 1; i < 4; i++)
    conjugate[i] = -q[i];
}

void quaternion_slerp(const double a[4], const double b[4], double t, double q[4]) {
  // a exp(t log(a^-1 b)): the logarithm takes the shorter way and is exact for near and for
  // opposite rotations, where the formula with sines of the angle between divides 0 by 0.
  double inverse[4], step[4], vector[3];
  quaternion_conjugate(a, inverse);
  quaternion_multiply(inverse, b, step);
  quaternion_to_vector(step, vector);
  for (int i = 0; i < 3; i++)
    vector[i] *= t;
  quaternion_from_vector(vector, step);
  quaternion_multiply(a, step, q);
}

void rotation_matrix(const double vector[3], double matrix[9]) {
  double q[4];
  quaternion_from_vector(vector, q);
  double w = q[0], x = q[1], y = q[2], z = q[3];
  const double m[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                       2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                       2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
  memcpy(matrix, m, sizeof m);
}

void rotation_vector_near(const double q[4], const double reference[3], double vector[3]) {
  const double turn = 6.283185307179586476925;
  double shortest[3], axis[3];
  quaternion_to_vector(q, shortest);
  double angle = sqrt(dot3(shortest, shortest));
  double length = sqrt(dot3(reference, reference));
  // No rotation, or next to it: every axis is right, and that of the reference is the nearest.
  const double *along = angle > 1e-9 ? shortest : reference;
  double norm = angle > 1e-9 ? angle : length;
  for (int i = 0; i < 3; i++)
    axis[i] = norm > 0 ? along[i] / norm : 0;
  double turns = rint((dot3(reference, axis) - dot3(shortest, axis)) / turn);
  for (int i = 0; i < 3; i++)
    vector[i] = shortest[i] + turns * turn * axis[i];
}
