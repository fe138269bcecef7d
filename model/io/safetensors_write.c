// SPDX-License-Identifier: Apache-2.0
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/half.h"
#include "io/safetensors.h"

// Values converted at a time.
#define CHUNK 4096

static size_t count_values(const struct safetensors_array *array) {
  size_t count = 1;
  for (size_t i = 0; i < array->dimensions; i++)
    count *= array->shape[i];
  return count;
}

static bool fits(float value, enum safetensors_type type) {
  return isfinite(type == SAFETENSORS_F16 ? half_to_float(half_from_float(value)) : value);
}

static int check_values(const struct safetensors_array *array, enum safetensors_type type,
                        struct dsnet_error *error) {
  size_t count = count_values(array);
  for (size_t i = 0; i < count; i++)
    if (!fits(array->data[i], type))
      return dsnet_error_set(error, DSNET_EVALUE,
                             "tensor \"%s\": value %zu (%g) is not a finite %s", array->name, i,
                             (double)array->data[i], type == SAFETENSORS_F16 ? "F16" : "F32");
  return 0;
}

// The header as JSON, NULL when memory is out or a text is not UTF-8.
static char *make_header(enum safetensors_type type, const struct safetensors_array *arrays,
                         size_t count, const struct safetensors_text *metadata,
                         size_t metadata_count) {
  const char *type_name = type == SAFETENSORS_F16 ? "F16" : "F32";
  size_t width = type == SAFETENSORS_F16 ? 2 : 4, offset = 0;
  json_t *header = json_object(), *texts = json_object();
  int failed = !header || !texts;
  for (size_t i = 0; i < metadata_count; i++)
    failed |= json_object_set_new(texts, metadata[i].key, json_string(metadata[i].value));
  if (metadata_count)
    failed |= json_object_set(header, "__metadata__", texts);
  json_decref(texts);
  for (size_t i = 0; i < count; i++) {
    json_t *shape = json_array();
    for (size_t d = 0; d < arrays[i].dimensions; d++)
      failed |= json_array_append_new(shape, json_integer((json_int_t)arrays[i].shape[d]));
    size_t end = offset + count_values(&arrays[i]) * width;
    failed |=
        json_object_set_new(header, arrays[i].name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype", type_name, "shape", shape,
                                      "data_offsets", (json_int_t)offset, (json_int_t)end));
    offset = end;
  }
  char *text = failed ? NULL : json_dumps(header, JSON_COMPACT);
  json_decref(header);
  return text;
}

// Spaces after the JSON make the data begin at a multiple of eight.
static int write_header(struct file_writer *writer, const char *text, struct dsnet_error *error) {
  size_t length = strlen(text), padding = (8 - length % 8) % 8;
  uint64_t total = length + padding;
  int code = file_writer_append(writer, &total, sizeof total, error);
  if (!code)
    code = file_writer_append(writer, text, length, error);
  return code ? code : file_writer_append(writer, "        ", padding, error);
}

static int write_values(struct file_writer *writer, enum safetensors_type type,
                        const struct safetensors_array *array, struct dsnet_error *error) {
  size_t count = count_values(array);
  if (type == SAFETENSORS_F32)
    return file_writer_append(writer, array->data, count * sizeof(float), error);
  for (size_t i = 0; i < count; i += CHUNK) {
    uint16_t halves[CHUNK];
    size_t now = count - i < CHUNK ? count - i : CHUNK;
    half_encode(array->data + i, halves, now);
    int code = file_writer_append(writer, halves, now * sizeof *halves, error);
    if (code)
      return code;
  }
  return 0;
}

int safetensors_write(const char *path, enum safetensors_type type,
                      const struct safetensors_array *arrays, size_t count,
                      const struct safetensors_text *metadata, size_t metadata_count,
                      struct dsnet_error *error) {
  struct file_writer *writer = NULL;
  int code = 0;
  if (type != SAFETENSORS_F32 && type != SAFETENSORS_F16)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "only F32 and F16 are written");
  for (size_t i = 0; i < count && !code; i++)
    code = check_values(&arrays[i], type, error);
  if (code)
    return code;
  char *header = make_header(type, arrays, count, metadata, metadata_count);
  if (!header)
    return dsnet_error_set(error, DSNET_ENOMEM, "the header cannot be made");
  code = file_writer_open(&writer, path, error);
  if (code)
    goto fail_open;
  code = write_header(writer, header, error);
  for (size_t i = 0; i < count && !code; i++)
    code = write_values(writer, type, &arrays[i], error);
  if (code)
    file_writer_abort(writer);
  else
    code = file_writer_commit(writer, error);
fail_open:
  free(header);
  return code;
}
