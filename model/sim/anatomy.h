// SPDX-License-Identifier: Apache-2.0
// How thick and how stiff the soft tissue of each region is: the table that the tissue of a body is
// made by, with its sources.
#ifndef DSNET_SIM_ANATOMY_H
#define DSNET_SIM_ANATOMY_H

#include "body/region.h"
#include "sim/material.h"

// Seconds; with the relaxing share of the materials it puts the peak of damping at some 4 Hz.
#define ANATOMY_RELAXATION_TIME 0.027

struct anatomy {
  double fat, muscle;  // metres of each under the skin where softness is 1, in the mean shape
  double muscle_young; // Pa
  double softness;     // 0 .. 1, for bodies without a map of their own
};

const struct anatomy *anatomy_of(enum body_region region);

// Tissue of which a share (0 .. 1) is fat and the rest muscle of this region. Layers of the two
// under the same shear stress add their strains, so the moduli are averaged by their inverses.
struct material anatomy_material(const struct anatomy *anatomy, double fat_share);

#endif
