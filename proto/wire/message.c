// SPDX-License-Identifier: Apache-2.0
// The JSON codec. A reader fetches members through the member_ functions, each of which checks type
// and range and records the first failure; so a message's reader is a plain list of its members.
#include "wire/message.h"

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
                                         {"checkpoint", MESSAGE_CHECKPOINT},
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

static double member_fps(struct reader *reader, enum presence presence, double fallback) {
  const json_t *value = member(reader, "fps", presence);
  if (!value)
    return fallback;
  if (number_within(value, MESSAGE_FPS_MIN, MESSAGE_FPS_MAX))
    return json_number_value(value);
  reader_fail(reader, WIRE_BAD_MEMBER, "fps: must be a number of %g to %g", MESSAGE_FPS_MIN,
              MESSAGE_FPS_MAX);
  return fallback;
}

static void member_betas(struct reader *reader, float betas[MESSAGE_BETAS_KEPT]) {
  const json_t *value = member(reader, "betas", OPTIONAL);
  if (!value)
    return;
  size_t count = json_array_size(value);
  if (!json_is_array(value) || count > MESSAGE_BETAS_MAX) {
    reader_fail(reader, WIRE_BAD_MEMBER, "betas: must be an array of at most %d numbers",
                MESSAGE_BETAS_MAX);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    const json_t *beta = json_array_get(value, i);
    if (!number_within(beta, -MESSAGE_BETA_LIMIT, MESSAGE_BETA_LIMIT)) {
      reader_fail(reader, WIRE_BAD_MEMBER, "betas[%zu]: must be a number of %g to %g", i,
                  -MESSAGE_BETA_LIMIT, MESSAGE_BETA_LIMIT);
      return;
    }
    if (i < MESSAGE_BETAS_KEPT)
      betas[i] = (float)json_number_value(beta);
  }
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
  member_betas(reader, open->betas);
  open->fps = member_fps(reader, OPTIONAL, open->fps);
  open->up = (enum message_up)member_name(reader, "up", OPTIONAL, up_names, MESSAGE_UP_Z);
  open->output =
      (enum frame_kind)member_name(reader, "output", OPTIONAL, output_names, FRAME_DISPLACEMENT);
  open->encoding =
      (enum frame_encoding)member_name(reader, "encoding", OPTIONAL, encoding_names, FRAME_F32);
  open->delivery = (enum message_delivery)member_name(reader, "delivery", OPTIONAL, delivery_names,
                                                      MESSAGE_DELIVERY_ALL);
  open->checkpoint_every = member_u32(reader, "checkpoint_every", OPTIONAL, 0, UINT32_MAX, 0);
  member_text(reader, "resume", OPTIONAL, is_printable_ascii, open->resume, sizeof open->resume);
}

static void read_opened(struct reader *reader, struct message_opened *opened) {
  memset(opened, 0, sizeof *opened);
  member_text(reader, "session", REQUIRED, is_name_text, opened->session, sizeof opened->session);
  member_text(reader, "model", REQUIRED, is_name_text, opened->model, sizeof opened->model);
  opened->vertices = member_u32(reader, "vertices", REQUIRED, 1, MESSAGE_VERTICES_LIMIT, 0);
  opened->latents = member_u32(reader, "latents", REQUIRED, 1, MESSAGE_LATENTS_LIMIT, 0);
  opened->fps = member_fps(reader, REQUIRED, 0);
  opened->next_seq = member_u32(reader, "next_seq", REQUIRED, 0, UINT32_MAX, 0);
  const json_t *trained = member(reader, "trained", REQUIRED);
  if (trained && !json_is_boolean(trained))
    reader_fail(reader, WIRE_BAD_MEMBER, "trained: must be true or false");
  opened->trained = json_is_true(trained);
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

static json_t *betas_array(const float betas[MESSAGE_BETAS_KEPT]) {
  json_t *array = json_array();
  for (size_t i = 0; i < MESSAGE_BETAS_KEPT; i++)
    if (json_array_append_new(array, json_real(betas[i])) != 0) { // NULL for NaN and infinities
      json_decref(array);
      return NULL;
    }
  return array;
}

static bool put_open(json_t *object, const struct message_open *open) {
  return put_text(object, "model", open->model) && put(object, "betas", betas_array(open->betas)) &&
         put(object, "fps", json_real(open->fps)) && put_name(object, "up", up_names, open->up) &&
         put_name(object, "output", output_names, open->output) &&
         put_name(object, "encoding", encoding_names, open->encoding) &&
         put_name(object, "delivery", delivery_names, open->delivery) &&
         put(object, "checkpoint_every", json_integer(open->checkpoint_every)) &&
         (!open->resume[0] || put_text(object, "resume", open->resume));
}

static bool put_opened(json_t *object, const struct message_opened *opened) {
  return put_text(object, "session", opened->session) && put_text(object, "model", opened->model) &&
         put(object, "vertices", json_integer(opened->vertices)) &&
         put(object, "latents", json_integer(opened->latents)) &&
         put(object, "fps", json_real(opened->fps)) &&
         put(object, "next_seq", json_integer(opened->next_seq)) &&
         put(object, "trained", json_boolean(opened->trained));
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
