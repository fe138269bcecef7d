// SPDX-License-Identifier: Apache-2.0
// Writes npz archives. The file can be sought in, so that each local header is patched with the CRC
// and the compressed size once they are known, and no entry needs a data descriptor. Times are the
// zip format's zero (1980-01-01) and attributes constant: the bytes depend on the arrays alone.
#include "io/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "io/file.h"
#include "io/npy.h"
#include "io/zip.h"
#include "io/zip_format.h"

#define NAME_MAX_LENGTH 255
#define OUTPUT_SIZE     65536
#define SATURATED       0xffffffffu
// From this size on an entry gets a zip64 local header: deflate can make data longer, by less than
// a thousandth, and the header is written before that is known.
#define ZIP64_THRESHOLD 0xf0000000u
#define DOS_DATE        0x0021u // 1980-01-01
#define VERSION_PLAIN   20u
#define VERSION_ZIP64   45u
#define MADE_BY_UNIX    (3u << 8)
#define ATTRIBUTES      (0100644u << 16) // a regular file, rw-r--r--

struct written {
  char *name; // with ".npy"
  uint32_t crc;
  uint64_t compressed, size, header;
  bool zip64; // of the local header
};

struct npz_writer {
  struct file_writer *file;
  bool deflate;
  struct written *entries;
  size_t count, capacity;
  bool active;       // between begin and end
  uint64_t expected; // bytes that entry will have
  z_stream z;
  struct dsnet_error failure; // the first one: the file will not appear
  uint8_t output[OUTPUT_SIZE];
};

static int answer(const struct npz_writer *w, struct dsnet_error *error) {
  if (w->failure.code == DSNET_OK)
    return 0;
  return dsnet_error_set(error, w->failure.code, "%s", w->failure.text);
}

int npz_writer_open(struct npz_writer **writer, const char *path, bool deflate,
                    struct dsnet_error *error) {
  *writer = NULL;
  struct npz_writer *w = calloc(1, sizeof *w);
  if (!w)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  w->deflate = deflate;
  if (deflate && deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9,
                              Z_DEFAULT_STRATEGY) != Z_OK) {
    free(w);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  int result = file_writer_open(&w->file, path, error);
  if (result < 0) {
    npz_writer_abort(w);
    return result;
  }
  *writer = w;
  return 0;
}

void npz_writer_abort(struct npz_writer *w) {
  if (!w)
    return;
  file_writer_abort(w->file);
  if (w->deflate)
    deflateEnd(&w->z);
  for (size_t i = 0; i < w->count; i++)
    free(w->entries[i].name);
  free(w->entries);
  free(w);
}

static bool is_ascii(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text >= 0x80)
      return false;
  return true;
}

static bool has_entry(const struct npz_writer *w, const char *name) {
  size_t length = strlen(name);
  for (size_t i = 0; i < w->count; i++)
    if (!strncmp(w->entries[i].name, name, length) && !strcmp(w->entries[i].name + length, ".npy"))
      return true;
  return false;
}

static int check_name(struct npz_writer *w, const char *name) {
  size_t length = strlen(name);
  if (length == 0 || length > NAME_MAX_LENGTH)
    return dsnet_error_set(&w->failure, DSNET_EUSAGE, "an array's name has %zu bytes", length);
  if (has_entry(w, name))
    return dsnet_error_set(&w->failure, DSNET_EUSAGE, "%s: is there already", name);
  if (w->count == ZIP_ENTRIES_MAX)
    return dsnet_error_set(&w->failure, DSNET_ELIMIT, "more than %d arrays", ZIP_ENTRIES_MAX);
  return 0;
}

static int add_entry(struct npz_writer *w, const char *name) {
  if (w->count == w->capacity) {
    size_t capacity = w->capacity ? 2 * w->capacity : 16;
    struct written *grown = realloc(w->entries, capacity * sizeof *grown);
    if (!grown)
      return dsnet_error_set(&w->failure, DSNET_ENOMEM, "out of memory");
    w->entries = grown;
    w->capacity = capacity;
  }
  size_t length = strlen(name);
  char *full = malloc(length + sizeof ".npy");
  if (!full)
    return dsnet_error_set(&w->failure, DSNET_ENOMEM, "out of memory");
  memcpy(full, name, length);
  memcpy(full + length, ".npy", sizeof ".npy");
  w->entries[w->count++] =
      (struct written){.name = full, .header = file_writer_size(w->file), .crc = 0};
  return 0;
}

// The fields that local and central headers share, from "version needed" to the name's length.
static uint8_t *put_common(const struct npz_writer *w, const struct written *entry, uint8_t *p,
                           bool saturate) {
  bool large = entry->zip64 || entry->header >= SATURATED;
  p = zip_put16(p, large ? VERSION_ZIP64 : VERSION_PLAIN);
  p = zip_put16(p, is_ascii(entry->name) ? 0 : ZIP_FLAG_UTF8);
  p = zip_put16(p, w->deflate ? ZIP_DEFLATED : ZIP_STORED);
  p = zip_put16(p, 0);
  p = zip_put16(p, DOS_DATE);
  p = zip_put32(p, entry->crc);
  p = zip_put32(p, saturate ? SATURATED : (uint32_t)entry->compressed);
  p = zip_put32(p, saturate ? SATURATED : (uint32_t)entry->size);
  return zip_put16(p, (uint32_t)strlen(entry->name));
}

// The local header without the name; returns its length. With zip64 the extra field follows the
// name, so that it is returned apart.
static void put_local(const struct npz_writer *w, const struct written *entry,
                      uint8_t header[ZIP_LOCAL_SIZE], uint8_t extra[20]) {
  uint8_t *p = zip_put32(header, ZIP_LOCAL_SIGNATURE);
  p = put_common(w, entry, p, entry->zip64);
  zip_put16(p, entry->zip64 ? 20 : 0);
  p = zip_put16(extra, ZIP_EXTRA_ZIP64);
  p = zip_put16(p, 16);
  p = zip_put64(p, entry->size);
  zip_put64(p, entry->compressed);
}

// Compressed or stored bytes of the current entry.
static int put_data(struct npz_writer *w, const void *data, size_t size) {
  struct written *entry = &w->entries[w->count - 1];
  entry->compressed += size;
  return file_writer_append(w->file, data, size, &w->failure);
}

static int run_deflate(struct npz_writer *w, int flush) {
  int status;
  do {
    w->z.next_out = w->output;
    w->z.avail_out = OUTPUT_SIZE;
    status = deflate(&w->z, flush);
    if (put_data(w, w->output, OUTPUT_SIZE - w->z.avail_out) < 0)
      return w->failure.code;
  } while (w->z.avail_out == 0 || (flush == Z_FINISH && status == Z_OK));
  return 0;
}

static int put_bytes(struct npz_writer *w, const void *data, size_t size) {
  struct written *entry = &w->entries[w->count - 1];
  const uint8_t *at = data;
  entry->size += size;
  while (size && w->failure.code == DSNET_OK) {
    unsigned piece = size < 1u << 30 ? (unsigned)size : 1u << 30;
    entry->crc = (uint32_t)crc32(entry->crc, at, piece);
    w->z.next_in = (uint8_t *)(uintptr_t)at; // zlib reads it only
    w->z.avail_in = piece;
    if (w->deflate)
      run_deflate(w, Z_NO_FLUSH);
    else
      put_data(w, at, piece);
    at += piece;
    size -= piece;
  }
  return w->failure.code;
}

static int parse_writable(struct npz_writer *w, const char *name, const char *dtype,
                          size_t dimensions, const size_t *shape, struct npy_info *info) {
  if (npy_type_parse(dtype, strlen(dtype), info) < 0 || info->kind == NPY_OTHER || info->big_endian)
    return dsnet_error_set(&w->failure, DSNET_EUSAGE, "%s: cannot write the type \"%.16s\"", name,
                           dtype);
  if (dimensions > NPY_DIMENSIONS_MAX)
    return dsnet_error_set(&w->failure, DSNET_EUSAGE, "%s: more than %d dimensions", name,
                           NPY_DIMENSIONS_MAX);
  if (npy_shape_set(info, dimensions, shape, &w->failure) < 0)
    dsnet_error_prefix(&w->failure, "%s", name);
  return w->failure.code;
}

int npz_writer_begin(struct npz_writer *w, const char *name, const char *dtype, size_t dimensions,
                     const size_t *shape, struct dsnet_error *error) {
  struct npy_info info = {0};
  if (w->failure.code == DSNET_OK && w->active)
    dsnet_error_set(&w->failure, DSNET_EUSAGE, "%s: begun before the array before it ended", name);
  if (w->failure.code != DSNET_OK || check_name(w, name) < 0 ||
      parse_writable(w, name, dtype, dimensions, shape, &info) < 0 || add_entry(w, name) < 0)
    return answer(w, error);
  char header[NPY_HEADER_TEXT_MAX];
  size_t length = npy_header_format(dtype, dimensions, shape, header);
  uint8_t local[ZIP_LOCAL_SIZE], extra[20];
  struct written *entry = &w->entries[w->count - 1];
  w->active = true;
  w->expected = length + npy_bytes(&info);
  entry->zip64 = w->expected >= ZIP64_THRESHOLD;
  put_local(w, entry, local, extra);
  file_writer_append(w->file, local, sizeof local, &w->failure);
  file_writer_append(w->file, entry->name, strlen(entry->name), &w->failure);
  if (entry->zip64)
    file_writer_append(w->file, extra, sizeof extra, &w->failure);
  if (w->deflate)
    deflateReset(&w->z);
  put_bytes(w, header, length);
  return answer(w, error);
}

int npz_writer_append(struct npz_writer *w, const void *data, size_t bytes,
                      struct dsnet_error *error) {
  if (w->failure.code != DSNET_OK)
    return answer(w, error);
  struct written *entry = w->active ? &w->entries[w->count - 1] : NULL;
  if (!entry)
    dsnet_error_set(&w->failure, DSNET_EUSAGE, "bytes given outside an array");
  else if (bytes > w->expected - entry->size)
    dsnet_error_set(&w->failure, DSNET_EMISMATCH, "%s: given more bytes than its shape says",
                    entry->name);
  else
    put_bytes(w, data, bytes);
  return answer(w, error);
}

int npz_writer_end(struct npz_writer *w, struct dsnet_error *error) {
  if (w->failure.code != DSNET_OK)
    return answer(w, error);
  if (!w->active) {
    dsnet_error_set(&w->failure, DSNET_EUSAGE, "an array ended that was not begun");
    return answer(w, error);
  }
  struct written *entry = &w->entries[w->count - 1];
  w->active = false;
  if (entry->size != w->expected) {
    dsnet_error_set(&w->failure, DSNET_EMISMATCH, "%s: given %llu bytes fewer than its shape says",
                    entry->name, (unsigned long long)(w->expected - entry->size));
    return answer(w, error);
  }
  w->z.avail_in = 0;
  if (w->deflate && run_deflate(w, Z_FINISH) < 0)
    return answer(w, error);
  uint8_t local[ZIP_LOCAL_SIZE], extra[20];
  put_local(w, entry, local, extra);
  file_writer_patch(w->file, entry->header, local, sizeof local, &w->failure);
  if (entry->zip64)
    file_writer_patch(w->file, entry->header + ZIP_LOCAL_SIZE + strlen(entry->name), extra,
                      sizeof extra, &w->failure);
  return answer(w, error);
}

int npz_writer_add(struct npz_writer *w, const char *name, const char *dtype, size_t dimensions,
                   const size_t *shape, const void *data, struct dsnet_error *error) {
  int result = npz_writer_begin(w, name, dtype, dimensions, shape, error);
  if (result < 0)
    return result;
  const struct written *entry = &w->entries[w->count - 1];
  result = npz_writer_append(w, data, (size_t)(w->expected - entry->size), error);
  return result < 0 ? result : npz_writer_end(w, error);
}

// One character of UTF-8 at *text into *code, and *text moved past it. False when malformed
// (overlong forms, surrogates and what is beyond U+10FFFF included).
static bool take_utf8(const char **text, uint32_t *code) {
  const uint8_t *at = (const uint8_t *)*text;
  size_t length = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if ((at[0] >= 0x80 && at[0] < 0xc0) || at[0] > 0xf4)
    return false;
  *code = length == 1 ? at[0] : at[0] & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80)
      return false;
    *code = *code << 6 | (at[i] & 0x3f);
  }
  *text += length;
  return *code >= smallest[length] && *code <= 0x10ffff && (*code < 0xd800 || *code > 0xdfff);
}

int npz_writer_add_text(struct npz_writer *w, const char *name, const char *text,
                        struct dsnet_error *error) {
  size_t capacity = strlen(text) + 1, count = 0;
  uint8_t *wide = calloc(capacity, 4);
  if (!wide)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = 0;
  while (result == 0 && *text) {
    uint32_t code;
    if (take_utf8(&text, &code))
      zip_put32(wide + 4 * count++, code);
    else
      result = dsnet_error_set(error, DSNET_EVALUE, "%.64s: its text is not UTF-8", name);
  }
  char dtype[32];
  // NumPy has no strings of no characters: its empty string is one NUL.
  snprintf(dtype, sizeof dtype, "<U%zu", count ? count : 1);
  if (result == 0)
    result = npz_writer_add(w, name, dtype, 0, NULL, wide, error);
  free(wide);
  return result;
}

// The zip64 fields of a central header: those that are saturated in it. Returns their length.
static size_t put_central_extra(const struct written *entry, uint8_t extra[28]) {
  uint8_t *p = extra + 4;
  if (entry->size >= SATURATED)
    p = zip_put64(p, entry->size);
  if (entry->compressed >= SATURATED)
    p = zip_put64(p, entry->compressed);
  if (entry->header >= SATURATED)
    p = zip_put64(p, entry->header);
  if (p == extra + 4)
    return 0;
  zip_put16(extra, ZIP_EXTRA_ZIP64);
  zip_put16(extra + 2, (uint32_t)(p - extra - 4));
  return (size_t)(p - extra);
}

static void put_central(struct npz_writer *w, const struct written *entry) {
  uint8_t header[ZIP_CENTRAL_SIZE], extra[28];
  size_t extra_length = put_central_extra(entry, extra);
  uint8_t *p = zip_put32(header, ZIP_CENTRAL_SIGNATURE);
  p = zip_put16(p, VERSION_ZIP64 | MADE_BY_UNIX);
  uint8_t *sizes = p + 14;
  p = put_common(w, entry, p, false);
  zip_put32(sizes, entry->compressed < SATURATED ? (uint32_t)entry->compressed : SATURATED);
  zip_put32(sizes + 4, entry->size < SATURATED ? (uint32_t)entry->size : SATURATED);
  p = zip_put16(p, (uint32_t)extra_length);
  p = zip_put16(p, 0); // comment
  p = zip_put16(p, 0); // disk
  p = zip_put16(p, 0); // internal attributes
  p = zip_put32(p, ATTRIBUTES);
  zip_put32(p, entry->header < SATURATED ? (uint32_t)entry->header : SATURATED);
  file_writer_append(w->file, header, sizeof header, &w->failure);
  file_writer_append(w->file, entry->name, strlen(entry->name), &w->failure);
  file_writer_append(w->file, extra, extra_length, &w->failure);
}

static void put_end64(struct npz_writer *w, uint64_t offset, uint64_t size) {
  uint8_t record[ZIP_END64_SIZE + ZIP_LOCATOR64_SIZE];
  uint8_t *p = zip_put32(record, ZIP_END64_SIGNATURE);
  p = zip_put64(p, ZIP_END64_SIZE - 12);
  p = zip_put16(p, VERSION_ZIP64 | MADE_BY_UNIX);
  p = zip_put16(p, VERSION_ZIP64);
  p = zip_put64(p, 0); // this disk, the directory's disk
  p = zip_put64(p, w->count);
  p = zip_put64(p, w->count);
  p = zip_put64(p, size);
  p = zip_put64(p, offset);
  p = zip_put32(p, ZIP_LOCATOR64_SIGNATURE);
  p = zip_put32(p, 0); // disk of the record before
  p = zip_put64(p, offset + size);
  zip_put32(p, 1); // disks
  file_writer_append(w->file, record, sizeof record, &w->failure);
}

static void put_directory(struct npz_writer *w) {
  uint64_t offset = file_writer_size(w->file);
  for (size_t i = 0; i < w->count; i++)
    put_central(w, &w->entries[i]);
  uint64_t size = file_writer_size(w->file) - offset;
  if (w->count >= 0xffff || size >= SATURATED || offset >= SATURATED)
    put_end64(w, offset, size);
  uint32_t count = w->count < 0xffff ? (uint32_t)w->count : 0xffff;
  uint8_t end[ZIP_END_SIZE];
  uint8_t *p = zip_put32(end, ZIP_END_SIGNATURE);
  p = zip_put32(p, 0); // this disk, the directory's disk
  p = zip_put16(p, count);
  p = zip_put16(p, count);
  p = zip_put32(p, size < SATURATED ? (uint32_t)size : SATURATED);
  p = zip_put32(p, offset < SATURATED ? (uint32_t)offset : SATURATED);
  zip_put16(p, 0); // comment
  file_writer_append(w->file, end, sizeof end, &w->failure);
}

int npz_writer_close(struct npz_writer *w, struct dsnet_error *error) {
  if (w->failure.code == DSNET_OK && w->active)
    dsnet_error_set(&w->failure, DSNET_EUSAGE, "%s: was not ended", w->entries[w->count - 1].name);
  if (w->failure.code == DSNET_OK)
    put_directory(w);
  int result = answer(w, error);
  if (result == 0) {
    result = file_writer_commit(w->file, error);
    w->file = NULL;
  }
  npz_writer_abort(w);
  return result;
}
