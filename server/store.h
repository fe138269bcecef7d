// SPDX-License-Identifier: Apache-2.0
// Where jobs are kept, so that a job that was accepted outlives its process: what a job is, and
// what every store can do with it. A store keeps records; clips and results are files beside it.
//
// Jobs are computed by whoever claims them. A claim has an owner (a name for the process) and a
// lease; an owner that goes on working renews the lease with its progress, and loses the job when
// it does not, so that several processes can share a store. A store that one process has to itself
// need not count time: it gives back what earlier processes had claimed when it is opened.
//
// All functions are for any thread and may wait for the disk. Times are seconds since the epoch.
#ifndef DSNET_SERVER_STORE_H
#define DSNET_SERVER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define JOB_ID_SIZE    33 // 32 hexadecimal digits of 128 random bits, and a NUL
#define JOB_NAME_SIZE  64
#define JOB_ERROR_SIZE 384
#define JOB_KEY_MAX    255 // characters of an idempotency key
#define JOB_PRINT_SIZE 32  // bytes of a fingerprint
#define JOB_BETAS      10
#define JOB_OWNER_SIZE 33

// name, number (never changes: stores keep it), word
#define JOB_STATES(X)                                                                              \
  X(QUEUED, 0, "queued")                                                                           \
  X(RUNNING, 1, "running")                                                                         \
  X(DONE, 2, "done")                                                                               \
  X(FAILED, 3, "failed")                                                                           \
  X(CANCELLED, 4, "cancelled")

enum job_state {
#define X(name, number, word) JOB_##name = (number),
  JOB_STATES(X)
#undef X
      JOB_STATE_COUNT
};

const char *job_state_word(enum job_state state);

enum job_clip { JOB_CLIP_NPZ = 0, JOB_CLIP_JSON = 1 };

struct job {
  char id[JOB_ID_SIZE];
  uint64_t number; // ascends in the order of acceptance; given by the store
  enum job_state state;
  enum job_clip clip;
  char model[JOB_NAME_SIZE];
  bool has_betas; // the request's, instead of the clip's
  float betas[JOB_BETAS];
  uint8_t fingerprint[JOB_PRINT_SIZE]; // of all that was asked, to tell repetitions from reuse
  double created, started, finished;   // 0: not yet
  uint64_t frames, frames_done;        // at the model's rate; 0 until the clip was read
  uint64_t attempts;                   // claims so far
  char error[JOB_ERROR_SIZE];          // of a failed one
};

enum store_result {
  STORE_OK = 0,
  STORE_EXISTS = 1,  // put: a job with this key is there already
  STORE_NONE = 2,    // there is no such job, or none to claim
  STORE_LOST = 3,    // the job is not (any more) this owner's to work on
  STORE_FULL = -1,   // no space is left
  STORE_BROKEN = -2, // anything else; the error says what
};

struct store {
  const struct store_functions *functions;
};

// All take the store first. The error may be NULL.
struct store_functions {
  // Keeps a new job for good: it survives the process and the machine from here on. `key` is its
  // idempotency key or NULL; when another job has it, `job` becomes that job (STORE_EXISTS).
  int (*put)(struct store *store, struct job *job, const char *key, struct dsnet_error *error);
  int (*get)(struct store *store, const char *id, struct job *job, struct dsnet_error *error);
  // Up to `limit` jobs with numbers above `after`, in their order; of one state, or of all
  // (JOB_STATE_COUNT). Sets *count.
  int (*list)(struct store *store, enum job_state state, uint64_t after, size_t limit,
              struct job *jobs, size_t *count, struct dsnet_error *error);
  // Up to `limit` jobs that ended before a time.
  int (*expired)(struct store *store, double before, size_t limit, struct job *jobs, size_t *count,
                 struct dsnet_error *error);
  // Jobs that are queued or running.
  int (*waiting)(struct store *store, size_t *count, struct dsnet_error *error);
  // Makes the oldest job that waits (or whose lease has run out) this owner's.
  int (*claim)(struct store *store, const char *owner, double now, double lease, struct job *job,
               struct dsnet_error *error);
  // Says how far it is and renews the lease. STORE_LOST when it was cancelled, removed or taken.
  // This and the next two know the job by its id and attempts, as claimed.
  int (*progress)(struct store *store, const struct job *job, const char *owner, double lease,
                  struct dsnet_error *error);
  // Ends it: job->state is JOB_DONE or JOB_FAILED, with frames, finished and error.
  int (*finish)(struct store *store, const struct job *job, const char *owner,
                struct dsnet_error *error);
  // Gives it back unfinished, as if it had not been claimed.
  int (*release)(struct store *store, const struct job *job, const char *owner,
                 struct dsnet_error *error);
  // Cancels a job that is queued or running; `job` becomes what it is afterwards, whatever it was.
  int (*cancel)(struct store *store, const char *id, double now, struct job *job,
                struct dsnet_error *error);
  // Removes a job that is neither queued nor running (STORE_LOST when it is).
  int (*remove)(struct store *store, const char *id, struct dsnet_error *error);
  void (*close)(struct store *store);
};

// SQLite 3 (sqlite.org) in a folder that this process has to itself. A folder that another process
// holds, that cannot be written, or whose database is damaged is an error.
int store_sqlite_open(struct store **store, const char *folder, struct dsnet_error *error);

#endif
