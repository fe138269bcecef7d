// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

// Bytes of an open message beside its token.
#define OPEN_ROOM 4096

// What a token holds, as it lies in memory. A change of it, or of what a track's state means, needs
// a new tag where models are identified (models.c).
struct snapshot {
  double fps;
  struct session_counts counts;
  float betas[FEATURES_BETAS]; // of the next frame
  uint32_t reset;              // whether it starts the sequence anew
  uint32_t last_seq;
  float state[]; // the track's
};

_Static_assert(sizeof(struct snapshot) == 8 + 5 * 8 + 4 * FEATURES_BETAS + 8, "no padding");

static size_t snapshot_size(const struct session *session) {
  return sizeof(struct snapshot) + track_state_size(session->track);
}

static uint64_t wall_clock_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static const uint8_t *identity(const struct session *session,
                               const struct session_services *services) {
  return services->models->items[session->model].identity;
}

bool checkpoint_fits(const struct session *session, const struct session_services *services) {
  size_t length = TOKEN_LENGTH(snapshot_size(session));
  return length < MESSAGE_TOKEN_MAX && length + OPEN_ROOM <= services->max_message;
}

// A snapshot after frame `last_seq`, the last whose result was taken; without the state. NULL when
// memory is out.
static struct snapshot *begin(const struct session *session, const float betas[FEATURES_BETAS],
                              uint32_t last_seq) {
  struct snapshot *snapshot = malloc(snapshot_size(session));
  if (!snapshot)
    return NULL;
  *snapshot =
      (struct snapshot){.fps = session->fps, .counts = session->counts, .last_seq = last_seq};
  snapshot->counts.frames_in -= session->awaited;
  memcpy(snapshot->betas, betas, sizeof snapshot->betas);
  return snapshot;
}

// Frees the snapshot.
static enum wire_error seal(const struct session *session, const struct session_services *services,
                            struct snapshot *snapshot, struct message_checkpoint *checkpoint) {
  checkpoint->seq = snapshot->last_seq;
  bool sealed = token_seal(services->keys, identity(session, services), wall_clock_ms(), snapshot,
                           snapshot_size(session), checkpoint->token);
  free(snapshot);
  return sealed ? WIRE_OK : WIRE_OVERLOADED;
}

enum wire_error checkpoint_make(const struct session *session,
                                const struct session_services *services,
                                struct message_checkpoint *checkpoint) {
  if (!checkpoint_fits(session, services))
    return WIRE_UNSUPPORTED;
  struct snapshot *snapshot = begin(session, session->betas, session->last_seq);
  if (!snapshot)
    return WIRE_OVERLOADED;
  snapshot->reset = session->reset;
  track_save(session->track, snapshot->state);
  return seal(session, services, snapshot, checkpoint);
}

enum wire_error checkpoint_of_result(const struct session *session,
                                     const struct session_services *services,
                                     const struct result *result,
                                     struct message_checkpoint *checkpoint) {
  const float *betas = track_state_betas(session->track, result->state);
  struct snapshot *snapshot = begin(session, betas, result->seq);
  if (!snapshot)
    return WIRE_OVERLOADED;
  memcpy(snapshot->state, result->state, track_state_size(session->track));
  return seal(session, services, snapshot, checkpoint);
}

static enum wire_error take_up(struct session *session, const struct snapshot *snapshot) {
  if (snapshot->fps != session->fps)
    return WIRE_BAD_MEMBER;
  track_restore(session->track, snapshot->state);
  memcpy(session->betas, snapshot->betas, sizeof session->betas);
  session->counts = snapshot->counts;
  session->reset = snapshot->reset;
  session->last_seq = snapshot->last_seq;
  session->any_frame = snapshot->last_seq != UINT32_MAX; // after it the numbers begin anew
  return WIRE_OK;
}

enum wire_error checkpoint_resume(struct session *session, const struct session_services *services,
                                  const char *token) {
  static const enum wire_error errors[] = {
      [TOKEN_BAD] = WIRE_BAD_TOKEN,
      [TOKEN_EXPIRED] = WIRE_EXPIRED_TOKEN,
      [TOKEN_WRONG_MODEL] = WIRE_WRONG_MODEL,
      [TOKEN_NOMEM] = WIRE_OVERLOADED,
  };
  if (!checkpoint_fits(session, services))
    return WIRE_UNSUPPORTED;
  size_t size = snapshot_size(session);
  struct snapshot *snapshot = malloc(size);
  if (!snapshot)
    return WIRE_OVERLOADED;
  enum token_outcome outcome =
      token_open(services->keys, identity(session, services), wall_clock_ms(),
                 services->token_max_age_ms, token, strlen(token), snapshot, size);
  enum wire_error code = outcome == TOKEN_OPENED ? take_up(session, snapshot) : errors[outcome];
  free(snapshot);
  return code;
}
