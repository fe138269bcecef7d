// SPDX-License-Identifier: Apache-2.0
// The work of dsnet simulate: sequences, each one clip on one shape, simulated side by side.
#ifndef DSNET_TOOL_SIMULATE_JOBS_H
#define DSNET_TOOL_SIMULATE_JOBS_H

#include <stdbool.h>

#include "io/dyna.h"
#include "motion/clip.h"
#include "sim/tissue.h"

struct sequence {
  char name[DYNA_NAME_SIZE]; // "<subject>_<motion>"
  const struct clip *clip;   // at 60 Hz
  float betas[BODY_SHAPES_MAX];
  bool done; // written by an earlier run
};

struct simulate_plan {
  const struct tissue *tissue;
  const char *folder;
  struct sequence *sequences;
  size_t count;
  int threads;
  int deflate; // of the HDF5 files, 0..9
};

// What came of it.
struct simulate_result {
  size_t sequences, frames;
  double seconds, largest; // of D, metres
};

// Writes <folder>/<name>.npz and then <folder>/<name>.hdf5 of every sequence that is not done; the
// latter appears whole or not at all, so what is there is complete. Shows progress.
// DSNET_ECANCELLED after a signal (interrupt_catch has been called), with everything begun taken
// back.
int simulate_run(const struct simulate_plan *plan, struct simulate_result *result,
                 struct dsnet_error *error);

// "<folder>/<name><extension>" in `path`; DSNET_ELIMIT when it does not fit.
int simulate_path(char *path, size_t size, const char *folder, const char *name,
                  const char *extension, struct dsnet_error *error);

#endif
