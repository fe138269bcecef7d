// SPDX-License-Identifier: Apache-2.0
// The dsnet.v1 conversation of one connection (DESIGN: streaming protocol): `open`, then pose
// frames. Turns messages into frames pushed to the session's track, and says what to answer. A
// message that cannot be used leaves the session as it was. Event loop only; knows no socket.
//
// A checkpoint is the session as it is after a frame. Those of every so many frames come with that
// frame's result. One that is asked for is of the last frame taken, and can be made only when that
// has been stepped; until then the connection does not read on.
#ifndef DSNET_SERVER_SESSION_H
#define DSNET_SERVER_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batcher.h"
#include "load.h"
#include "metrics.h"
#include "models.h"
#include "token.h"
#include "wire/message.h"

#define SESSION_ID_LENGTH 32  // hexadecimal digits
#define SESSION_LATENCIES 128 // of which the percentiles in its statistics are

// What all sessions work with.
struct session_services {
  struct batcher *batcher;
  const struct models *models;
  const struct token_keys *keys;
  struct metrics *metrics;
  struct load *load;
  uint64_t token_max_age_ms;
  size_t frames_in_flight;
  size_t max_message; // bytes of a client's message, which a token must fit into
};

struct session {
  struct track *track; // NULL until opened
  int model;
  bool y_up;
  float betas[FEATURES_BETAS];
  bool any_frame; // seq of the last accepted frame is in last_seq
  uint32_t last_seq;
  double fps; // of the client's poses
  enum frame_kind output;
  enum frame_encoding encoding;
  bool json, latest;         // results as text; only the newest one waits
  bool reset;                // the next frame starts the sequence anew
  double keepalive;          // seconds of silence after which a message is sent; 0: never
  uint32_t checkpoint_every; // 0: only when asked for
  uint32_t since_checkpoint; // frames taken since the last of those
  bool checkpoint_wanted;    // by the client or a shutdown
  size_t awaited;            // frames taken whose results session_take has not seen
  char id[SESSION_ID_LENGTH + 1];
  struct session_counts {
    uint64_t frames_in, frames_out, skipped, held, gaps;
  } counts;                           // since the sequence was opened, here or elsewhere
  size_t measured;                    // results taken here
  float latencies[SESSION_LATENCIES]; // ms of the newest of them, in a ring
};

// Drops the session's track, if it has one. Results that were taken must have been released.
void session_close(struct session *session);

// Handles one message that came at `now` (ns of any steady clock). Returns true when `reply` is to
// be sent: an answer or an error.
bool session_text(struct session *session, const struct session_services *services, void *owner,
                  uint64_t now, const char *text, size_t size, struct message *reply);
bool session_frame(struct session *session, const struct session_services *services, uint64_t now,
                   const uint8_t *bytes, size_t size, struct message *reply);

// Frames accepted whose results have not been released.
size_t session_in_flight(const struct session *session);

// Asks for a checkpoint, if there is a frame to go on after.
void session_want_checkpoint(struct session *session);
// Whether it can be made now.
bool session_checkpoint_due(const struct session *session);
// Fills `reply` with the checkpoint that is due, or with an error when it cannot be made.
void session_checkpoint(struct session *session, const struct session_services *services,
                        struct message *reply);

// Takes a result of the session's track at `now`: fills result->outgoing, but for its release, with
// the whole message.
enum session_take {
  SESSION_TAKEN,
  SESSION_TAKEN_AND_REPLY, // `reply`, a checkpoint or an error, is to be sent after it
  SESSION_NOMEM,           // no message: the result is to be released, and its client told
};
enum session_take session_take(struct session *session, const struct session_services *services,
                               uint64_t now, struct result *result, struct message *reply);

#endif
