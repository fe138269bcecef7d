// SPDX-License-Identifier: Apache-2.0
// The JSON codec. A reader fetches members through the member_ functions, each of which checks type
// and range and records the first failure; so a message's reader is a plain list of its members.
#include "wire/message.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "wire/text.h"

struct name {
  const char *text;
  int value;
};

static const struct name type_names[] = {{"open", MESSAGE_OPEN},
                                         {"opened", MESSAGE_OPENED},
                                         {"shape", MESSAGE_SHAPE},
                                         {"reset", MESSAGE_RESET},
                                         {"pose", MESSAGE_POSE},
                                         {"ping", MESSAGE_PING},
                                         {"pong", MESSAGE_PONG},
                                         {"stats", MESSAGE_STATS},
                                         {"checkpoint", MESSAGE_CHECKPOINT},
                                         {"keepalive", MESSAGE_KEEPALIVE},
                                         {"error", MESSAGE_ERROR},
                                         {NULL, 0}};
static const struct name up_names[] = {{"z", MESSAGE_UP_Z}, {"y", MESSAGE_UP_Y}, {NULL, 0}};
static const struct name output_names[] = {{"displacement", FRAME_DISPLACEMENT},
                                           {"vertices", FRAME_VERTICES},
                                           {"latent", FRAME_LATENT},
                                           {NULL, 0}};
static const struct name encoding_names[] = {
    {"f32", FRAME_F32}, {"f16", FRAME_F16}, {"i16", FRAME_I16}, {NULL, 0}};
static const struct name delivery_names[] = {
    {"all", MESSAGE_DELIVERY_ALL}, {"latest", MESSAGE_DELIVERY_LATEST}, {NULL, 0}};

static const struct name format_names[] = {
    {"binary", MESSAGE_FORMAT_BINARY}, {"json", MESSAGE_FORMAT_JSON}, {NULL, 0}};
static const struct name glitch_names[] = {
    {"pass", MESSAGE_GLITCH_PASS}, {"hold", MESSAGE_GLITCH_HOLD}, {NULL, 0}};

static const struct name *name_of_text(const struct name *names, const char *text) {
  while (names->text && strcmp(names->text, text) != 0)
    names++;
  return names->text ? names : NULL;
}

static const char *text_of_name(const struct name *names, int value) {
  while (names->text && names->value != value)
    names++;
  return names->text;
}

const char *message_output_name(enum frame_kind output) {
  return text_of_name(output_names, output);
}

const char *message_encoding_name(enum frame_encoding encoding) {
  return text_of_name(encoding_names, (int)encoding);
}

const char *message_delivery_name(enum message_delivery delivery) {
  return text_of_name(delivery_names, (int)delivery);
}

const char *message_glitch_name(enum message_glitch glitch) {
  return text_of_name(glitch_names, (int)glitch);
}

// One message being read. After a failure every further member_ call does nothing.
struct reader {
  const json_t *object;
  enum wire_error error;
  char *why;
  size_t why_size;
};

__attribute__((format(printf, 3, 4))) static void
reader_fail(struct reader *reader, enum wire_error error, const char *format, ...) {
  if (reader->error != WIRE_OK)
    return;
  reader->error = error;
  if (!reader->why || reader->why_size == 0)
    return;
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text_copy_line(reader->why, reader->why_size, line);
}

enum presence { OPTIONAL, REQUIRED };

// The member's value, or NULL when there is nothing to read: it is absent (an error if required) or
// reading has failed before.
static const json_t *member(struct reader *reader, const char *key, enum presence presence) {
  if (reader->error != WIRE_OK)
    return NULL;
  const json_t *value = json_object_get(reader->object, key);
  if (!value && presence == REQUIRED)
    reader_fail(reader, WIRE_BAD_MEMBER, "%s: is missing", key);
  return value;
}

static bool is_name_text(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f)
      return false;
  return true;
}

static bool is_printable_ascii(const char *text) {
  for (; *text; text++)
    if (*text < 0x21 || *text > 0x7e)
      return false;
  return true;
}

static const char *member_string(struct reader *reader, const char *key, enum presence presence) {
  const json_t *value = member(reader, key, presence);
  if (value && !json_is_string(value))
    reader_fail(reader, WIRE_BAD_MEMBER, "%s: must be a string", key);
  return value ? json_string_value(value) : NULL;
}

// A string of 1 to size - 1 bytes that `valid` accepts.
static void member_text(struct reader *reader, const char *key, enum presence presence,
                        bool (*valid)(const char *), char *out, size_t size) {
  const char *text = member_string(reader, key, presence);
  if (!text)
    return;
  size_t length = strlen(text);
  if (length == 0 || length >= size)
    reader_fail(reader, WIRE_BAD_MEMBER, "%s: must have 1 to %zu bytes", key, size - 1);
  else if (!valid(text))
    reader_fail(reader, WIRE_BAD_MEMBER, "%s: has a character that is not allowed", key);
  else
    memcpy(out, text, length + 1);
}

static int member_name(struct reader *reader, const char *key, enum presence presence,
                       const struct name *names, int fallback) {
  const char *text = member_string(reader, key, presence);
  if (!text)
    return fallback;
  const struct name *name = name_of_text(names, text);
  if (name)
    return name->value;
  reader_fail(reader, WIRE_BAD_MEMBER, "%s: \"%.40s\" is none of its values", key, text);
  return fallback;
}

static uint32_t member_u32(struct reader *reader, const char *key, enum presence presence,
                           uint32_t min, uint32_t max, uint32_t fallback) {
  const json_t *value = member(reader, key, presence);
  if (!value)
    return fallback;
  json_int_t number = json_integer_value(value);
  if (json_is_integer(value) && number >= min && number <= max)
    return (uint32_t)number;
  reader_fail(reader, WIRE_BAD_MEMBER, "%s: must be a whole number of %u to %u", key, min, max);
  return fallback;
}

static bool number_within(const json_t *value, double min, double max) {
  double number = json_number_value(value);
  return json_is_number(value) && isfinite(number) && number >= min && number <= max;
}

static double member_number(struct reader *reader, const char *key, enum presence presence,
                            double min, double max, double fallback) {
  const json_t *value = member(reader, key, presence);
  if (!value)
    return fallback;
  if (number_within(value, min, max))
    return json_number_value(value);
  reader_fail(reader, WIRE_BAD_MEMBER, "%s: must be a number of %g to %g", key, min, max);
  return fallback;
}

// An array of min_count to max_count numbers within +-limit, of which the first `kept` are kept.
// Returns how many it has.
static size_t member_floats(struct reader *reader, const char *key, enum presence presence,
                            size_t min_count, size_t max_count, double limit, float *out,
                            size_t kept) {
  const json_t *value = member(reader, key, presence);
  if (!value)
    return 0;
  size_t count = json_array_size(value);
  if (!json_is_array(value) || count < min_count || count > max_count) {
    reader_fail(reader, WIRE_BAD_MEMBER, "%s: must be an array of %zu to %zu numbers", key,
                min_count, max_count);
    return 0;
  }
  for (size_t i = 0; i < count; i++) {
    const json_t *number = json_array_get(value, i);
    if (!number_within(number, -limit, limit)) {
      reader_fail(reader, WIRE_BAD_MEMBER, "%s[%zu]: must be a number of %g to %g", key, i, -limit,
                  limit);
      return 0;
    }
    if (i < kept)
      out[i] = (float)json_number_value(number);
  }
  return count;
}

static void member_betas(struct reader *reader, enum presence presence,
                         float betas[MESSAGE_BETAS_KEPT]) {
  member_floats(reader, "betas", presence, 0, MESSAGE_BETAS_MAX, MESSAGE_BETA_LIMIT, betas,
                MESSAGE_BETAS_KEPT);
}

void message_open_init(struct message_open *open) {
  memset(open, 0, sizeof *open);
  strcpy(open->model, "default");
  open->fps = 60;
  open->up = MESSAGE_UP_Z;
  open->output = FRAME_DISPLACEMENT;
  open->encoding = FRAME_F32;
  open->delivery = MESSAGE_DELIVERY_ALL;
}

static void read_open(struct reader *reader, struct message_open *open) {
  message_open_init(open);
  member_text(reader, "model", OPTIONAL, is_name_text, open->model, sizeof open->model);
  member_betas(reader, OPTIONAL, open->betas);
  open->fps = member_number(reader, "fps", OPTIONAL, MESSAGE_FPS_MIN, MESSAGE_FPS_MAX, open->fps);
  open->up = (enum message_up)member_name(reader, "up", OPTIONAL, up_names, MESSAGE_UP_Z);
  open->output =
      (enum frame_kind)member_name(reader, "output", OPTIONAL, output_names, FRAME_DISPLACEMENT);
  open->encoding =
      (enum frame_encoding)member_name(reader, "encoding", OPTIONAL, encoding_names, FRAME_F32);
  open->delivery = (enum message_delivery)member_name(reader, "delivery", OPTIONAL, delivery_names,
                                                      MESSAGE_DELIVERY_ALL);
  open->format = (enum message_format)member_name(reader, "format", OPTIONAL, format_names,
                                                  MESSAGE_FORMAT_BINARY);
  open->glitch = (enum message_glitch)member_name(reader, "glitch", OPTIONAL, glitch_names,
                                                  MESSAGE_GLITCH_PASS);
  open->keepalive = member_number(reader, "keepalive", OPTIONAL, 0, MESSAGE_KEEPALIVE_MAX, 0);
  open->checkpoint_every = member_u32(reader, "checkpoint_every", OPTIONAL, 0, UINT32_MAX, 0);
  member_text(reader, "resume", OPTIONAL, is_printable_ascii, open->resume, sizeof open->resume);
}

static void read_opened(struct reader *reader, struct message_opened *opened) {
  memset(opened, 0, sizeof *opened);
  member_text(reader, "session", REQUIRED, is_name_text, opened->session, sizeof opened->session);
  member_text(reader, "model", REQUIRED, is_name_text, opened->model, sizeof opened->model);
  opened->vertices = member_u32(reader, "vertices", REQUIRED, 1, MESSAGE_VERTICES_LIMIT, 0);
  opened->latents = member_u32(reader, "latents", REQUIRED, 1, MESSAGE_LATENTS_LIMIT, 0);
  opened->fps = member_number(reader, "fps", REQUIRED, MESSAGE_FPS_MIN, MESSAGE_FPS_MAX, 0);
  opened->next_seq = member_u32(reader, "next_seq", REQUIRED, 0, UINT32_MAX, 0);
  const json_t *trained = member(reader, "trained", REQUIRED);
  if (trained && !json_is_boolean(trained))
    reader_fail(reader, WIRE_BAD_MEMBER, "trained: must be true or false");
  opened->trained = json_is_true(trained);
  opened->delay = member_number(reader, "delay", OPTIONAL, 0, 1, 0);
}

static uint64_t member_count(struct reader *reader, const char *key) {
  const json_t *value = member(reader, key, REQUIRED);
  if (!value)
    return 0;
  if (json_is_integer(value) && json_integer_value(value) >= 0)
    return (uint64_t)json_integer_value(value);
  reader_fail(reader, WIRE_BAD_MEMBER, "%s: must be a whole number from 0 up", key);
  return 0;
}

static void read_shape(struct reader *reader, struct message_shape *shape) {
  memset(shape, 0, sizeof *shape);
  member_betas(reader, REQUIRED, shape->betas);
}

// Written as a binary frame and read as one, so that it is refused for the same reasons.
static void read_pose(struct reader *reader, struct message_pose *message) {
  enum { JOINT_FLOATS_MAX = FRAME_JOINTS_MAX * 3 };
  float values[JOINT_FLOATS_MAX + 3], trans[3] = {0, 0, 0};
  uint8_t bytes[FRAME_POSE_SIZE_MAX];
  struct frame_header header = {.kind = FRAME_POSE, .encoding = FRAME_F32};
  header.seq = member_u32(reader, "seq", REQUIRED, 0, UINT32_MAX, 0);
  header.timestamp = member_number(reader, "timestamp", OPTIONAL, -DBL_MAX, DBL_MAX, 0);
  size_t count = member_floats(reader, "pose", REQUIRED, FRAME_JOINTS_MIN * 3, JOINT_FLOATS_MAX,
                               FLT_MAX, values, JOINT_FLOATS_MAX);
  member_floats(reader, "trans", REQUIRED, 3, 3, FLT_MAX, trans, 3);
  if (count % 3)
    reader_fail(reader, WIRE_BAD_MEMBER, "pose: must have three numbers for each joint");
  if (reader->error != WIRE_OK)
    return;
  memcpy(values + count, trans, sizeof trans);
  header.count = (uint16_t)(count / 3);
  size_t size = frame_pose_bytes(&header, values, bytes);
  enum wire_error error = frame_pose_read(bytes, size, &message->frame);
  if (error != WIRE_OK)
    reader_fail(reader, error, "%s", wire_error_text(error));
}

static void read_ping(struct reader *reader, struct message_ping *ping) {
  memset(ping, 0, sizeof *ping);
  const json_t *id = member(reader, "id", OPTIONAL);
  if (!id)
    return;
  if (json_is_integer(id)) {
    ping->kind = MESSAGE_ID_NUMBER;
    ping->number = json_integer_value(id);
  } else if (json_is_string(id)) {
    ping->kind = MESSAGE_ID_TEXT;
    member_text(reader, "id", REQUIRED, is_name_text, ping->text, sizeof ping->text);
  } else {
    reader_fail(reader, WIRE_BAD_MEMBER, "id: must be a whole number or a string");
  }
}

static void read_stats(struct reader *reader, struct message_stats *stats) {
  memset(stats, 0, sizeof *stats);
  stats->has_values = member(reader, "frames_in", OPTIONAL) != NULL;
  if (!stats->has_values)
    return;
  stats->frames_in = member_count(reader, "frames_in");
  stats->frames_out = member_count(reader, "frames_out");
  stats->skipped = member_count(reader, "skipped");
  stats->held = member_count(reader, "held");
  stats->gaps = member_count(reader, "gaps");
  stats->latency_p50_ms = member_number(reader, "latency_p50_ms", REQUIRED, 0, DBL_MAX, 0);
  stats->latency_p99_ms = member_number(reader, "latency_p99_ms", REQUIRED, 0, DBL_MAX, 0);
}

static void read_checkpoint(struct reader *reader, struct message_checkpoint *checkpoint) {
  enum presence seq = member(reader, "token", OPTIONAL) ? REQUIRED : OPTIONAL;
  enum presence token = member(reader, "seq", OPTIONAL) ? REQUIRED : OPTIONAL;
  checkpoint->token[0] = 0;
  checkpoint->seq = member_u32(reader, "seq", seq, 0, UINT32_MAX, 0);
  member_text(reader, "token", token, is_printable_ascii, checkpoint->token,
              sizeof checkpoint->token);
}

static void read_error(struct reader *reader, struct message_error *error) {
  memset(error, 0, sizeof *error);
  error->has_seq = member(reader, "seq", OPTIONAL) != NULL;
  error->seq = member_u32(reader, "seq", OPTIONAL, 0, UINT32_MAX, 0);
  member_text(reader, "code", REQUIRED, is_printable_ascii, error->code, sizeof error->code);
  const char *text = member_string(reader, "message", REQUIRED);
  if (text)
    text_copy_line(error->text, sizeof error->text, text);
}

static void read_type(struct reader *reader, enum message_type *type) {
  const char *text = member_string(reader, "type", REQUIRED);
  if (!text)
    return;
  const struct name *name = name_of_text(type_names, text);
  if (name)
    *type = (enum message_type)name->value;
  else
    reader_fail(reader, WIRE_BAD_TYPE, "type: \"%.40s\" is unknown", text);
}

static void read_members(struct reader *reader, struct message *message) {
  read_type(reader, &message->type);
  if (reader->error != WIRE_OK)
    return;
  switch (message->type) {
  case MESSAGE_OPEN:
    read_open(reader, &message->open);
    break;
  case MESSAGE_OPENED:
    read_opened(reader, &message->opened);
    break;
  case MESSAGE_SHAPE:
    read_shape(reader, &message->shape);
    break;
  case MESSAGE_POSE:
    read_pose(reader, &message->pose);
    break;
  case MESSAGE_PING:
  case MESSAGE_PONG:
    read_ping(reader, &message->ping);
    break;
  case MESSAGE_STATS:
    read_stats(reader, &message->stats);
    break;
  case MESSAGE_RESET:
  case MESSAGE_KEEPALIVE:
    break;
  case MESSAGE_CHECKPOINT:
    read_checkpoint(reader, &message->checkpoint);
    break;
  case MESSAGE_ERROR:
    read_error(reader, &message->error);
    break;
  }
}

// Two of Jansson's refusals concern one member's value rather than the text's form.
static enum wire_error code_of_json_error(const json_error_t *error) {
  switch (json_error_code(error)) {
  case json_error_duplicate_key:
  case json_error_numeric_overflow:
    return WIRE_BAD_MEMBER;
  case json_error_out_of_memory:
    return WIRE_INTERNAL;
  default:
    return WIRE_BAD_JSON;
  }
}

enum wire_error message_read(const char *text, size_t size, struct message *message, char *why,
                             size_t why_size) {
  struct reader reader = {.error = WIRE_OK, .why = why, .why_size = why_size};
  if (why && why_size)
    why[0] = 0;
  if (size > MESSAGE_SIZE_MAX) {
    reader_fail(&reader, WIRE_BAD_SIZE, "the message has %zu bytes, at most %d are read", size,
                MESSAGE_SIZE_MAX);
    return reader.error;
  }
  json_error_t json_error;
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &json_error);
  if (!root) {
    reader_fail(&reader, code_of_json_error(&json_error), "%s", json_error.text);
    return reader.error;
  }
  reader.object = root;
  if (json_is_object(root))
    read_members(&reader, message);
  else
    reader_fail(&reader, WIRE_BAD_JSON, "the message is not a JSON object");
  json_decref(root);
  return reader.error;
}

// Members are added in the order of the protocol's document; Jansson keeps it. Each set takes its
// value and fails on NULL, so an allocation that failed is found at the set.
static bool put(json_t *object, const char *key, json_t *value) {
  return json_object_set_new(object, key, value) == 0;
}

static bool put_text(json_t *object, const char *key, const char *text) {
  return put(object, key, json_string(text));
}

static bool put_name(json_t *object, const char *key, const struct name *names, int value) {
  const char *text = text_of_name(names, value);
  return text && put_text(object, key, text);
}

static json_t *floats_array(const float *values, size_t count) {
  json_t *array = json_array();
  for (size_t i = 0; i < count; i++)
    if (json_array_append_new(array, json_real(values[i])) != 0) { // NULL for NaN and infinities
      json_decref(array);
      return NULL;
    }
  return array;
}

static bool put_open(json_t *object, const struct message_open *open) {
  return put_text(object, "model", open->model) &&
         put(object, "betas", floats_array(open->betas, MESSAGE_BETAS_KEPT)) &&
         put(object, "fps", json_real(open->fps)) && put_name(object, "up", up_names, open->up) &&
         put_name(object, "output", output_names, open->output) &&
         put_name(object, "encoding", encoding_names, open->encoding) &&
         put_name(object, "delivery", delivery_names, open->delivery) &&
         put_name(object, "format", format_names, open->format) &&
         put_name(object, "glitch", glitch_names, open->glitch) &&
         put(object, "keepalive", json_real(open->keepalive)) &&
         put(object, "checkpoint_every", json_integer(open->checkpoint_every)) &&
         (!open->resume[0] || put_text(object, "resume", open->resume));
}

static bool put_opened(json_t *object, const struct message_opened *opened) {
  return put_text(object, "session", opened->session) && put_text(object, "model", opened->model) &&
         put(object, "vertices", json_integer(opened->vertices)) &&
         put(object, "latents", json_integer(opened->latents)) &&
         put(object, "fps", json_real(opened->fps)) &&
         put(object, "next_seq", json_integer(opened->next_seq)) &&
         put(object, "trained", json_boolean(opened->trained)) &&
         put(object, "delay", json_real(opened->delay));
}

static bool put_pose(json_t *object, const struct frame_pose *frame) {
  return put(object, "seq", json_integer(frame->header.seq)) &&
         put(object, "timestamp", json_real(frame->header.timestamp)) &&
         put(object, "pose", floats_array(frame->pose, FRAME_POSE_JOINTS * 3)) &&
         put(object, "trans", floats_array(frame->trans, 3));
}

static bool put_ping(json_t *object, const struct message_ping *ping) {
  switch (ping->kind) {
  case MESSAGE_ID_NONE:
    return true;
  case MESSAGE_ID_NUMBER:
    return put(object, "id", json_integer(ping->number));
  case MESSAGE_ID_TEXT:
    return put_text(object, "id", ping->text);
  }
  return false;
}

static bool put_stats(json_t *object, const struct message_stats *stats) {
  if (!stats->has_values)
    return true;
  return put(object, "frames_in", json_integer((json_int_t)stats->frames_in)) &&
         put(object, "frames_out", json_integer((json_int_t)stats->frames_out)) &&
         put(object, "skipped", json_integer((json_int_t)stats->skipped)) &&
         put(object, "held", json_integer((json_int_t)stats->held)) &&
         put(object, "gaps", json_integer((json_int_t)stats->gaps)) &&
         put(object, "latency_p50_ms", json_real(stats->latency_p50_ms)) &&
         put(object, "latency_p99_ms", json_real(stats->latency_p99_ms));
}

static bool put_checkpoint(json_t *object, const struct message_checkpoint *checkpoint) {
  return !checkpoint->token[0] || (put(object, "seq", json_integer(checkpoint->seq)) &&
                                   put_text(object, "token", checkpoint->token));
}

static bool put_error(json_t *object, const struct message_error *error) {
  char text[sizeof error->text];
  text_copy_line(text, sizeof text, error->text);
  return (!error->has_seq || put(object, "seq", json_integer(error->seq))) &&
         put_text(object, "code", error->code) && put_text(object, "message", text);
}

static bool put_members(json_t *object, const struct message *message) {
  if (!put_name(object, "type", type_names, message->type))
    return false;
  switch (message->type) {
  case MESSAGE_OPEN:
    return put_open(object, &message->open);
  case MESSAGE_OPENED:
    return put_opened(object, &message->opened);
  case MESSAGE_SHAPE:
    return put(object, "betas", floats_array(message->shape.betas, MESSAGE_BETAS_KEPT));
  case MESSAGE_POSE:
    return put_pose(object, &message->pose.frame);
  case MESSAGE_PING:
  case MESSAGE_PONG:
    return put_ping(object, &message->ping);
  case MESSAGE_STATS:
    return put_stats(object, &message->stats);
  case MESSAGE_RESET:
  case MESSAGE_KEEPALIVE:
    return true;
  case MESSAGE_CHECKPOINT:
    return put_checkpoint(object, &message->checkpoint);
  case MESSAGE_ERROR:
    return put_error(object, &message->error);
  }
  return false;
}

size_t message_write(const struct message *message, char *out, size_t size) {
  json_t *object = json_object();
  size_t length = 0;
  if (object && put_members(object, message))
    length = json_dumpb(object, out, size, JSON_COMPACT);
  json_decref(object);
  if (length == 0 || length >= size) // json_dumpb tells the length even of what does not fit
    return 0;
  out[length] = 0;
  return length;
}

static size_t base64_write(const uint8_t *bytes, size_t size, char *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *at = out;
  for (size_t i = 0; i < size; i += 3) {
    size_t left = size - i;
    uint32_t group = (uint32_t)bytes[i] << 16 | (uint32_t)(left > 1 ? bytes[i + 1] : 0) << 8 |
                     (left > 2 ? bytes[i + 2] : 0);
    *at++ = digits[group >> 18];
    *at++ = digits[group >> 12 & 63];
    *at++ = left > 1 ? digits[group >> 6 & 63] : '=';
    *at++ = left > 2 ? digits[group & 63] : '=';
  }
  return (size_t)(at - out);
}

#define RESULT_TEXT_HEAD 192 // bytes at most of what comes before the data

size_t result_text_size(size_t payload_size) {
  return RESULT_TEXT_HEAD + (payload_size + 2) / 3 * 4 + 2;
}

size_t result_text_write(const struct frame_header *header, const uint8_t *payload,
                         size_t payload_size, char *out) {
  int length = snprintf(out, RESULT_TEXT_HEAD,
                        "{\"type\":\"result\",\"seq\":%" PRIu32 ",\"timestamp\":%.17g,"
                        "\"kind\":\"%s\",\"encoding\":\"%s\",\"data\":\"",
                        header->seq, header->timestamp, text_of_name(output_names, header->kind),
                        text_of_name(encoding_names, header->encoding));
  size_t at = (size_t)length;
  at += base64_write(payload, payload_size, out + at);
  memcpy(out + at, "\"}", 2);
  return at + 2;
}
