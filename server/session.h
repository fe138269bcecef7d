// SPDX-License-Identifier: Apache-2.0
// The dsnet.v1 conversation of one connection (DESIGN: streaming protocol): `open`, then pose
// frames. Turns messages into frames pushed to the session's track, and says what to answer. A
// message that cannot be used leaves the session as it was. Event loop only; knows no socket.
#ifndef DSNET_SERVER_SESSION_H
#define DSNET_SERVER_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batcher.h"
#include "models.h"
#include "wire/message.h"

#define SESSION_ID_LENGTH 32 // hexadecimal digits

struct session {
  struct track *track; // NULL until opened
  int model;
  bool y_up;
  float betas[FEATURES_BETAS];
  bool any_frame; // seq of the last accepted frame is in last_seq
  uint32_t last_seq;
  char id[SESSION_ID_LENGTH + 1];
};

// Drops the session's track, if it has one. Results that were taken must have been released.
void session_close(struct session *session);

// Handles one message. Returns true when `reply` is to be sent: `opened`, or an error.
bool session_text(struct session *session, struct batcher *batcher, const struct models *models,
                  void *owner, const char *text, size_t size, struct message *reply);
bool session_frame(struct session *session, const uint8_t *bytes, size_t size,
                   struct message *reply);

// Frames accepted whose results have not been released.
size_t session_in_flight(const struct session *session);

// Writes the frame's headers before the payload and fills result->outgoing but for its release.
void session_seal(struct result *result);

#endif
