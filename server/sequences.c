// SPDX-License-Identifier: Apache-2.0
#include "sequences.h"

#include <stdlib.h>
#include <string.h>

void sequences_init(struct sequences *sequences, size_t max) {
  *sequences = (struct sequences){.max = max};
  sequences->end = &sequences->first;
}

void sequences_deinit(struct sequences *sequences) {
  for (struct sequence *sequence = sequences->first, *next; sequence; sequence = next) {
    next = sequence->next;
    sequence_free(sequence);
  }
}

struct sequence *sequence_new(size_t model, const struct net *net, float fps) {
  size_t state = net_state_size(net), latent = net_config(net)->latent;
  struct sequence *sequence =
      calloc(1, sizeof *sequence + (state + 2 * latent) * sizeof *sequence->state);
  if (!sequence)
    return NULL;
  sequence->model = model;
  sequence->fps = fps;
  sequence->latent = sequence->state + state;
  sequence->before = sequence->latent + latent;
  retimer_init(&sequence->retimer, fps, net_config(net)->rate, false);
  return sequence;
}

void sequence_free(struct sequence *sequence) {
  if (sequence)
    free(sequence->name);
  free(sequence);
}

struct sequence *sequences_find(const struct sequences *sequences, size_t model, const char *name) {
  for (struct sequence *sequence = sequences->first; sequence; sequence = sequence->next)
    if (sequence->model == model && !strcmp(sequence->name, name))
      return sequence;
  return NULL;
}

static void append(struct sequences *sequences, struct sequence *sequence) {
  sequence->next = NULL;
  sequence->link = sequences->end;
  *sequences->end = sequence;
  sequences->end = &sequence->next;
}

static void unlink_from(struct sequences *sequences, struct sequence *sequence) {
  *sequence->link = sequence->next;
  if (sequence->next)
    sequence->next->link = sequence->link;
  else
    sequences->end = sequence->link;
}

bool sequences_keep(struct sequences *sequences, struct sequence *sequence, const char *name) {
  struct sequence *old = sequences_find(sequences, sequence->model, name);
  if (!old && sequences->count == sequences->max)
    return false;
  sequence->name = strdup(name);
  if (!sequence->name)
    return false;
  if (old) {
    sequences_drop(sequences, old);
    sequence_free(old);
  }
  append(sequences, sequence);
  sequence->kept = true;
  sequences->count++;
  return true;
}

void sequences_drop(struct sequences *sequences, struct sequence *sequence) {
  unlink_from(sequences, sequence);
  sequence->kept = false;
  sequences->count--;
}

void sequences_touch(struct sequences *sequences, struct sequence *sequence, uint64_t now_ms) {
  sequence->used_ms = now_ms;
  unlink_from(sequences, sequence);
  append(sequences, sequence);
}

void sequences_forget(struct sequences *sequences, uint64_t since_ms) {
  for (struct sequence *sequence = sequences->first, *next; sequence; sequence = next) {
    next = sequence->next;
    if (sequence->used_ms >= since_ms)
      return;
    if (sequence->busy)
      continue;
    sequences_drop(sequences, sequence);
    sequence_free(sequence);
  }
}
