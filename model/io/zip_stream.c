// SPDX-License-Identifier: Apache-2.0
// One entry of a zip archive as a stream: stored, or inflated by zlib into the caller's own memory.
#include "io/zip.h"

#include <stdlib.h>

#include <zlib.h>

#define INPUT_SIZE 32768
// The most that deflate can expand: a match of 258 bytes in two bits.
#define DEFLATE_RATIO 1032
// zlib counts in unsigned int.
#define PIECE_MAX (1u << 30)

struct zip_stream {
  const struct zip_source *source;
  const struct zip_entry *entry;
  uint64_t consumed; // compressed bytes taken from the source
  uint64_t produced;
  uint32_t crc;
  bool ended; // the deflate stream has said so
  z_stream z;
  uint8_t input[INPUT_SIZE];
};

static int check_readable(const struct zip_entry *entry, struct dsnet_error *error) {
  if (entry->encrypted)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "is encrypted");
  if (entry->method != ZIP_STORED && entry->method != ZIP_DEFLATED)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED,
                           "is compressed with method %d (only stored and deflate can be read)",
                           entry->method);
  if (entry->method == ZIP_STORED && entry->size != entry->compressed)
    return dsnet_error_set(error, DSNET_EFORMAT, "is stored with two different sizes");
  if (entry->method == ZIP_DEFLATED && entry->size / DEFLATE_RATIO > entry->compressed)
    return dsnet_error_set(error, DSNET_EFORMAT,
                           "claims %llu bytes, which its %llu compressed ones cannot hold",
                           (unsigned long long)entry->size, (unsigned long long)entry->compressed);
  return 0;
}

int zip_stream_open(struct zip_stream **stream, const struct zip *zip,
                    const struct zip_entry *entry, struct dsnet_error *error) {
  *stream = NULL;
  int result = check_readable(entry, error);
  if (result < 0)
    return result;
  struct zip_stream *s = calloc(1, sizeof *s);
  if (!s)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  s->source = &zip->source;
  s->entry = entry;
  if (entry->method == ZIP_DEFLATED && inflateInit2(&s->z, -MAX_WBITS) != Z_OK) {
    free(s);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  *stream = s;
  return 0;
}

void zip_stream_close(struct zip_stream *s) {
  if (!s)
    return;
  if (s->entry->method == ZIP_DEFLATED)
    inflateEnd(&s->z);
  free(s);
}

static int read_stored(struct zip_stream *s, uint8_t *data, size_t size,
                       struct dsnet_error *error) {
  int result = zip_source_read(s->source, s->entry->data + s->consumed, data, size, error);
  s->consumed += size;
  return result;
}

static int refill(struct zip_stream *s, struct dsnet_error *error) {
  uint64_t left = s->entry->compressed - s->consumed;
  size_t size = left < INPUT_SIZE ? (size_t)left : INPUT_SIZE;
  if (size == 0)
    return dsnet_error_set(error, DSNET_EFORMAT, "its compressed data is cut off");
  int result = zip_source_read(s->source, s->entry->data + s->consumed, s->input, size, error);
  s->consumed += size;
  s->z.next_in = s->input;
  s->z.avail_in = (unsigned)size;
  return result;
}

// Inflates until `size` bytes have come, or the stream has ended; *got says how many came.
static int inflate_some(struct zip_stream *s, uint8_t *data, unsigned size, unsigned *got,
                        struct dsnet_error *error) {
  s->z.next_out = data;
  s->z.avail_out = size;
  while (s->z.avail_out && !s->ended) {
    int result = s->z.avail_in == 0 ? refill(s, error) : 0;
    if (result < 0)
      return result;
    int status = inflate(&s->z, Z_NO_FLUSH);
    if (status == Z_STREAM_END)
      s->ended = true;
    else if (status == Z_MEM_ERROR)
      return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
    else if (status != Z_OK)
      return dsnet_error_set(error, DSNET_EFORMAT, "its compressed data is damaged");
  }
  *got = size - s->z.avail_out;
  return 0;
}

static int read_deflated(struct zip_stream *s, uint8_t *data, unsigned size,
                         struct dsnet_error *error) {
  unsigned got;
  int result = inflate_some(s, data, size, &got, error);
  if (result == 0 && got < size)
    return dsnet_error_set(error, DSNET_EFORMAT, "holds fewer bytes than the directory says");
  return result;
}

int zip_stream_read(struct zip_stream *s, void *data, size_t size, struct dsnet_error *error) {
  uint8_t *at = data;
  if (size > s->entry->size - s->produced)
    return dsnet_error_set(error, DSNET_EFORMAT, "is shorter than it has to be");
  while (size) {
    unsigned piece = size < PIECE_MAX ? (unsigned)size : PIECE_MAX;
    int result = s->entry->method == ZIP_STORED ? read_stored(s, at, piece, error)
                                                : read_deflated(s, at, piece, error);
    if (result < 0)
      return result;
    s->crc = (uint32_t)crc32(s->crc, at, piece);
    s->produced += piece;
    at += piece;
    size -= piece;
  }
  return 0;
}

int zip_stream_finish(struct zip_stream *s, struct dsnet_error *error) {
  uint8_t surplus;
  unsigned got = 0;
  if (s->produced != s->entry->size)
    return dsnet_error_set(error, DSNET_EFORMAT, "is longer than it has to be");
  if (s->entry->method == ZIP_DEFLATED) {
    int result = inflate_some(s, &surplus, 1, &got, error);
    if (result < 0)
      return result;
    if (got || s->z.avail_in || s->consumed != s->entry->compressed)
      return dsnet_error_set(error, DSNET_EFORMAT, "holds more bytes than the directory says");
  }
  if (s->crc != s->entry->crc)
    return dsnet_error_set(error, DSNET_EFORMAT, "its checksum (CRC-32) is wrong");
  return 0;
}
