// SPDX-License-Identifier: Apache-2.0
// Jobs: whole clips computed in the background. Their threads run under SCHED_IDLE, so the kernel
// gives them only what live sessions leave; each takes the oldest job that waits, steps the network
// over its clip, and leaves latents and motion in a file.
//
// A data folder that cannot be used makes jobs unavailable, and nothing else.
#ifndef DSNET_SERVER_JOBS_H
#define DSNET_SERVER_JOBS_H

#include "config.h"
#include "job_files.h"
#include "models.h"
#include "store.h"

struct jobs;

// Opens the store and starts the threads. Settings and models must outlive them. Fails only for
// want of memory or threads.
int jobs_new(struct jobs **jobs, const struct config *config, const struct models *models,
             struct dsnet_error *error);
// Interrupts what is running, for a later process to begin anew; nothing is begun any more.
void jobs_stop(struct jobs *jobs);
// The same, and waits for the threads.
void jobs_free(struct jobs *jobs);

// Why there are none, or NULL. When there are, the next two are usable, from any thread.
const char *jobs_unavailable(const struct jobs *jobs);
struct store *jobs_store(const struct jobs *jobs);
const struct job_files *jobs_files(const struct jobs *jobs);

// Any thread. Says that a job waits; that one was cancelled.
void jobs_wake(struct jobs *jobs);
void jobs_interrupt(struct jobs *jobs, const char *id);

// Removes jobs that ended longer ago than their time to live, and their files. Waits for the disk.
void jobs_expire(struct jobs *jobs);

// What this process has done, and how many jobs are queued or running.
struct jobs_counts {
  bool available;
  uint64_t done, failed, frames;
  size_t waiting;
};
void jobs_count(struct jobs *jobs, struct jobs_counts *counts);

// A new identifier.
void job_id_make(char id[JOB_ID_SIZE]);
double job_clock(void); // seconds since the epoch

#endif
