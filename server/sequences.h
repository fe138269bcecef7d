// SPDX-License-Identifier: Apache-2.0
// Sequences of inference requests, by model and identifier: what the network remembers between two
// requests. Not thread-safe.
#ifndef DSNET_SERVER_SEQUENCES_H
#define DSNET_SERVER_SEQUENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "motion/features.h"
#include "motion/retimer.h"
#include "net/net.h"

#define SEQUENCES_BETAS 10

struct sequence {
  struct sequence *next, **link; // in the table's list, least recently used first
  size_t model;
  uint64_t used_ms;
  bool busy;  // a request steps it
  bool kept;  // it is in the table
  char *name; // NULL: of a single request
  float fps;
  uint64_t frames; // so far, of the client
  float betas[SEQUENCES_BETAS];
  struct retimer retimer;
  float *latent, *before; // [Z] of the two newest model frames, in the same block
  float state[];          // [net_state_size]
};

struct sequences {
  size_t max, count;
  struct sequence *first, **end;
};

void sequences_init(struct sequences *sequences, size_t max);
void sequences_deinit(struct sequences *sequences);

// At rest, of poses at `fps`. NULL when memory is out.
struct sequence *sequence_new(size_t model, const struct net *net, float fps);
void sequence_free(struct sequence *sequence);

struct sequence *sequences_find(const struct sequences *sequences, size_t model, const char *name);
// Takes the sequence into the table under a name, in place of the one there. False when the table
// is full or memory is out.
bool sequences_keep(struct sequences *sequences, struct sequence *sequence, const char *name);
// Takes it out; it is the caller's.
void sequences_drop(struct sequences *sequences, struct sequence *sequence);
// It was used: it becomes the last to be forgotten.
void sequences_touch(struct sequences *sequences, struct sequence *sequence, uint64_t now_ms);
// Forgets those not used since, unless they are busy.
void sequences_forget(struct sequences *sequences, uint64_t since_ms);

#endif
