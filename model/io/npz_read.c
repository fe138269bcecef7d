// SPDX-License-Identifier: Apache-2.0
#include "io/npz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/zip.h"

#define SUFFIX ".npy"

struct array {
  char *name; // the entry's without SUFFIX
  const struct zip_entry *entry;
};

struct npz {
  char *path;     // for messages; NULL in memory
  int descriptor; // -1 in memory
  struct zip zip;
  struct array *arrays;
  size_t count;
};

// Puts "path: array" before an error; either may be NULL.
static int blame(const struct npz *npz, const char *name, int result, struct dsnet_error *error) {
  if (name)
    dsnet_error_prefix(error, "%.64s", name);
  if (npz->path)
    dsnet_error_prefix(error, "%.160s", npz->path);
  return result;
}

int npz_error_set(const struct npz *npz, const char *name, struct dsnet_error *error,
                  enum dsnet_code code, const char *format, ...) {
  char text[sizeof error->text];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (npz->path)
    return dsnet_error_set(error, code, "%.160s: %.64s: %s", npz->path, name, text);
  return dsnet_error_set(error, code, "%.64s: %s", name, text);
}

// The entries that are arrays; others are left alone.
static int list_arrays(struct npz *npz, struct dsnet_error *error) {
  npz->arrays = calloc(npz->zip.count + 1, sizeof *npz->arrays);
  if (!npz->arrays)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  size_t suffix = strlen(SUFFIX);
  for (size_t i = 0; i < npz->zip.count; i++) {
    const struct zip_entry *entry = &npz->zip.entries[i];
    if (entry->name_length <= suffix || strcmp(entry->name + entry->name_length - suffix, SUFFIX))
      continue;
    struct array *array = &npz->arrays[npz->count];
    array->entry = entry;
    array->name = strndup(entry->name, entry->name_length - suffix);
    if (!array->name)
      return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
    npz->count++;
  }
  return 0;
}

static int open_source(struct npz **npz, struct npz *opened, struct zip_source source,
                       struct dsnet_error *error) {
  int result = zip_open(&opened->zip, source, error);
  if (result == 0)
    result = list_arrays(opened, error);
  if (result < 0) {
    blame(opened, NULL, result, error);
    npz_close(opened);
    return result;
  }
  *npz = opened;
  return 0;
}

int npz_open(struct npz **npz, const char *path, struct dsnet_error *error) {
  *npz = NULL;
  struct npz *opened = calloc(1, sizeof *opened);
  if (!opened || !(opened->path = strdup(path))) {
    free(opened);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  struct zip_source source = {0};
  int result = file_open_regular(path, &opened->descriptor, &source.size, error);
  if (result < 0) {
    npz_close(opened);
    return result;
  }
  source.descriptor = opened->descriptor;
  return open_source(npz, opened, source, error);
}

int npz_open_memory(struct npz **npz, const void *data, size_t size, struct dsnet_error *error) {
  *npz = NULL;
  struct npz *opened = calloc(1, sizeof *opened);
  if (!opened)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  opened->descriptor = -1;
  // No bytes may come as a NULL pointer, which in a source would mean a file.
  struct zip_source source = {.descriptor = -1, .memory = data ? data : "", .size = size};
  return open_source(npz, opened, source, error);
}

void npz_close(struct npz *npz) {
  if (!npz)
    return;
  for (size_t i = 0; i < npz->count; i++)
    free(npz->arrays[i].name);
  free(npz->arrays);
  zip_deinit(&npz->zip);
  if (npz->descriptor >= 0)
    close(npz->descriptor);
  free(npz->path);
  free(npz);
}

size_t npz_count(const struct npz *npz) {
  return npz->count;
}

const char *npz_name(const struct npz *npz, size_t index) {
  return index < npz->count ? npz->arrays[index].name : NULL;
}

static const struct array *find(const struct npz *npz, const char *name) {
  for (size_t i = 0; i < npz->count; i++)
    if (!strcmp(npz->arrays[i].name, name))
      return &npz->arrays[i];
  return NULL;
}

bool npz_has(const struct npz *npz, const char *name) {
  return find(npz, name) != NULL;
}

// Reads the header; *bytes is what it took from the stream.
static int read_header(struct zip_stream *stream, struct npy_info *info, uint64_t *bytes,
                       struct dsnet_error *error) {
  uint8_t prefix[NPY_PREFIX_SIZE], length_bytes[4] = {0};
  int result = zip_stream_read(stream, prefix, sizeof prefix, error);
  if (result < 0)
    return result;
  if (memcmp(prefix, "\x93NUMPY", 6))
    return dsnet_error_set(error, DSNET_EFORMAT, "is not in the npy format");
  if (prefix[6] < 1 || prefix[6] > 3 || prefix[7] != 0)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "is in version %d.%d of the npy format",
                           prefix[6], prefix[7]);
  size_t length_size = prefix[6] == 1 ? 2 : 4;
  result = zip_stream_read(stream, length_bytes, length_size, error);
  if (result < 0)
    return result;
  size_t length = length_bytes[0] | (size_t)length_bytes[1] << 8 | (size_t)length_bytes[2] << 16 |
                  (size_t)length_bytes[3] << 24;
  if (length > NPY_HEADER_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "its npy header has %zu bytes, more than %d",
                           length, NPY_HEADER_MAX);
  char *text = malloc(length + 1);
  if (!text)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  result = zip_stream_read(stream, text, length, error);
  if (result == 0)
    result = npy_header_parse(text, length, info, error);
  free(text);
  *bytes = sizeof prefix + length_size + length;
  return result;
}

// Opens the stream of an array and reads its header. The entry's size must be what the header
// implies, so that nothing beyond it is ever inflated.
static int open_array(const struct npz *npz, const char *name, struct zip_stream **stream,
                      struct npy_info *info, struct dsnet_error *error) {
  *stream = NULL;
  const struct array *array = find(npz, name);
  if (!array)
    return dsnet_error_set(error, DSNET_EMISSING, "is missing from the archive");
  int result = zip_stream_open(stream, &npz->zip, array->entry, error);
  if (result < 0)
    return result;
  uint64_t header;
  result = read_header(*stream, info, &header, error);
  if (result == 0 && info->kind != NPY_OTHER && array->entry->size - header != npy_bytes(info))
    result = dsnet_error_set(error, DSNET_EFORMAT, "holds %llu bytes, its header says %zu",
                             (unsigned long long)(array->entry->size - header), npy_bytes(info));
  if (result < 0) {
    zip_stream_close(*stream);
    *stream = NULL;
  }
  return result;
}

int npz_info(struct npz *npz, const char *name, struct npy_info *info, struct dsnet_error *error) {
  struct zip_stream *stream;
  int result = open_array(npz, name, &stream, info, error);
  zip_stream_close(stream);
  return result < 0 ? blame(npz, name, result, error) : 0;
}

// All elements through a buffer of one piece, so that only the result is as large as the array.
static int convert_elements(struct zip_stream *stream, struct npy_convert *convert,
                            struct dsnet_error *error) {
  uint8_t piece[NPY_PIECE * 8];
  size_t width = convert->info->width;
  for (size_t left = convert->info->count; left;) {
    size_t count = left < NPY_PIECE ? left : NPY_PIECE;
    int result = zip_stream_read(stream, piece, count * width, error);
    if (result == 0)
      result = npy_convert_take(convert, piece, count, error);
    if (result < 0)
      return result;
    left -= count;
  }
  return zip_stream_finish(stream, error);
}

static int read_numbers(struct npz *npz, const char *name, size_t limit, enum npy_target target,
                        void **data, struct npy_info *info_out, struct dsnet_error *error) {
  static const size_t sizes[] = {
      [NPY_TO_F32] = sizeof(float), [NPY_TO_F64] = sizeof(double), [NPY_TO_I64] = sizeof(int64_t)};
  struct zip_stream *stream;
  struct npy_info info;
  struct npy_convert convert;
  void *block = NULL;
  *data = NULL;
  int result = open_array(npz, name, &stream, &info, error);
  if (result < 0)
    return blame(npz, name, result, error);
  result = npy_convert_init(&convert, &info, target, NULL, error);
  if (result < 0)
    goto done;
  if (info.count > limit) {
    result =
        dsnet_error_set(error, DSNET_ELIMIT, "has %zu elements, more than %zu", info.count, limit);
    goto done;
  }
  block = convert.out = memory_alloc(info.count, sizes[target]);
  if (!block) {
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory for %zu elements", info.count);
    goto done;
  }
  result = convert_elements(stream, &convert, error);
done:
  zip_stream_close(stream);
  if (result < 0) {
    free(block);
    return blame(npz, name, result, error);
  }
  *data = block;
  if (info_out)
    *info_out = info;
  return 0;
}

int npz_read_f32(struct npz *npz, const char *name, size_t limit, float **data,
                 struct npy_info *info, struct dsnet_error *error) {
  void *block;
  int result = read_numbers(npz, name, limit, NPY_TO_F32, &block, info, error);
  *data = block;
  return result;
}

int npz_read_f64(struct npz *npz, const char *name, size_t limit, double **data,
                 struct npy_info *info, struct dsnet_error *error) {
  void *block;
  int result = read_numbers(npz, name, limit, NPY_TO_F64, &block, info, error);
  *data = block;
  return result;
}

int npz_read_i64(struct npz *npz, const char *name, size_t limit, int64_t **data,
                 struct npy_info *info, struct dsnet_error *error) {
  void *block;
  int result = read_numbers(npz, name, limit, NPY_TO_I64, &block, info, error);
  *data = block;
  return result;
}

static int read_string(struct zip_stream *stream, const struct npy_info *info, char *text,
                       size_t size, struct dsnet_error *error) {
  if (info->kind != NPY_UNICODE && info->kind != NPY_BYTES)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "is not text");
  if (info->count != 1)
    return dsnet_error_set(error, DSNET_EFORMAT, "holds %zu strings where one is needed",
                           info->count);
  // NumPy pads strings with NULs only as far as the longest of an array, here the one.
  if (info->width / 4 > size)
    return dsnet_error_set(error, DSNET_ELIMIT, "is longer than %zu bytes", size);
  uint8_t *bytes = malloc(info->width + 1);
  if (!bytes)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = zip_stream_read(stream, bytes, info->width, error);
  if (result == 0)
    result = zip_stream_finish(stream, error);
  if (result == 0)
    result = npy_text(info, bytes, text, size, error);
  free(bytes);
  return result;
}

int npz_read_text(struct npz *npz, const char *name, char *text, size_t size,
                  struct dsnet_error *error) {
  struct zip_stream *stream;
  struct npy_info info;
  int result = open_array(npz, name, &stream, &info, error);
  if (result == 0)
    result = read_string(stream, &info, text, size, error);
  zip_stream_close(stream);
  return result < 0 ? blame(npz, name, result, error) : 0;
}
