// SPDX-License-Identifier: Apache-2.0
// Rotations in double precision: rotation vectors (axis-angle: the axis times the angle, radians,
// as SMPL poses are), unit quaternions (w, x, y, z) and row-major 3x3 matrices. The logarithm goes
// through quaternions and atan2, so that it is exact to rounding at every angle, 0 and pi included;
// through the trace of a matrix it would lose half its digits at both.
//
// All functions are pure and allocate nothing. Outputs may be inputs.
#ifndef DSNET_MOTION_ROTATION_H
#define DSNET_MOTION_ROTATION_H

// q = (cos(a/2), sin(a/2) v/a), a = |v|. Any finite v; the result is a unit quaternion.
void quaternion_from_vector(const double vector[3], double q[4]);

// The rotation vector of q or -q with the angle in [0, pi]. At exactly pi both axes are right and
// that of q as given is returned. q need not be exactly normalised; the zero quaternion gives 0.
void quaternion_to_vector(const double q[4], double vector[3]);

// a b: first b, then a.
void quaternion_multiply(const double a[4], const double b[4], double product[4]);

// The inverse of a unit quaternion.
void quaternion_conjugate(const double q[4], double conjugate[4]);

// The shortest way from a (t = 0) to b (t = 1) at constant angular speed.
void quaternion_slerp(const double a[4], const double b[4], double t, double q[4]);

// R(v), Rodrigues' formula.
void rotation_matrix(const double vector[3], double matrix[9]);

// v(q) with 2 pi k added to its angle, k chosen so that it is nearest to `reference`: the
// representation of a rotation that continues a path of rotation vectors without a jump.
void rotation_vector_near(const double q[4], const double reference[3], double vector[3]);

#endif
