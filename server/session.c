// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "checkpoint.h"
#include "orient.h"
#include "websocket.h"

_Static_assert(WEBSOCKET_HEADER_MAX + FRAME_HEADER_SIZE <= RESULT_HEADROOM,
               "both headers must fit before a payload");
_Static_assert(FRAME_POSE_JOINTS * 3 == NET_POSE_SIZE && MESSAGE_BETAS_KEPT == FEATURES_BETAS,
               "the wire and the network must agree on the sizes");

static bool reply_error(struct message *reply, enum wire_error code, const char *text,
                        const uint32_t *seq) {
  struct message_error *error = &reply->error;
  memset(error, 0, sizeof *error);
  reply->type = MESSAGE_ERROR;
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

// Why a checkpoint could not be made or taken up.
static bool reply_checkpoint_error(struct message *reply, enum wire_error code) {
  const char *text = NULL;
  if (code == WIRE_UNSUPPORTED)
    text = "the state tokens of this model are longer than a message may be";
  else if (code == WIRE_BAD_MEMBER)
    text = "fps: is not that of the session which the token is of";
  return reply_error(reply, code, text, NULL);
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
  return NULL;
}

// Opening ----------------------------------------------------------------------------------------

static bool reply_opened(const struct session *session, const struct models *models,
                         struct message *reply) {
  const struct net_config *net = net_config(models->items[session->model].net);
  struct message_opened *opened = &reply->opened;
  memset(opened, 0, sizeof *opened);
  reply->type = MESSAGE_OPENED;
  memcpy(opened->session, session->id, sizeof session->id);
  snprintf(opened->model, sizeof opened->model, "%s", models->items[session->model].name);
  opened->vertices = (uint32_t)net->vertices;
  opened->latents = (uint32_t)net->latent;
  opened->fps = net->rate;
  opened->next_seq = session->any_frame ? session->last_seq + 1 : 0;
  opened->trained = net->trained;
  return true;
}

// Gives the session its track, at the start of a sequence or where a token says. True when it was
// refused.
static bool start_track(struct session *session, const struct session_services *services,
                        void *owner, const struct message_open *open, struct message *reply) {
  const struct track_settings settings = {.net = (size_t)session->model,
                                          .output = NET_DISPLACEMENT,
                                          .encoding = NET_AS_F32,
                                          .owner = owner};
  session->track = track_new(services->batcher, &settings);
  if (!session->track)
    return reply_error(reply, WIRE_OVERLOADED, "out of memory for a session", NULL);
  enum wire_error code = WIRE_OK;
  if (open->resume[0])
    code = checkpoint_resume(session, services, open->resume);
  else if (open->checkpoint_every && !checkpoint_fits(session, services))
    code = WIRE_UNSUPPORTED;
  return code != WIRE_OK && reply_checkpoint_error(reply, code);
}

static bool open_session(struct session *session, const struct session_services *services,
                         void *owner, const struct message_open *open, struct message *reply) {
  if (session->track)
    return reply_error(reply, WIRE_ALREADY_OPEN, NULL, NULL);
  int model = models_find(services->models, open->model);
  if (model < 0)
    return reply_error(reply, WIRE_NO_MODEL, NULL, NULL);
  const char *lacking = unsupported(open, net_config(services->models->items[model].net));
  if (lacking)
    return reply_error(reply, WIRE_UNSUPPORTED, lacking, NULL);
  struct session opened = {
      .model = model,
      .y_up = open->up == MESSAGE_UP_Y,
      .fps = open->fps,
      .checkpoint_every = open->checkpoint_every,
  };
  memcpy(opened.betas, open->betas, sizeof opened.betas);
  if (!make_id(opened.id))
    return reply_error(reply, WIRE_INTERNAL, "no random numbers for a session identifier", NULL);
  if (start_track(&opened, services, owner, open, reply)) {
    session_close(&opened);
    return true;
  }
  *session = opened;
  return reply_opened(session, services->models, reply);
}

// Checkpoints ------------------------------------------------------------------------------------

static bool request_checkpoint(struct session *session, struct message *reply) {
  if (!session->track)
    return reply_error(reply, WIRE_NOT_OPEN, "a checkpoint needs an open session", NULL);
  if (!session->any_frame)
    return reply_error(reply, WIRE_UNSUPPORTED, "there is nothing to keep before the first frame",
                       NULL);
  session_want_checkpoint(session);
  return false;
}

void session_want_checkpoint(struct session *session) {
  session->checkpoint_wanted = session->any_frame;
}

bool session_checkpoint_due(const struct session *session) {
  return session->checkpoint_wanted && !session->awaited;
}

void session_checkpoint(struct session *session, const struct session_services *services,
                        struct message *reply) {
  session->checkpoint_wanted = false;
  reply->type = MESSAGE_CHECKPOINT;
  enum wire_error code = checkpoint_make(session, services, &reply->checkpoint);
  if (code != WIRE_OK)
    reply_checkpoint_error(reply, code);
}

// Messages ---------------------------------------------------------------------------------------

bool session_text(struct session *session, const struct session_services *services, void *owner,
                  const char *text, size_t size, struct message *reply) {
  char why[256];
  struct message message;
  enum wire_error code = message_read(text, size, &message, why, sizeof why);
  if (code != WIRE_OK)
    return reply_error(reply, code, why, NULL);
  if (message.type == MESSAGE_OPEN)
    return open_session(session, services, owner, &message.open, reply);
  if (message.type == MESSAGE_CHECKPOINT && !message.checkpoint.token[0])
    return request_checkpoint(session, reply);
  return reply_error(reply, WIRE_BAD_TYPE, "only servers send this type", NULL);
}

static bool next_is_checkpoint(const struct session *session) {
  return session->checkpoint_every && session->since_checkpoint + 1 >= session->checkpoint_every;
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
  bool checkpoint = next_is_checkpoint(session);
  const struct track_frame frame = {.pose = pose.pose,
                                    .trans = pose.trans,
                                    .betas = session->betas,
                                    .seq = pose.header.seq,
                                    .timestamp = pose.header.timestamp,
                                    .flags = checkpoint ? TRACK_CHECKPOINT : 0};
  switch (track_push(session->track, &frame)) {
  case TRACK_PUSHED:
    session->any_frame = true;
    session->last_seq = pose.header.seq;
    session->awaited++;
    session->since_checkpoint = checkpoint ? 0 : session->since_checkpoint + 1;
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

// Writes the frame's headers before the payload and fills result->outgoing but for its release.
static void seal_frame(struct result *result) {
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

bool session_take(struct session *session, const struct session_services *services,
                  struct result *result, struct message *reply) {
  session->awaited--;
  seal_frame(result);
  if (!result->state)
    return false;
  reply->type = MESSAGE_CHECKPOINT;
  enum wire_error code = checkpoint_of_result(session, services, result, &reply->checkpoint);
  if (code != WIRE_OK)
    reply_checkpoint_error(reply, code);
  return true;
}

void session_close(struct session *session) {
  if (session->track)
    track_close(session->track);
  session->track = NULL;
}
