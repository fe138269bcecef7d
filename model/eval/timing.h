// SPDX-License-Identifier: Apache-2.0
// What a frame costs on one core, for the comparison: of a network that serves many sessions at
// once, and of the physics that it stands for. Processor time of the calling thread.
#ifndef DSNET_EVAL_TIMING_H
#define DSNET_EVAL_TIMING_H

#include "body/body.h"
#include "eval/splits.h"
#include "io/dyna.h"
#include "net/net.h"

#define TIMING_BATCH 64 // sessions stepped at once

// Microseconds of a frame of one of TIMING_BATCH sessions, displacement included: the median over
// steps that fill about half a second.
int timing_net_batch(double *microseconds, const struct net *net, struct dsnet_error *error);

// Microseconds of a frame of simulation at the resolution `dsnet simulate` has by default: up to
// 180 frames of the first test sequence there is. 0 when there is none.
int timing_physics(double *microseconds, struct dyna *dyna, const struct body *body,
                   const struct splits *splits, struct dsnet_error *error);

#endif
