// SPDX-License-Identifier: Apache-2.0
// Explicit dynamics of tetrahedral soft tissue that hangs on a moving skeleton.
//
// The unknown is w, the displacement of every node from where skinning puts it, in world axes. The
// elastic energy is measured relative to the skinned pose: of an element e that skinning has turned
// by the rotation R_e, F_e = I + R_e^T (dw/dX), so that w = 0 costs nothing in any pose, the
// elements of a sharply bent elbow stay regular, and the internal forces of every element sum to
// zero in the world. With nodes bound to the bones at w = 0 the others move by
//
//   m_i w_i'' = f_i(w, R) + m_i a_i,
//
// where a_i is gravity less the acceleration of the skinned node, less what held it up standing
// (sim/drive.h). A body in uniform motion has a = 0 and so w = 0 exactly, wherever it is.
//
// Space: linear tetrahedra with lumped masses. So that near-incompressible tissue does not lock,
// most of the volume energy is measured on the average volume change around each node (Bonet and
// Burton 1998, "A simple average nodal pressure tetrahedral element ..."); a small share stays with
// the elements against checkerboard modes (Puso and Solberg 2006). Error falls with h^2.
// Time: velocity Verlet, as in total Lagrangian explicit dynamics of soft tissue (Miller et al.
// 2007): second order, exact in momentum. The step follows the stiffest element. Tissue waves run
// at some metres a second, so a 60 Hz frame needs only some tens of steps, each a fixed sweep
// without iteration or tolerance.
//
// A solid is used by one thread at a time; stepping allocates nothing.
#ifndef DSNET_SIM_SOLID_H
#define DSNET_SIM_SOLID_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/material.h"

// Faster than tissue can move on a body: a node's relative velocity is cut here (m/s), which keeps
// the answer finite whatever the clip does.
#define SOLID_SPEED_MAX 12.0

struct solid;

// What a solid is made of; read during solid_new only.
struct solid_mesh {
  size_t nodes, tets;
  const double *positions;          // [nodes][3] rest positions, metres
  const uint32_t *corners;          // [tets][4], positive volume
  const uint8_t *bound;             // [nodes] 1 where the node follows its bone
  const struct material *materials; // [tets]
  double relaxation_time;           // tau of every material's Maxwell branch, seconds
};

// DSNET_EVALUE names the first element without positive volume or with an impossible material.
int solid_new(struct solid **solid, const struct solid_mesh *mesh, struct dsnet_error *error);
void solid_free(struct solid *solid);

size_t solid_nodes(const struct solid *solid);
size_t solid_tets(const struct solid *solid);
// Highest frequency of the undeformed solid, rad/s; steps are at most 2 courant / this.
double solid_frequency_max(const struct solid *solid);
// Fraction of the stability limit that a step may take; 0.5 unless set, within 0.001 .. 0.9.
void solid_set_courant(struct solid *solid, double courant);

// Puts the solid into a state: displacement and velocity [nodes][3] (NULL for zeros; bound nodes
// are held at 0), element rotations as quaternions w, x, y, z [tets][4] (NULL for none), loads a
// [nodes][3] m/s^2 (NULL for none). The Maxwell branches are relaxed.
void solid_start(struct solid *solid, const float *displacement, const float *velocity,
                 const float *rotations, const float *loads);

// Advances by `seconds` while rotations and loads go linearly from the values of the last call to
// these; NULL leaves them as they were. Returns the steps taken.
size_t solid_advance(struct solid *solid, double seconds, const float *rotations,
                     const float *loads);

// The state, owned by the solid: [nodes][4], the fourth number is 0.
const float *solid_displacement(const struct solid *solid);
const float *solid_velocity(const struct solid *solid);
const float *solid_forces(const struct solid *solid); // internal forces at this state, newtons
const float *solid_masses(const struct solid *solid); // [nodes] kg

// Energies of the present state in joules, computed apart from the stepping code, in double
// precision and straight from the formulas (the Maxwell branches not included): the reference that
// the tests hold the forces to. Either may be NULL.
void solid_energy(const struct solid *solid, double *kinetic, double *elastic);

#endif
