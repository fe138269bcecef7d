// SPDX-License-Identifier: Apache-2.0
// The files of jobs in the data folder:
//   uploads/*          clips on their way; what a process leaves there the next one removes
//   clips/ID           a clip as it was sent, until its job has ended
//   results/ID.N       what attempt N made of it (job_result.h), once it is complete; while it is
//                      made, a hidden file beside it
// Plain functions of paths; any thread.
#ifndef DSNET_SERVER_JOB_FILES_H
#define DSNET_SERVER_JOB_FILES_H

#include "store.h"

#define JOB_PATH_SIZE 4096

struct job_files {
  char folder[JOB_PATH_SIZE - 128];
};

// Creates the folders. DSNET_EIO when it cannot.
int job_files_init(struct job_files *files, const char *folder, struct dsnet_error *error);

void job_files_upload(const struct job_files *files, const char *name, char path[JOB_PATH_SIZE]);
void job_files_clip(const struct job_files *files, const char *id, char path[JOB_PATH_SIZE]);
void job_files_result(const struct job_files *files, const struct job *job,
                      char path[JOB_PATH_SIZE]);

// Renames a file of the folder and makes sure that the new name survives the machine.
int job_files_keep(const char *from, const char *to, struct dsnet_error *error);
// Removes what there is of a job.
void job_files_remove(const struct job_files *files, const struct job *job);
// Removes whatever belongs to no job of the store, or to none in that state.
void job_files_sweep(const struct job_files *files, struct store *store);

#endif
