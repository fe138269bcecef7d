// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "orient.h"
#include "websocket.h"

_Static_assert(WEBSOCKET_HEADER_MAX + FRAME_HEADER_SIZE <= RESULT_HEADROOM,
               "both headers must fit before a payload");
_Static_assert(FRAME_POSE_JOINTS * 3 == NET_POSE_SIZE && MESSAGE_BETAS_KEPT == FEATURES_BETAS,
               "the wire and the network must agree on the sizes");

static bool reply_error(struct message *reply, enum wire_error code, const char *text,
                        const uint32_t *seq) {
  memset(reply, 0, sizeof *reply);
  reply->type = MESSAGE_ERROR;
  struct message_error *error = &reply->error;
  error->has_seq = seq != NULL;
  error->seq = seq ? *seq : 0;
  snprintf(error->code, sizeof error->code, "%s", wire_error_code(code));
  snprintf(error->text, sizeof error->text, "%s", text ? text : wire_error_text(code));
  return true;
}

// Unpredictable, so that one client cannot name another's session.
static bool make_id(char id[SESSION_ID_LENGTH + 1]) {
  uint8_t bytes[SESSION_ID_LENGTH / 2];
  if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != sizeof bytes)
    return false;
  for (size_t i = 0; i < sizeof bytes; i++)
    snprintf(id + 2 * i, 3, "%02x", bytes[i]);
  return true;
}

// What the protocol has and this server does not. Returns a text for people, or NULL.
static const char *unsupported(const struct message_open *open, const struct net_config *net) {
  if (open->output != FRAME_DISPLACEMENT)
    return "output: only displacement is offered";
  if (open->encoding != FRAME_F32)
    return "encoding: only f32 is offered";
  if (open->fps < net->rate * (1 - 1e-4) || open->fps > net->rate * (1 + 1e-4))
    return "fps: only the model's own rate is offered";
  if (open->delivery != MESSAGE_DELIVERY_ALL)
    return "delivery: only all is offered";
  if (open->checkpoint_every)
    return "checkpoint_every: checkpoints are not offered";
  if (open->resume[0])
    return "resume: checkpoints are not offered";
  return NULL;
}

static bool reply_opened(const struct session *session, const struct models *models,
                         struct message *reply) {
  const struct net_config *net = net_config(models->items[session->model].net);
  memset(reply, 0, sizeof *reply);
  reply->type = MESSAGE_OPENED;
  struct message_opened *opened = &reply->opened;
  memcpy(opened->session, session->id, sizeof session->id);
  snprintf(opened->model, sizeof opened->model, "%s", models->items[session->model].name);
  opened->vertices = (uint32_t)net->vertices;
  opened->latents = (uint32_t)net->latent;
  opened->fps = net->rate;
  opened->trained = net->trained;
  return true;
}

static bool open_session(struct session *session, struct batcher *batcher,
                         const struct models *models, void *owner, const struct message_open *open,
                         struct message *reply) {
  if (session->track)
    return reply_error(reply, WIRE_ALREADY_OPEN, NULL, NULL);
  int model = models_find(models, open->model);
  if (model < 0)
    return reply_error(reply, WIRE_NO_MODEL, NULL, NULL);
  const char *lacking = unsupported(open, net_config(models->items[model].net));
  if (lacking)
    return reply_error(reply, WIRE_UNSUPPORTED, lacking, NULL);
  char id[sizeof session->id];
  if (!make_id(id))
    return reply_error(reply, WIRE_INTERNAL, "no random numbers for a session identifier", NULL);
  const struct track_settings settings = {
      .net = (size_t)model, .output = NET_DISPLACEMENT, .encoding = NET_AS_F32, .owner = owner};
  struct track *track = track_new(batcher, &settings);
  if (!track)
    return reply_error(reply, WIRE_OVERLOADED, "out of memory for a session", NULL);
  session->track = track;
  session->model = model;
  memcpy(session->betas, open->betas, sizeof session->betas);
  session->y_up = open->up == MESSAGE_UP_Y;
  memcpy(session->id, id, sizeof id);
  return reply_opened(session, models, reply);
}

bool session_text(struct session *session, struct batcher *batcher, const struct models *models,
                  void *owner, const char *text, size_t size, struct message *reply) {
  char why[256];
  struct message message;
  enum wire_error code = message_read(text, size, &message, why, sizeof why);
  if (code != WIRE_OK)
    return reply_error(reply, code, why, NULL);
  if (message.type != MESSAGE_OPEN)
    return reply_error(reply, WIRE_BAD_TYPE, "only servers send this type", NULL);
  return open_session(session, batcher, models, owner, &message.open, reply);
}

bool session_frame(struct session *session, const uint8_t *bytes, size_t size,
                   struct message *reply) {
  struct frame_pose pose;
  enum wire_error code = frame_pose_read(bytes, size, &pose);
  const uint32_t *seq = size >= FRAME_HEADER_SIZE ? &pose.header.seq : NULL;
  if (!session->track)
    code = WIRE_NOT_OPEN;
  else if (code == WIRE_OK && session->any_frame && pose.header.seq <= session->last_seq)
    code = WIRE_BAD_SEQ;
  if (code != WIRE_OK)
    return reply_error(reply, code, NULL, seq);
  if (session->y_up)
    orient_y_up_to_z_up(pose.pose, pose.trans);
  const struct track_frame frame = {.pose = pose.pose,
                                    .trans = pose.trans,
                                    .betas = session->betas,
                                    .seq = pose.header.seq,
                                    .timestamp = pose.header.timestamp};
  switch (track_push(session->track, &frame)) {
  case TRACK_PUSHED:
    session->any_frame = true;
    session->last_seq = pose.header.seq;
    return false;
  case TRACK_FULL: // the connection does not read on without room
  case TRACK_NOMEM:
    break;
  }
  return reply_error(reply, WIRE_OVERLOADED, "out of memory for this frame", seq);
}

size_t session_in_flight(const struct session *session) {
  return session->track ? track_in_flight(session->track) : 0;
}

void session_seal(struct result *result) {
  const struct frame_header header = {
      .kind = FRAME_DISPLACEMENT,
      .encoding = FRAME_F32,
      .seq = result->seq,
      .timestamp = result->timestamp,
  };
  uint8_t *frame = result->payload - FRAME_HEADER_SIZE;
  frame_header_write(&header, frame);
  size_t size = FRAME_HEADER_SIZE + result->payload_size;
  size_t length = websocket_binary_header(frame, size);
  result->outgoing.bytes = frame - length;
  result->outgoing.size = length + size;
}

void session_close(struct session *session) {
  if (session->track)
    track_close(session->track);
  session->track = NULL;
}
