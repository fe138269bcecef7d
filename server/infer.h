// SPDX-License-Identifier: Apache-2.0
// Inference requests: a thread of its own reads them, steps the network over their frames, and
// writes their responses, in the order they came. Requests that wait are stepped together, a frame
// of each at a time. A request without a sequence starts from rest; one with a sequence goes on
// from where the last request of that sequence ended, so that one request of T frames equals T
// requests of one. Poses of other rates than the model's are taken as live ones are
// (motion/retimer.h), a period apart: with an output for each pose, one model frame late unless
// the model's rate is a multiple.
//
// Sequences are bounded in number (--max-sequences), and are forgotten when they ended or had no
// request for --sequence-idle. Bodies and responses together take at most INFER_HELD_MAX times
// --max-infer-bytes, however many clients send and however slowly they read. All functions are for
// one thread, that of the server's loop.
#ifndef DSNET_SERVER_INFER_H
#define DSNET_SERVER_INFER_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "config.h"
#include "infer/request.h"
#include "models.h"

#define INFER_HELD_MAX 8

struct infer;

enum infer_outcome {
  INFER_DONE,
  INFER_BAD,       // the request makes no sense; `why` says why
  INFER_TOO_LARGE, // its response would be larger than is sent
  INFER_FULL,      // every sequence is taken
  INFER_BUSY,      // requests take all the memory they may
  INFER_FAILED,    // out of memory
};

// One request. The caller fills the upper part; its memory is malloc'd.
struct infer_job {
  size_t model;
  char *body;
  size_t size, json_size;
  void (*done)(void *user, struct infer_job *job); // by the server's loop; NULL: nobody waits
  void *user;

  // The answer.
  enum infer_outcome outcome;
  char why[INFER_TEXT_SIZE];
  char *response;
  size_t response_size, response_json_size;
  size_t held; // by infer_hold
  struct infer_job *next;
};

// What has been done so far.
struct infer_counts {
  uint64_t requests, failed, frames;
  size_t sequences, waiting;
  size_t held; // bytes of bodies and responses
};

int infer_new(struct infer **infer, uv_loop_t *loop, const struct config *config,
              const struct models *models, struct dsnet_error *error);

// Counts `bytes` as what a job takes from now on, until infer_job_free. False, with nothing
// changed, when it takes more than before and that is not to be had.
bool infer_hold(struct infer *infer, struct infer_job *job, size_t bytes);

// Hands a job over; infer_job_free in `done`. False when so many wait that it is not taken.
bool infer_submit(struct infer *infer, struct infer_job *job);
// Nobody waits for a submitted job any more; it will be freed here.
void infer_abandon(struct infer *infer, struct infer_job *job);
void infer_job_free(struct infer *infer, struct infer_job *job);

void infer_counts(struct infer *infer, struct infer_counts *counts);

// Ends the thread after its current requests, drops those that wait, and closes the loop's handle,
// which has to run once more before infer_free.
void infer_stop(struct infer *infer);
void infer_free(struct infer *infer);

#endif
