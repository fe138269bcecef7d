// SPDX-License-Identifier: Apache-2.0
// The physics reference: the displacement D of one shape's soft tissue over a clip, frame by frame.
// Puts together the tissue (sim/tissue), what drives it (sim/drive) and its dynamics (sim/solid).
//
// D is the dynamic displacement in the rest space of the shaped body, as everywhere in this
// project: 0 while the body stands still or moves uniformly. The tissue starts at rest relative to
// the skinned body, so the first second or so of a clip that starts in full motion is a transient.
//
// One thread at a time a simulation; any number of them share a tissue.
#ifndef DSNET_SIM_SIMULATION_H
#define DSNET_SIM_SIMULATION_H

#include <stdbool.h>

#include "motion/clip.h"
#include "sim/tissue.h"

#define SIMULATION_FPS 60.0

struct simulation;

// `tissue` must outlive it.
int simulation_new(struct simulation **simulation, const struct tissue *tissue, const float *betas,
                   size_t betas_count, struct dsnet_error *error);
void simulation_free(struct simulation *simulation);

size_t simulation_nodes(const struct simulation *simulation);
size_t simulation_tets(const struct simulation *simulation);

// Begins a clip at SIMULATION_FPS (DSNET_EVALUE otherwise: resample it), which the caller keeps
// until the next start. The state before is forgotten.
int simulation_start(struct simulation *simulation, const struct clip *clip,
                     struct dsnet_error *error);

// The next frame's displacement [V][3]; the first call gives frame 0. False when the clip is over.
// Always finite.
bool simulation_next(struct simulation *simulation, float *displacement);

// The skin of the frame last given: posed [V][3] = LBS(T(betas) + pose part + displacement).
void simulation_pose(const struct simulation *simulation, const float *displacement, float *posed);

// Steps taken since the start, for reports of the cost.
size_t simulation_steps(const struct simulation *simulation);

#endif
