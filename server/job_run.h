// SPDX-License-Identifier: Apache-2.0
// Computes one job: from the clip it was sent with to the file of its result. Any thread.
#ifndef DSNET_SERVER_JOB_RUN_H
#define DSNET_SERVER_JOB_RUN_H

#include "job_files.h"
#include "models.h"

struct job_run_settings {
  const struct models *models;
  const struct job_files *files;
  size_t frames_max;
  // Asked between stretches, and first when the number of frames is known; false interrupts.
  bool (*go_on)(void *user, uint64_t frames, uint64_t done);
  void *user;
};

// Returns 0 and sets job->frames when the result is complete and safe on the disk;
// DSNET_ECANCELLED when it was interrupted; otherwise the error says what was wrong with the clip,
// or with the disk. Leaves no file behind but a complete one.
int job_run(const struct job_run_settings *settings, struct job *job, struct dsnet_error *error);

#endif
