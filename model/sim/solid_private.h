// SPDX-License-Identifier: Apache-2.0
// Inside of sim/solid: elements stored in blocks of eight lanes, one array per quantity, so that
// the compiler turns the loops over lanes into vector instructions.
#ifndef DSNET_SIM_SOLID_PRIVATE_H
#define DSNET_SIM_SOLID_PRIVATE_H

#include "sim/solid.h"

#define SOLID_LANES 8

// Constants and scratch of eight elements. Spare lanes of the last block have zero volume and
// gradient and all corners at node 0: they add nothing.
struct solid_block {
  uint32_t corner[4][SOLID_LANES];
  float gradient[9][SOLID_LANES]; // rows of the inverse edge matrix: dN_i/dX of corners 1..3
  float volume[SOLID_LANES];
  float shear[SOLID_LANES];      // mu
  float bulk[SOLID_LANES];       // the element's own share of lambda'
  float stiffening[SOLID_LANES]; // b
  float viscous[SOLID_LANES];    // 2 mu r
  float limit[SOLID_LANES];      // bound on this element's squared frequency over the largest one
  float wave[3][SOLID_LANES];    // shares of distortion, Maxwell branch and volume in that bound
  float turn[2][4][SOLID_LANES]; // rotation (quaternion) at the start and end of the interval
  // Between the two passes:
  float rotation[9][SOLID_LANES];
  float strain[9][SOLID_LANES]; // G
  float dilation[SOLID_LANES];  // J - 1
};

// The Maxwell branch: symmetric tensors xx, yy, zz, xy, xz, yz.
struct solid_branch {
  float green[6][SOLID_LANES];     // E at the last evaluation
  float stretched[6][SOLID_LANES]; // H
};

struct solid {
  size_t nodes, tets, blocks;
  struct solid_block *block;
  struct solid_branch *branch;
  float (*displacement)[4], (*velocity)[4], (*force)[4]; // [nodes]
  float (*load)[2][4];                                   // [nodes], start and end of the interval
  float *mass, *inverse_mass;                            // [nodes]; inverse 0 where bound
  float *swell;           // [nodes] sum of V (J - 1) / 4 over the node's elements
  float *pressure;        // [nodes] lambda'_n times the average J - 1
  float *pressure_factor; // [nodes] lambda'_n over the node's share of volume
  double frequency_max;   // rad/s
  double relaxation_time; // s
  double courant;
  float growth; // largest squared frequency of an element now, over the largest one at rest
};

// f(w) with the rotations at `time` (0..1 of the interval). The branches advance: H <- decay H +
// gain (E - E_last). Fills force and growth.
void solid_evaluate(struct solid *solid, float time, float decay, float gain);

#endif
