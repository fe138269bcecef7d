// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "checkpoint.h"
#include "motion/retimer.h"
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

// What this server does not offer. Returns a text for people, or NULL.
static const char *unsupported(const struct message_open *open,
                               const struct session_services *services) {
  // One result being written, one that waits, one being computed: fewer, and a slow reader stops
  // its poses from being read after all.
  if (open->delivery == MESSAGE_DELIVERY_LATEST && services->frames_in_flight < 3)
    return "delivery: latest needs a server with --frames-in-flight of at least 3";
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
  opened->fps = session->fps;
  opened->delay = retimer_delay(session->fps, net->rate);
  opened->next_seq = session->any_frame ? session->last_seq + 1 : 0;
  opened->trained = net->trained;
  return true;
}

static const enum net_output_kind track_outputs[] = {[FRAME_DISPLACEMENT] = NET_DISPLACEMENT,
                                                     [FRAME_VERTICES] = NET_VERTICES,
                                                     [FRAME_LATENT] = NET_LATENT};
static const enum net_output_encoding track_encodings[] = {
    [FRAME_F32] = NET_AS_F32, [FRAME_F16] = NET_AS_F16, [FRAME_I16] = NET_AS_I16};

// Gives the session its track, at the start of a sequence or where a token says. True when it was
// refused.
static bool start_track(struct session *session, const struct session_services *services,
                        void *owner, const struct message_open *open, struct message *reply) {
  const struct track_settings settings = {.net = (size_t)session->model,
                                          .output = track_outputs[open->output],
                                          .encoding = track_encodings[open->encoding],
                                          .fps = open->fps,
                                          .hold_glitches = open->glitch == MESSAGE_GLITCH_HOLD,
                                          .y_up = session->y_up,
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
  const char *lacking = unsupported(open, services);
  if (lacking)
    return reply_error(reply, WIRE_UNSUPPORTED, lacking, NULL);
  struct session opened = {
      .model = model,
      .y_up = open->up == MESSAGE_UP_Y,
      .fps = open->fps,
      .output = open->output,
      .encoding = open->encoding,
      .json = open->format == MESSAGE_FORMAT_JSON,
      .latest = open->delivery == MESSAGE_DELIVERY_LATEST,
      .keepalive = open->keepalive,
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

// Statistics -------------------------------------------------------------------------------------

static void count_result(struct session *session, const struct session_services *services,
                         uint64_t now, const struct result *result) {
  struct session_counts *counts = &session->counts;
  struct metrics *metrics = services->metrics;
  double latency = (double)(now - result->received) * 1e-9;
  bool late = latency * session->fps > 1;
  session->latencies[session->measured++ % SESSION_LATENCIES] = (float)(latency * 1000);
  counts->frames_out++;
  counts->held += result->held > 0;
  counts->gaps += result->gap;
  metrics->frames_out++;
  metrics->held += result->held > 0;
  metrics->gaps += result->gap;
  metrics->late += late;
  metrics_add_latency(metrics, latency);
  load_add(services->load, late);
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static bool reply_stats(const struct session *session, struct message *reply) {
  const struct session_counts *counts = &session->counts;
  float sorted[SESSION_LATENCIES];
  size_t count = session->measured < SESSION_LATENCIES ? session->measured : SESSION_LATENCIES;
  if (!session->track)
    return reply_error(reply, WIRE_NOT_OPEN, "statistics need an open session", NULL);
  memcpy(sorted, session->latencies, sizeof sorted);
  qsort(sorted, count, sizeof *sorted, by_value);
  reply->type = MESSAGE_STATS;
  reply->stats = (struct message_stats){
      .has_values = 1,
      .frames_in = counts->frames_in,
      .frames_out = counts->frames_out - counts->skipped,
      .skipped = counts->skipped,
      .held = counts->held,
      .gaps = counts->gaps,
      .latency_p50_ms = count ? (double)sorted[count / 2] : 0,
      .latency_p99_ms = count ? (double)sorted[count - 1 - count / 100] : 0,
  };
  return true;
}

// Frames -----------------------------------------------------------------------------------------

static bool next_is_checkpoint(const struct session *session) {
  return session->checkpoint_every && session->since_checkpoint + 1 >= session->checkpoint_every;
}

// A pose that is well-formed.
static bool take_pose(struct session *session, const struct session_services *services,
                      uint64_t now, struct frame_pose *pose, struct message *reply) {
  const uint32_t *seq = &pose->header.seq;
  if (!session->track)
    return reply_error(reply, WIRE_NOT_OPEN, NULL, seq);
  if (session->any_frame && *seq <= session->last_seq)
    return reply_error(reply, WIRE_BAD_SEQ, NULL, seq);
  if (session->y_up)
    orient_y_up_to_z_up(pose->pose, pose->trans);
  bool checkpoint = next_is_checkpoint(session);
  const struct track_frame frame = {.pose = pose->pose,
                                    .trans = pose->trans,
                                    .betas = session->betas,
                                    .seq = *seq,
                                    .timestamp = pose->header.timestamp,
                                    .received = now,
                                    .flags = (session->reset ? TRACK_RESET : 0) |
                                             (checkpoint ? TRACK_CHECKPOINT : 0)};
  // The connection does not read on without room, so a full track is not seen here.
  if (track_push(session->track, &frame) != TRACK_PUSHED)
    return reply_error(reply, WIRE_OVERLOADED, "out of memory for this frame", seq);
  session->any_frame = true;
  session->last_seq = *seq;
  session->reset = false;
  session->awaited++;
  session->counts.frames_in++;
  services->metrics->frames_in++;
  session->since_checkpoint = checkpoint ? 0 : session->since_checkpoint + 1;
  return false;
}

bool session_frame(struct session *session, const struct session_services *services, uint64_t now,
                   const uint8_t *bytes, size_t size, struct message *reply) {
  struct frame_pose pose;
  enum wire_error code = frame_pose_read(bytes, size, &pose);
  const uint32_t *seq = size >= FRAME_HEADER_SIZE ? &pose.header.seq : NULL;
  if (!session->track)
    code = WIRE_NOT_OPEN;
  if (code != WIRE_OK)
    return reply_error(reply, code, NULL, seq);
  return take_pose(session, services, now, &pose, reply);
}

// Messages ---------------------------------------------------------------------------------------

static bool change_shape(struct session *session, const struct message_shape *shape,
                         struct message *reply) {
  if (!session->track)
    return reply_error(reply, WIRE_NOT_OPEN, "a shape needs an open session", NULL);
  memcpy(session->betas, shape->betas, sizeof session->betas);
  return false;
}

static bool start_anew(struct session *session, struct message *reply) {
  if (!session->track)
    return reply_error(reply, WIRE_NOT_OPEN, "a reset needs an open session", NULL);
  session->reset = true;
  return false;
}

static bool reply_pong(const struct message_ping *ping, struct message *reply) {
  reply->type = MESSAGE_PONG;
  reply->ping = *ping;
  return true;
}

bool session_text(struct session *session, const struct session_services *services, void *owner,
                  uint64_t now, const char *text, size_t size, struct message *reply) {
  char why[256];
  struct message message;
  enum wire_error code = message_read(text, size, &message, why, sizeof why);
  if (code != WIRE_OK)
    return reply_error(reply, code, why, NULL);
  switch (message.type) {
  case MESSAGE_OPEN:
    return open_session(session, services, owner, &message.open, reply);
  case MESSAGE_SHAPE:
    return change_shape(session, &message.shape, reply);
  case MESSAGE_RESET:
    return start_anew(session, reply);
  case MESSAGE_POSE:
    return take_pose(session, services, now, &message.pose.frame, reply);
  case MESSAGE_PING:
    return reply_pong(&message.ping, reply);
  case MESSAGE_STATS:
    if (!message.stats.has_values)
      return reply_stats(session, reply);
    break;
  case MESSAGE_CHECKPOINT:
    if (!message.checkpoint.token[0])
      return request_checkpoint(session, reply);
    break;
  case MESSAGE_OPENED:
  case MESSAGE_PONG:
  case MESSAGE_KEEPALIVE:
  case MESSAGE_ERROR:
    break;
  }
  return reply_error(reply, WIRE_BAD_TYPE, "only servers send this type", NULL);
}

size_t session_in_flight(const struct session *session) {
  return session->track ? track_in_flight(session->track) : 0;
}

// The headers before the payload: the message is one run of bytes.
static void seal_frame(const struct frame_header *header, struct result *result) {
  uint8_t *frame = result->payload - FRAME_HEADER_SIZE;
  frame_header_write(header, frame);
  size_t size = FRAME_HEADER_SIZE + result->payload_size;
  size_t length = websocket_binary_header(frame, size);
  result->outgoing.bytes = frame - length;
  result->outgoing.size = length + size;
}

static bool seal_text(const struct frame_header *header, struct result *result) {
  uint8_t *text = malloc(WEBSOCKET_HEADER_MAX + result_text_size(result->payload_size));
  if (!text)
    return false;
  uint8_t *begin = text + WEBSOCKET_HEADER_MAX;
  size_t size = result_text_write(header, result->payload, result->payload_size, (char *)begin);
  size_t length = websocket_text_header(begin, size);
  result->text = text;
  result->outgoing.bytes = begin - length;
  result->outgoing.size = length + size;
  return true;
}

enum session_take session_take(struct session *session, const struct session_services *services,
                               uint64_t now, struct result *result, struct message *reply) {
  const struct frame_header header = {.kind = (uint8_t)session->output,
                                      .encoding = (uint8_t)session->encoding,
                                      .seq = result->seq,
                                      .timestamp = result->timestamp};
  session->awaited--;
  count_result(session, services, now, result);
  if (!session->json)
    seal_frame(&header, result);
  else if (!seal_text(&header, result))
    return SESSION_NOMEM;
  if (!result->state)
    return SESSION_TAKEN;
  reply->type = MESSAGE_CHECKPOINT;
  enum wire_error code = checkpoint_of_result(session, services, result, &reply->checkpoint);
  if (code != WIRE_OK)
    reply_checkpoint_error(reply, code);
  return SESSION_TAKEN_AND_REPLY;
}

void session_close(struct session *session) {
  if (session->track)
    track_close(session->track);
  session->track = NULL;
}
