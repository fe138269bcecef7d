// SPDX-License-Identifier: Apache-2.0
#include "infer/request.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"
#include "wire/message.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "blobs are read as the machine's floats, which must be little-endian"
#endif

#define RANK_MAX 2

const char *const infer_output_names[INFER_OUTPUT_KINDS] = {
    [INFER_DISPLACEMENT] = "displacement", [INFER_LATENT] = "latent"};

enum input_kind { POSE, TRANS, BETAS, FPS, INPUT_KINDS };
static const char *const input_names[INPUT_KINDS] = {
    [POSE] = "pose", [TRANS] = "trans", [BETAS] = "betas", [FPS] = "fps"};

// An input as it is found.
struct tensor {
  bool present;
  size_t rank, shape[RANK_MAX], count;
  const json_t *data;
  const char *blob; // in place of data
};

struct reader {
  struct infer_request *request;
  struct tensor inputs[INPUT_KINDS];
  const char *blobs; // what is left of them
  size_t blobs_size;
  size_t max_frames;
  uint64_t big_sequence; // sequence_id when it is over 2^63 - 1; the document has `true` for it
  char *why;
};

static enum infer_read refuse(const struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum infer_read refuse(const struct reader *reader, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reader->why, INFER_TEXT_SIZE, format, arguments);
  va_end(arguments);
  return INFER_MALFORMED;
}

static enum infer_read no_memory(const struct reader *reader) {
  refuse(reader, "out of memory");
  return INFER_NOMEM;
}

// Inputs -----------------------------------------------------------------------------------------

static enum infer_read read_shape(const struct reader *reader, const char *name,
                                  const json_t *shape, struct tensor *tensor) {
  tensor->rank = json_array_size(shape);
  if (!json_is_array(shape) || tensor->rank < 1 || tensor->rank > RANK_MAX)
    return refuse(reader, "input %s: shape must be a list of 1 or 2 sizes", name);
  tensor->count = 1;
  for (size_t i = 0; i < tensor->rank; i++) {
    const json_t *size = json_array_get(shape, i);
    json_int_t value = json_integer_value(size);
    if (!json_is_integer(size) || value < 1 || value > INT32_MAX)
      return refuse(reader, "input %s: a size of its shape is not a whole number from 1 on", name);
    tensor->shape[i] = (size_t)value;
    tensor->count *= (size_t)value; // below 2^62
  }
  return INFER_READ;
}

static enum infer_read take_blob(struct reader *reader, const char *name, const json_t *size,
                                 struct tensor *tensor) {
  json_int_t bytes = json_integer_value(size);
  if (!json_is_integer(size) || bytes < 0)
    return refuse(reader, "input %s: binary_data_size is not a whole number", name);
  if (tensor->data)
    return refuse(reader, "input %s: there is both data and binary_data_size", name);
  if ((uint64_t)bytes != (uint64_t)tensor->count * sizeof(float))
    return refuse(reader,
                  "input %s: its shape has %zu numbers, %zu bytes, binary_data_size is %lld", name,
                  tensor->count, tensor->count * sizeof(float), (long long)bytes);
  if ((uint64_t)bytes > reader->blobs_size)
    return refuse(reader, "input %s: the body ends before its %lld bytes do", name,
                  (long long)bytes);
  tensor->blob = reader->blobs;
  reader->blobs += bytes;
  reader->blobs_size -= (size_t)bytes;
  return INFER_READ;
}

static enum infer_read read_input(struct reader *reader, const json_t *input) {
  const char *name = json_string_value(json_object_get(input, "name"));
  const char *type = json_string_value(json_object_get(input, "datatype"));
  const json_t *parameters = json_object_get(input, "parameters");
  int kind = 0;
  if (!name)
    return refuse(reader, "an input is not an object with a name");
  while (kind < INPUT_KINDS && strcmp(name, input_names[kind]) != 0)
    kind++;
  if (kind == INPUT_KINDS)
    return refuse(reader, "input %.40s: there are pose, trans, betas and fps", name);
  struct tensor *tensor = &reader->inputs[kind];
  if (tensor->present)
    return refuse(reader, "input %s is there twice", name);
  if (!type || strcmp(type, "FP32") != 0)
    return refuse(reader, "input %s: its datatype must be FP32", name);
  tensor->present = true;
  tensor->data = json_object_get(input, "data");
  enum infer_read outcome = read_shape(reader, name, json_object_get(input, "shape"), tensor);
  if (outcome != INFER_READ)
    return outcome;
  if (json_object_get(parameters, "shared_memory_region"))
    return refuse(reader, "input %s: there is no shared memory here", name);
  const json_t *blob = json_object_get(parameters, "binary_data_size");
  if (blob)
    return take_blob(reader, name, blob, tensor);
  if (!json_is_array(tensor->data))
    return refuse(reader, "input %s: there is neither data, a list, nor binary_data_size", name);
  return INFER_READ;
}

// Numbers of a list, nested as the shape says. *out is advanced.
static bool copy_nested(const json_t *data, const size_t *shape, size_t rank, float **out) {
  if (!json_is_array(data) || json_array_size(data) != *shape)
    return false;
  for (size_t i = 0; i < *shape; i++) {
    const json_t *item = json_array_get(data, i);
    if (rank > 1 && !copy_nested(item, shape + 1, rank - 1, out))
      return false;
    if (rank > 1)
      continue;
    if (!json_is_number(item))
      return false;
    *(*out)++ = (float)json_number_value(item);
  }
  return true;
}

// The numbers of an input into values [count].
static enum infer_read copy_values(const struct reader *reader, enum input_kind kind,
                                   float *values) {
  const struct tensor *tensor = &reader->inputs[kind];
  if (tensor->blob) {
    memcpy(values, tensor->blob, tensor->count * sizeof *values);
    return INFER_READ;
  }
  const json_t *first = json_array_get(tensor->data, 0);
  bool flat = tensor->rank == 1 || !json_is_array(first);
  const size_t *shape = flat ? &tensor->count : tensor->shape;
  if (!copy_nested(tensor->data, shape, flat ? 1 : tensor->rank, &values))
    return refuse(reader, "input %s: data does not have the %zu numbers of its shape",
                  input_names[kind], tensor->count);
  return INFER_READ;
}

// An input of [T][width].
static enum infer_read read_frames(const struct reader *reader, enum input_kind kind, size_t width,
                                   float limit, float **values) {
  const struct tensor *tensor = &reader->inputs[kind];
  const char *name = input_names[kind];
  if (!tensor->present)
    return refuse(reader, "input %s is missing", name);
  if (tensor->rank != 2 || tensor->shape[1] != width)
    return refuse(reader, "input %s: its shape must be [T, %zu]", name, width);
  if (tensor->shape[0] > reader->max_frames)
    return refuse(reader, "input %s: %zu frames; a request may have %zu", name, tensor->shape[0],
                  reader->max_frames);
  *values = malloc(tensor->count * sizeof **values);
  if (!*values)
    return no_memory(reader);
  enum infer_read outcome = copy_values(reader, kind, *values);
  for (size_t i = 0; outcome == INFER_READ && i < tensor->count; i++)
    if (!(fabsf((*values)[i]) <= limit))
      return refuse(reader, "input %s: frame %zu has a value that is not finite, or is over %g",
                    name, i / width, (double)limit);
  return outcome;
}

// Axis-angle vectors of more than ten turns are no pose; see wire/frame.h.
static enum infer_read check_rotations(const struct reader *reader) {
  const struct infer_request *request = reader->request;
  for (size_t i = 0; i < request->frames * INFER_POSE; i += 3) {
    const float *v = request->pose + i;
    if (v[0] * v[0] + v[1] * v[1] + v[2] * v[2] > FRAME_ROTATION_MAX * FRAME_ROTATION_MAX)
      return refuse(reader, "input pose: frame %zu has a rotation of more than ten turns",
                    i / INFER_POSE);
  }
  return INFER_READ;
}

static enum infer_read read_betas(const struct reader *reader) {
  const struct tensor *tensor = &reader->inputs[BETAS];
  float values[INFER_BETAS_MAX];
  if (!tensor->present)
    return INFER_READ;
  if ((tensor->rank == 2 && tensor->shape[0] != 1) || tensor->count > INFER_BETAS_MAX)
    return refuse(reader, "input betas: its shape must be [n] or [1, n], n up to %d",
                  INFER_BETAS_MAX);
  enum infer_read outcome = copy_values(reader, BETAS, values);
  for (size_t i = 0; outcome == INFER_READ && i < tensor->count; i++) {
    if (!(fabsf(values[i]) <= (float)MESSAGE_BETA_LIMIT))
      return refuse(reader, "input betas: value %zu is not finite, or is over %g", i,
                    MESSAGE_BETA_LIMIT);
    if (i < INFER_BETAS)
      reader->request->betas[i] = values[i];
  }
  reader->request->has_betas = true;
  return outcome;
}

static enum infer_read read_fps(const struct reader *reader) {
  const struct tensor *tensor = &reader->inputs[FPS];
  float fps;
  if (!tensor->present)
    return INFER_READ;
  if (tensor->count != 1)
    return refuse(reader, "input fps: its shape must be [1]");
  enum infer_read outcome = copy_values(reader, FPS, &fps);
  if (outcome == INFER_READ && !(fps >= 1 && fps <= INFER_FPS_MAX))
    return refuse(reader, "input fps: it must be 1 to %d", INFER_FPS_MAX);
  reader->request->fps = fps;
  return outcome;
}

static enum infer_read read_inputs(struct reader *reader, const json_t *inputs) {
  struct infer_request *request = reader->request;
  enum infer_read outcome = INFER_READ;
  if (!json_is_array(inputs))
    return refuse(reader, "there is no list of inputs");
  for (size_t i = 0; outcome == INFER_READ && i < json_array_size(inputs); i++)
    outcome = read_input(reader, json_array_get(inputs, i));
  if (outcome == INFER_READ && reader->blobs_size)
    outcome = refuse(reader, "%zu bytes follow the last blob", reader->blobs_size);
  if (outcome == INFER_READ)
    outcome = read_frames(reader, POSE, INFER_POSE, FRAME_ROTATION_MAX, &request->pose);
  if (outcome == INFER_READ)
    outcome = read_frames(reader, TRANS, 3, FRAME_TRANSLATION_MAX, &request->trans);
  request->frames = reader->inputs[POSE].shape[0];
  if (outcome == INFER_READ && reader->inputs[TRANS].shape[0] != request->frames)
    outcome = refuse(reader, "pose has %zu frames, trans %zu", request->frames,
                     reader->inputs[TRANS].shape[0]);
  if (outcome == INFER_READ)
    outcome = check_rotations(reader);
  if (outcome == INFER_READ)
    outcome = read_betas(reader);
  return outcome == INFER_READ ? read_fps(reader) : outcome;
}

// Outputs and parameters -------------------------------------------------------------------------

// A boolean of an object, false when it is not there.
static enum infer_read read_flag(const struct reader *reader, const json_t *parameters,
                                 const char *name, bool *flag) {
  const json_t *value = json_object_get(parameters, name);
  if (value && !json_is_boolean(value))
    return refuse(reader, "parameter %s must be true or false", name);
  if (value)
    *flag = json_is_true(value);
  return INFER_READ;
}

static enum infer_read read_output(const struct reader *reader, const json_t *output, bool binary) {
  struct infer_request *request = reader->request;
  const char *name = json_string_value(json_object_get(output, "name"));
  const json_t *parameters = json_object_get(output, "parameters");
  int kind = 0;
  if (!name)
    return refuse(reader, "an output is not an object with a name");
  while (kind < INFER_OUTPUT_KINDS && strcmp(name, infer_output_names[kind]) != 0)
    kind++;
  if (kind == INFER_OUTPUT_KINDS)
    return refuse(reader, "output %.40s: there are displacement and latent", name);
  if (json_object_get(parameters, "classification") ||
      json_object_get(parameters, "shared_memory_region"))
    return refuse(reader, "output %s: neither classification nor shared memory is to be had", name);
  for (size_t i = 0; i < request->output_count; i++)
    if (request->outputs[i].kind == (enum infer_output_kind)kind)
      return refuse(reader, "output %s is asked for twice", name);
  struct infer_output *added = &request->outputs[request->output_count++];
  *added = (struct infer_output){(enum infer_output_kind)kind, binary};
  return read_flag(reader, parameters, "binary_data", &added->binary);
}

static enum infer_read read_outputs(const struct reader *reader, const json_t *outputs,
                                    bool binary) {
  struct infer_request *request = reader->request;
  enum infer_read outcome = INFER_READ;
  if (outputs && !json_is_array(outputs))
    return refuse(reader, "outputs is not a list");
  for (size_t i = 0; outcome == INFER_READ && i < json_array_size(outputs); i++)
    outcome = read_output(reader, json_array_get(outputs, i), binary);
  if (outcome == INFER_READ && !request->output_count)
    for (int kind = 0; kind < INFER_OUTPUT_KINDS; kind++)
      request->outputs[request->output_count++] =
          (struct infer_output){(enum infer_output_kind)kind, binary};
  return outcome;
}

static enum infer_read read_sequence(const struct reader *reader, const json_t *parameters) {
  struct infer_request *request = reader->request;
  const json_t *id = json_object_get(parameters, "sequence_id");
  const char *name = json_string_value(id);
  bool big = reader->big_sequence && json_is_true(id);
  if (id && !json_is_integer(id) && !name && !big)
    return refuse(reader, "sequence_id must be a whole number or a string");
  if (name && strlen(name) >= INFER_SEQUENCE_SIZE)
    return refuse(reader, "sequence_id: at most %d bytes", INFER_SEQUENCE_SIZE - 1);
  if (name && *name)
    snprintf(request->sequence, sizeof request->sequence, "$%s", name);
  else if (big)
    snprintf(request->sequence, sizeof request->sequence, "#%" PRIu64, reader->big_sequence);
  else if (json_is_integer(id) && json_integer_value(id))
    snprintf(request->sequence, sizeof request->sequence, "#%" JSON_INTEGER_FORMAT,
             json_integer_value(id));
  enum infer_read outcome = read_flag(reader, parameters, "sequence_start", &request->start);
  if (outcome == INFER_READ)
    outcome = read_flag(reader, parameters, "sequence_end", &request->end);
  if (outcome == INFER_READ && !*request->sequence && (request->start || request->end))
    return refuse(reader,
                  "sequence_start and sequence_end need a sequence_id that is not 0 or \"\"");
  return outcome;
}

static enum infer_read read_document(struct reader *reader, const json_t *document) {
  struct infer_request *request = reader->request;
  const json_t *parameters = json_object_get(document, "parameters");
  const json_t *id = json_object_get(document, "id");
  bool binary = false;
  if (id && !json_is_string(id))
    return refuse(reader, "id is not a string");
  if (id && !(request->id = strdup(json_string_value(id))))
    return no_memory(reader);
  if (parameters && !json_is_object(parameters))
    return refuse(reader, "parameters is not an object");
  enum infer_read outcome = read_flag(reader, parameters, "binary_data_output", &binary);
  if (outcome == INFER_READ)
    outcome = read_sequence(reader, parameters);
  if (outcome == INFER_READ)
    outcome = read_outputs(reader, json_object_get(document, "outputs"), binary);
  return outcome == INFER_READ ? read_inputs(reader, json_object_get(document, "inputs")) : outcome;
}

// Reading ----------------------------------------------------------------------------------------

#define BIG_DIGITS 20 // of 2^64 - 1

// An identifier that fits 64 bits only without a sign, the value of the first "sequence_id": takes
// it, and writes `true` in its place. A quote inside a string follows a backslash, so this finds
// members alone.
static bool take_big_sequence(struct reader *reader, char *json, size_t size) {
  static const char key[] = "\"sequence_id\"";
  const size_t length = sizeof key - 1;
  char *at = json, *end = json + size, digits[BIG_DIGITS + 1] = "";
  size_t count = 0;
  while ((at = memmem(at, (size_t)(end - at), key, length)) && at > json && at[-1] == '\\')
    at++;
  if (!at)
    return false;
  for (at += length; at < end && strchr(" \t\r\n:", *at) && *at; at++)
    ;
  while (at + count < end && at[count] >= '0' && at[count] <= '9' && count < BIG_DIGITS) {
    digits[count] = at[count];
    count++;
  }
  errno = 0;
  reader->big_sequence = strtoull(digits, NULL, 10);
  if (errno || reader->big_sequence <= INT64_MAX)
    return false;
  memset(at, ' ', count); // 19 digits at least
  memcpy(at, "true", 4);
  return true;
}

// Jansson reads whole numbers up to 2^63 - 1.
static json_t *load(struct reader *reader, const char *json, size_t size, json_error_t *error) {
  json_t *document = json_loadb(json, size, JSON_REJECT_DUPLICATES, error);
  if (document || json_error_code(error) != json_error_numeric_overflow)
    return document;
  char *copy = malloc(size);
  if (copy && take_big_sequence(reader, memcpy(copy, json, size), size))
    document = json_loadb(copy, size, JSON_REJECT_DUPLICATES, error);
  free(copy);
  return document;
}

enum infer_read infer_request_read(struct infer_request *request, const char *body, size_t size,
                                   size_t json_size, size_t max_frames, char why[INFER_TEXT_SIZE]) {
  *request = (struct infer_request){0};
  struct reader reader = {.request = request, .max_frames = max_frames, .why = why};
  json_error_t error;
  if (json_size > size)
    return refuse(&reader, "the header says %zu bytes of JSON, the body has %zu", json_size, size);
  if (json_size > INFER_JSON_MAX)
    return refuse(&reader, "%zu bytes of JSON; at most %d are taken, send tensors as binary data",
                  json_size, INFER_JSON_MAX);
  reader.blobs = body + json_size;
  reader.blobs_size = size - json_size;
  json_t *document = load(&reader, body, json_size, &error);
  if (!document && json_error_code(&error) == json_error_out_of_memory)
    return no_memory(&reader);
  if (!document)
    return refuse(&reader, "the JSON is malformed at byte %d: %.160s", error.position, error.text);
  enum infer_read outcome = json_is_object(document) ? read_document(&reader, document)
                                                     : refuse(&reader, "the JSON is not an object");
  json_decref(document);
  if (outcome != INFER_READ)
    infer_request_free(request);
  return outcome;
}

void infer_request_free(struct infer_request *request) {
  free(request->id);
  free(request->pose);
  free(request->trans);
  *request = (struct infer_request){0};
}
