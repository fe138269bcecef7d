// SPDX-License-Identifier: Apache-2.0
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/file.h"
#include "io/half.h"
#include "io/safetensors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are copied as they are stored");

struct safetensors {
  uint8_t *owned; // the file's bytes when they are ours
  json_t *header; // names and metadata point into it
  struct safetensors_tensor *tensors;
  size_t count;
};

// Every type of the format, so that sizes of all tensors can be checked.
static const struct {
  const char *name;
  size_t width;
  enum safetensors_type type;
} types[] = {
    {"F32", 4, SAFETENSORS_F32},       {"F16", 2, SAFETENSORS_F16},
    {"BF16", 2, SAFETENSORS_BF16},     {"F64", 8, SAFETENSORS_OTHER},
    {"I64", 8, SAFETENSORS_OTHER},     {"U64", 8, SAFETENSORS_OTHER},
    {"I32", 4, SAFETENSORS_OTHER},     {"U32", 4, SAFETENSORS_OTHER},
    {"I16", 2, SAFETENSORS_OTHER},     {"U16", 2, SAFETENSORS_OTHER},
    {"I8", 1, SAFETENSORS_OTHER},      {"U8", 1, SAFETENSORS_OTHER},
    {"BOOL", 1, SAFETENSORS_OTHER},    {"F8_E4M3", 1, SAFETENSORS_OTHER},
    {"F8_E5M2", 1, SAFETENSORS_OTHER},
};

static bool read_size(const json_t *value, size_t *size) {
  if (!json_is_integer(value) || json_integer_value(value) < 0)
    return false;
  *size = (size_t)json_integer_value(value);
  return true;
}

static int parse_shape(const json_t *shape, struct safetensors_tensor *tensor,
                       struct dsnet_error *error) {
  if (!json_is_array(shape))
    return dsnet_error_set(error, DSNET_EFORMAT, "tensor \"%s\": no shape", tensor->name);
  if (json_array_size(shape) > SAFETENSORS_DIMENSIONS_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "tensor \"%s\": %zu dimensions, at most %d",
                           tensor->name, json_array_size(shape), SAFETENSORS_DIMENSIONS_MAX);
  tensor->dimensions = json_array_size(shape);
  tensor->count = 1;
  for (size_t i = 0; i < tensor->dimensions; i++) {
    if (!read_size(json_array_get(shape, i), &tensor->shape[i]))
      return dsnet_error_set(error, DSNET_EFORMAT, "tensor \"%s\": its shape is not whole numbers",
                             tensor->name);
    if (!memory_multiply(tensor->count, tensor->shape[i], &tensor->count))
      return dsnet_error_set(error, DSNET_ELIMIT, "tensor \"%s\": its size overflows",
                             tensor->name);
  }
  return 0;
}

static int parse_offsets(const json_t *offsets, const uint8_t *data, size_t size,
                         struct safetensors_tensor *tensor, struct dsnet_error *error) {
  size_t begin, end;
  if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
      !read_size(json_array_get(offsets, 0), &begin) ||
      !read_size(json_array_get(offsets, 1), &end))
    return dsnet_error_set(error, DSNET_EFORMAT, "tensor \"%s\": no data offsets", tensor->name);
  if (begin > end || end > size)
    return dsnet_error_set(error, DSNET_EFORMAT,
                           "tensor \"%s\": offsets %zu to %zu are not within the data's %zu bytes",
                           tensor->name, begin, end, size);
  tensor->data = data + begin;
  tensor->bytes = end - begin;
  return 0;
}

static int check_bytes(struct safetensors_tensor *tensor, struct dsnet_error *error) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    size_t bytes;
    if (strcmp(types[i].name, tensor->type_name) != 0)
      continue;
    tensor->type = types[i].type;
    if (!memory_multiply(tensor->count, types[i].width, &bytes) || bytes != tensor->bytes)
      return dsnet_error_set(error, DSNET_EFORMAT,
                             "tensor \"%s\": %zu bytes do not hold %zu values of type %s",
                             tensor->name, tensor->bytes, tensor->count, tensor->type_name);
    return 0;
  }
  tensor->type = SAFETENSORS_OTHER; // a type from after this was written
  return 0;
}

static int parse_tensor(const char *name, const json_t *entry, const uint8_t *data, size_t size,
                        struct safetensors_tensor *tensor, struct dsnet_error *error) {
  tensor->name = name;
  if (!json_is_object(entry))
    return dsnet_error_set(error, DSNET_EFORMAT, "tensor \"%s\": not an object", name);
  tensor->type_name = json_string_value(json_object_get(entry, "dtype"));
  if (!tensor->type_name)
    return dsnet_error_set(error, DSNET_EFORMAT, "tensor \"%s\": no dtype", name);
  int code = parse_shape(json_object_get(entry, "shape"), tensor, error);
  if (code)
    return code;
  code = parse_offsets(json_object_get(entry, "data_offsets"), data, size, tensor, error);
  return code ? code : check_bytes(tensor, error);
}

static int check_metadata(json_t *metadata, struct dsnet_error *error) {
  const char *key;
  json_t *value;
  if (metadata && !json_is_object(metadata))
    return dsnet_error_set(error, DSNET_EFORMAT, "\"__metadata__\" is not an object");
  json_object_foreach(metadata, key, value) {
    if (!json_is_string(value))
      return dsnet_error_set(error, DSNET_EFORMAT, "\"__metadata__\": \"%s\" is not text", key);
  }
  return 0;
}

static int by_offset(const void *a, const void *b) {
  const struct safetensors_tensor *x = a, *y = b;
  if (x->data != y->data)
    return x->data < y->data ? -1 : 1;
  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? -1 : 1;
  return strcmp(x->name, y->name);
}

static int check_cover(const struct safetensors *file, const uint8_t *data, size_t size,
                       struct dsnet_error *error) {
  const uint8_t *at = data;
  for (size_t i = 0; i < file->count; i++) {
    const struct safetensors_tensor *tensor = &file->tensors[i];
    if (tensor->data != at)
      return dsnet_error_set(error, DSNET_EFORMAT, "tensor \"%s\": %s the data before it",
                             tensor->name, tensor->data < at ? "overlaps" : "leaves a gap after");
    at += tensor->bytes;
  }
  if (at != data + size)
    return dsnet_error_set(error, DSNET_EFORMAT, "%zu bytes at the end belong to no tensor",
                           (size_t)(data + size - at));
  return 0;
}

static int parse_tensors(struct safetensors *file, const uint8_t *data, size_t size,
                         struct dsnet_error *error) {
  const char *name;
  json_t *entry;
  int code = 0;
  size_t entries = json_object_size(file->header);
  if (entries > SAFETENSORS_TENSORS_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "%zu tensors, at most %d", entries,
                           SAFETENSORS_TENSORS_MAX);
  file->tensors = calloc(entries ? entries : 1, sizeof *file->tensors);
  if (!file->tensors)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  json_object_foreach(file->header, name, entry) {
    if (!strcmp(name, "__metadata__"))
      continue;
    code = parse_tensor(name, entry, data, size, &file->tensors[file->count++], error);
    if (code)
      return code;
  }
  qsort(file->tensors, file->count, sizeof *file->tensors, by_offset);
  return check_cover(file, data, size, error);
}

static int parse(struct safetensors *file, const uint8_t *bytes, size_t size,
                 struct dsnet_error *error) {
  uint64_t length;
  json_error_t problem;
  if (size < sizeof length)
    return dsnet_error_set(error, DSNET_EFORMAT, "%zu bytes are too few for a safetensors file",
                           size);
  memcpy(&length, bytes, sizeof length);
  if (length > size - sizeof length)
    return dsnet_error_set(error, DSNET_EFORMAT,
                           "the header claims %llu bytes of a file of %zu: not a safetensors file, "
                           "or cut off",
                           (unsigned long long)length, size);
  if (length > SAFETENSORS_HEADER_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "the header has %llu bytes, at most %zu",
                           (unsigned long long)length, SAFETENSORS_HEADER_MAX);
  const char *text = (const char *)bytes + sizeof length;
  if (length == 0 || text[0] != '{')
    return dsnet_error_set(error, DSNET_EFORMAT, "the header does not begin with \"{\"");
  // Jansson bounds the depth itself.
  file->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &problem);
  if (!file->header)
    return dsnet_error_set(
        error, json_error_code(&problem) == json_error_out_of_memory ? DSNET_ENOMEM : DSNET_EFORMAT,
        "the header is not JSON: %s", problem.text);
  int code = check_metadata(json_object_get(file->header, "__metadata__"), error);
  return code ? code
              : parse_tensors(file, bytes + sizeof length + length,
                              size - sizeof length - (size_t)length, error);
}

int safetensors_open_memory(struct safetensors **file, const void *bytes, size_t size,
                            struct dsnet_error *error) {
  struct safetensors *opened = calloc(1, sizeof *opened);
  if (!opened)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int code = parse(opened, bytes, size, error);
  if (code) {
    safetensors_close(opened);
    return code;
  }
  *file = opened;
  return 0;
}

int safetensors_open(struct safetensors **file, const char *path, struct dsnet_error *error) {
  uint8_t *bytes;
  size_t size;
  int code = file_read(path, SAFETENSORS_FILE_MAX, &bytes, &size, error);
  if (code)
    return code;
  code = safetensors_open_memory(file, bytes, size, error);
  if (code) {
    free(bytes);
    dsnet_error_prefix(error, "%s", path);
    return code;
  }
  (*file)->owned = bytes;
  return 0;
}

void safetensors_close(struct safetensors *file) {
  if (!file)
    return;
  json_decref(file->header);
  free(file->tensors);
  free(file->owned);
  free(file);
}

size_t safetensors_count(const struct safetensors *file) {
  return file->count;
}

const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index) {
  return &file->tensors[index];
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file,
                                                  const char *name) {
  for (size_t i = 0; i < file->count; i++)
    if (!strcmp(file->tensors[i].name, name))
      return &file->tensors[i];
  return NULL;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key) {
  return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

// "[2, 3]" for messages.
static const char *shape_text(const size_t *shape, size_t dimensions, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "[");
  for (size_t i = 0; i < dimensions && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, i ? ", %zu" : "%zu", shape[i]);
  if (used < size)
    snprintf(text + used, size - used, "]");
  return text;
}

static void decode_bf16(const uint8_t *from, float *to, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t bits = (uint32_t)from[2 * i] << 16 | (uint32_t)from[2 * i + 1] << 24;
    memcpy(&to[i], &bits, sizeof bits);
  }
}

int safetensors_read_f32(const struct safetensors *file, const char *name, size_t dimensions,
                         const size_t *shape, float *out, struct dsnet_error *error) {
  char has[192], wants[192];
  const struct safetensors_tensor *tensor = safetensors_find(file, name);
  if (!tensor)
    return dsnet_error_set(error, DSNET_EMISSING, "tensor \"%s\" is missing", name);
  if (tensor->dimensions != dimensions ||
      (dimensions && memcmp(tensor->shape, shape, dimensions * sizeof *shape) != 0))
    return dsnet_error_set(error, DSNET_EMISMATCH, "tensor \"%s\" has shape %s, not %s", name,
                           shape_text(tensor->shape, tensor->dimensions, has, sizeof has),
                           shape_text(shape, dimensions, wants, sizeof wants));
  switch (tensor->type) {
  case SAFETENSORS_F32:
    memcpy(out, tensor->data, tensor->bytes);
    break;
  case SAFETENSORS_F16:
    half_decode(tensor->data, out, tensor->count);
    break;
  case SAFETENSORS_BF16:
    decode_bf16(tensor->data, out, tensor->count);
    break;
  default:
    return dsnet_error_set(error, DSNET_EUNSUPPORTED,
                           "tensor \"%s\" has type %s; F32, F16 and BF16 are read", name,
                           tensor->type_name);
  }
  for (size_t i = 0; i < tensor->count; i++)
    if (!isfinite(out[i]))
      return dsnet_error_set(error, DSNET_EVALUE, "tensor \"%s\": value %zu is not finite", name,
                             i);
  return 0;
}
