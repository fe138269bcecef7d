// SPDX-License-Identifier: Apache-2.0
// Zip archives made by hand in tests, with every field open to lies. Only what the tests of npz and
// clips share.
#ifndef DSNET_TESTS_ARCHIVE_H
#define DSNET_TESTS_ARCHIVE_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "io/npy.h"
#include "io/zip_format.h"

#define ARCHIVE_SIZE    (1 << 20)
#define ARCHIVE_ENTRIES 16

struct archive_entry {
  char name[64];
  uint16_t method, flags;
  uint32_t crc;
  uint32_t compressed, size;
  uint32_t header; // offset
};

struct archive {
  uint8_t bytes[ARCHIVE_SIZE];
  size_t size;
  struct archive_entry entries[ARCHIVE_ENTRIES];
  size_t count;
  uint32_t directory;
};

static inline void archive_put(struct archive *a, const void *data, size_t size) {
  assert(size <= ARCHIVE_SIZE - a->size);
  memcpy(a->bytes + a->size, data, size);
  a->size += size;
}

// Appends the local header of `entry` and remembers it for the directory.
static inline struct archive_entry *archive_header(struct archive *a, struct archive_entry entry) {
  uint8_t header[ZIP_LOCAL_SIZE] = {0};
  entry.header = (uint32_t)a->size;
  zip_put32(header, ZIP_LOCAL_SIGNATURE);
  zip_put16(header + 6, entry.flags);
  zip_put16(header + 8, entry.method);
  zip_put32(header + 14, entry.crc);
  zip_put32(header + 18, entry.compressed);
  zip_put32(header + 22, entry.size);
  zip_put16(header + 26, (uint32_t)strlen(entry.name));
  archive_put(a, header, sizeof header);
  archive_put(a, entry.name, strlen(entry.name));
  a->entries[a->count] = entry;
  return &a->entries[a->count++];
}

// A whole entry: deflated with method 8, else as it is.
static inline struct archive_entry *archive_add(struct archive *a, const char *name, int method,
                                                const void *data, size_t size) {
  static uint8_t packed[ARCHIVE_SIZE];
  struct archive_entry entry = {.method = (uint16_t)method, .size = (uint32_t)size};
  snprintf(entry.name, sizeof entry.name, "%s", name);
  entry.crc = (uint32_t)crc32(0, data, (unsigned)size);
  const void *stored = data;
  size_t stored_size = size;
  if (method == 8) {
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)data,
                  .avail_in = (unsigned)size,
                  .next_out = packed,
                  .avail_out = sizeof packed};
    deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
    deflate(&z, Z_FINISH);
    stored = packed;
    stored_size = z.total_out;
    deflateEnd(&z);
  }
  entry.compressed = (uint32_t)stored_size;
  struct archive_entry *added = archive_header(a, entry);
  archive_put(a, stored, stored_size);
  return added;
}

// An array: `header` is the dictionary's text, put into a version 1.0 member with `data` behind.
static inline struct archive_entry *archive_add_npy(struct archive *a, const char *name, int method,
                                                    const char *header, const void *data,
                                                    size_t size) {
  static uint8_t member[ARCHIVE_SIZE];
  size_t length = strlen(header);
  memcpy(member, "\x93NUMPY\x01\x00", 8);
  zip_put16(member + 8, (uint32_t)length);
  memcpy(member + 10, header, length);
  if (size)
    memcpy(member + 10 + length, data, size);
  return archive_add(a, name, method, member, 10 + length + size);
}

// The directory and its end, from the entries as they now are.
static inline void archive_finish(struct archive *a) {
  a->directory = (uint32_t)a->size;
  for (size_t i = 0; i < a->count; i++) {
    const struct archive_entry *entry = &a->entries[i];
    uint8_t header[ZIP_CENTRAL_SIZE] = {0};
    zip_put32(header, ZIP_CENTRAL_SIGNATURE);
    zip_put16(header + 8, entry->flags);
    zip_put16(header + 10, entry->method);
    zip_put32(header + 16, entry->crc);
    zip_put32(header + 20, entry->compressed);
    zip_put32(header + 24, entry->size);
    zip_put16(header + 28, (uint32_t)strlen(entry->name));
    zip_put32(header + 42, entry->header);
    archive_put(a, header, sizeof header);
    archive_put(a, entry->name, strlen(entry->name));
  }
  uint8_t end[ZIP_END_SIZE] = {0};
  zip_put32(end, ZIP_END_SIGNATURE);
  zip_put16(end + 8, (uint32_t)a->count);
  zip_put16(end + 10, (uint32_t)a->count);
  zip_put32(end + 12, (uint32_t)a->size - a->directory);
  zip_put32(end + 16, a->directory);
  archive_put(a, end, sizeof end);
}

#endif
