// SPDX-License-Identifier: Apache-2.0
// The directory of a zip archive: found from the end, parsed, and checked against the local headers
// and against itself, before anything else looks at the archive.
#include "io/zip.h"

#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/zip_format.h"

#define COMMENT_MAX 65535u

int zip_source_read(const struct zip_source *source, uint64_t offset, void *data, size_t size,
                    struct dsnet_error *error) {
  if (offset > source->size || size > source->size - offset)
    return dsnet_error_set(error, DSNET_EFORMAT, "is not a complete zip archive");
  if (!source->memory)
    return file_read_at(source->descriptor, offset, data, size, error);
  if (size)
    memcpy(data, source->memory + offset, size);
  return 0;
}

// Where the directory is, as the end records say.
struct extent {
  uint64_t offset, size, count;
  uint64_t limit; // offset of the first end record: the directory ends at or before it
};

// The last record whose comment reaches exactly to the end of the archive.
static int find_end(const struct zip_source *source, uint8_t record[ZIP_END_SIZE], uint64_t *offset,
                    struct dsnet_error *error) {
  size_t tail = ZIP_END_SIZE + COMMENT_MAX;
  if (tail > source->size)
    tail = (size_t)source->size;
  if (tail < ZIP_END_SIZE)
    return dsnet_error_set(error, DSNET_EFORMAT, "is not a zip archive (too short)");
  uint8_t *bytes = malloc(tail);
  if (!bytes)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = zip_source_read(source, source->size - tail, bytes, tail, error);
  if (result < 0)
    goto done;
  result = DSNET_EFORMAT;
  for (size_t at = tail - ZIP_END_SIZE + 1; at-- > 0;) {
    if (zip_get32(bytes + at) != ZIP_END_SIGNATURE ||
        at + ZIP_END_SIZE + zip_get16(bytes + at + 20) != tail)
      continue;
    memcpy(record, bytes + at, ZIP_END_SIZE);
    *offset = source->size - tail + at;
    result = 0;
    break;
  }
  if (result < 0)
    dsnet_error_set(error, DSNET_EFORMAT, "is not a zip archive, or is cut off (no end record)");
done:
  free(bytes);
  return result;
}

// The zip64 end record that the locator in front of the end record points to.
static int read_end64(const struct zip_source *source, const uint8_t *locator,
                      uint64_t locator_offset, struct extent *extent, struct dsnet_error *error) {
  uint8_t record[ZIP_END64_SIZE];
  uint64_t offset = zip_get64(locator + 8);
  if (offset > locator_offset || locator_offset - offset < ZIP_END64_SIZE)
    return dsnet_error_set(error, DSNET_EFORMAT, "zip64 end record is out of place");
  int result = zip_source_read(source, offset, record, sizeof record, error);
  if (result < 0)
    return result;
  if (zip_get32(record) != ZIP_END64_SIGNATURE || zip_get64(record + 4) < ZIP_END64_SIZE - 12)
    return dsnet_error_set(error, DSNET_EFORMAT, "zip64 end record is malformed");
  if (zip_get32(record + 16) != 0 || zip_get32(record + 20) != 0 ||
      zip_get64(record + 24) != zip_get64(record + 32))
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "is split over several disks");
  *extent = (struct extent){.count = zip_get64(record + 32),
                            .size = zip_get64(record + 40),
                            .offset = zip_get64(record + 48),
                            .limit = offset};
  return 0;
}

static int find_directory(const struct zip_source *source, struct extent *extent,
                          struct dsnet_error *error) {
  uint8_t end[ZIP_END_SIZE], locator[ZIP_LOCATOR64_SIZE] = {0};
  uint64_t end_offset;
  int result = find_end(source, end, &end_offset, error);
  if (result < 0)
    return result;
  *extent = (struct extent){.count = zip_get16(end + 10),
                            .size = zip_get32(end + 12),
                            .offset = zip_get32(end + 16),
                            .limit = end_offset};
  bool saturated =
      extent->count == 0xffff || extent->size == 0xffffffff || extent->offset == 0xffffffff;
  if (saturated && end_offset >= ZIP_LOCATOR64_SIZE) {
    uint64_t locator_offset = end_offset - ZIP_LOCATOR64_SIZE;
    result = zip_source_read(source, locator_offset, locator, sizeof locator, error);
    if (result < 0)
      return result;
    if (zip_get32(locator) == ZIP_LOCATOR64_SIGNATURE)
      return read_end64(source, locator, locator_offset, extent, error);
  }
  if (zip_get16(end + 4) != 0 || zip_get16(end + 6) != 0 ||
      zip_get16(end + 8) != zip_get16(end + 10))
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "is split over several disks");
  return 0;
}

static int check_extent(const struct extent *extent, struct dsnet_error *error) {
  if (extent->offset > extent->limit || extent->size > extent->limit - extent->offset)
    return dsnet_error_set(error, DSNET_EFORMAT, "zip directory is out of place");
  if (extent->size > ZIP_DIRECTORY_MAX || extent->count > ZIP_ENTRIES_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "zip directory is too large (%llu entries)",
                           (unsigned long long)extent->count);
  if (extent->count > extent->size / ZIP_CENTRAL_SIZE)
    return dsnet_error_set(error, DSNET_EFORMAT, "zip directory is shorter than its entries");
  return 0;
}

// Replaces the sizes and the offset that are saturated in a header by those of its zip64 extra
// field (APPNOTE 4.5.3: only those, in this order). `header` is NULL for a local header.
static int apply_zip64(const uint8_t *extra, size_t length, uint64_t *size, uint64_t *compressed,
                       uint64_t *header) {
  uint64_t *wanted[3] = {size, compressed, header};
  while (length >= 4) {
    size_t id = zip_get16(extra), bytes = zip_get16(extra + 2);
    extra += 4;
    length -= 4;
    if (bytes > length)
      return DSNET_EFORMAT;
    if (id == ZIP_EXTRA_ZIP64) {
      const uint8_t *at = extra, *end = extra + bytes;
      for (int i = 0; i < 3; i++) {
        if (!wanted[i] || *wanted[i] != 0xffffffff)
          continue;
        if (end - at < 8)
          return DSNET_EFORMAT;
        *wanted[i] = zip_get64(at);
        at += 8;
      }
      return 0;
    }
    extra += bytes;
    length -= bytes;
  }
  return 0;
}

// Parses one directory entry of at most `length` bytes; *used is what it takes. The name is
// allocated.
static int parse_central(const uint8_t *record, size_t length, struct zip_entry *entry,
                         size_t *used, struct dsnet_error *error) {
  if (length < ZIP_CENTRAL_SIZE || zip_get32(record) != ZIP_CENTRAL_SIGNATURE)
    return dsnet_error_set(error, DSNET_EFORMAT, "is malformed");
  size_t name = zip_get16(record + 28), extra = zip_get16(record + 30),
         comment = zip_get16(record + 32);
  *used = ZIP_CENTRAL_SIZE + name + extra + comment;
  if (*used > length)
    return dsnet_error_set(error, DSNET_EFORMAT, "reaches beyond the directory");
  const uint8_t *text = record + ZIP_CENTRAL_SIZE;
  if (memchr(text, 0, name))
    return dsnet_error_set(error, DSNET_EFORMAT, "has a NUL in its name");
  unsigned flags = zip_get16(record + 8);
  entry->encrypted = flags & (ZIP_FLAG_ENCRYPTED | ZIP_FLAG_STRONG | ZIP_FLAG_MASKED);
  entry->method = zip_get16(record + 10);
  entry->crc = zip_get32(record + 16);
  entry->compressed = zip_get32(record + 20);
  entry->size = zip_get32(record + 24);
  entry->header = zip_get32(record + 42);
  if (zip_get16(record + 34) != 0)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "is on another disk");
  if (apply_zip64(text + name, extra, &entry->size, &entry->compressed, &entry->header) < 0)
    return dsnet_error_set(error, DSNET_EFORMAT, "has a malformed extra field");
  entry->name = strndup((const char *)text, name);
  entry->name_length = name;
  if (!entry->name)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  return 0;
}

// Sizes and CRC of the local header, where it has them, are those of the directory.
static int check_local_sizes(const uint8_t *local, const uint8_t *extra, size_t extra_length,
                             const struct zip_entry *entry, struct dsnet_error *error) {
  uint64_t compressed = zip_get32(local + 18), size = zip_get32(local + 22);
  if (apply_zip64(extra, extra_length, &size, &compressed, NULL) < 0)
    return dsnet_error_set(error, DSNET_EFORMAT, "has a malformed local extra field");
  if (zip_get16(local + 6) & ZIP_FLAG_DATA_DESCRIPTOR)
    return 0; // they follow the data instead
  if (zip_get32(local + 14) != entry->crc || compressed != entry->compressed || size != entry->size)
    return dsnet_error_set(error, DSNET_EFORMAT, "its local header contradicts the directory");
  return 0;
}

// Checks the local header of an entry and finds its data. `limit`: where the directory begins.
static int check_local(const struct zip_source *source, uint64_t limit, struct zip_entry *entry,
                       struct dsnet_error *error) {
  uint8_t local[ZIP_LOCAL_SIZE];
  if (entry->header > limit || limit - entry->header < ZIP_LOCAL_SIZE)
    return dsnet_error_set(error, DSNET_EFORMAT, "its local header is out of place");
  int result = zip_source_read(source, entry->header, local, sizeof local, error);
  if (result < 0)
    return result;
  size_t name = zip_get16(local + 26), extra = zip_get16(local + 28);
  if (zip_get32(local) != ZIP_LOCAL_SIGNATURE || name != entry->name_length)
    return dsnet_error_set(error, DSNET_EFORMAT, "its local header is malformed");
  entry->data = entry->header + ZIP_LOCAL_SIZE + name + extra;
  if (entry->data > limit || entry->compressed > limit - entry->data)
    return dsnet_error_set(error, DSNET_EFORMAT, "its data reaches into the directory");
  uint8_t *variable = malloc(name + extra + 1);
  if (!variable)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  result = zip_source_read(source, entry->header + ZIP_LOCAL_SIZE, variable, name + extra, error);
  if (result == 0 && (memcmp(variable, entry->name, name) || zip_get16(local + 8) != entry->method))
    result =
        dsnet_error_set(error, DSNET_EFORMAT, "its local header contradicts the directory's name");
  if (result == 0)
    result = check_local_sizes(local, variable + name, extra, entry, error);
  if (zip_get16(local + 6) & (ZIP_FLAG_ENCRYPTED | ZIP_FLAG_STRONG | ZIP_FLAG_MASKED))
    entry->encrypted = true;
  free(variable);
  return result;
}

static int by_header(const void *left, const void *right) {
  const struct zip_entry *a = *(const struct zip_entry *const *)left,
                         *b = *(const struct zip_entry *const *)right;
  return (a->header > b->header) - (a->header < b->header);
}

static int by_name(const void *left, const void *right) {
  const struct zip_entry *a = *(const struct zip_entry *const *)left,
                         *b = *(const struct zip_entry *const *)right;
  return strcmp(a->name, b->name);
}

// No two entries share bytes or a name.
static int check_disjoint(const struct zip *zip, struct dsnet_error *error) {
  const struct zip_entry **sorted = malloc((zip->count + 1) * sizeof(const struct zip_entry *));
  if (!sorted)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  for (size_t i = 0; i < zip->count; i++)
    sorted[i] = &zip->entries[i];
  int result = 0;
  qsort(sorted, zip->count, sizeof *sorted, by_header);
  for (size_t i = 1; result == 0 && i < zip->count; i++)
    if (sorted[i - 1]->data + sorted[i - 1]->compressed > sorted[i]->header)
      result = dsnet_error_set(error, DSNET_EFORMAT, "zip entries overlap");
  qsort(sorted, zip->count, sizeof *sorted, by_name);
  for (size_t i = 1; result == 0 && i < zip->count; i++)
    if (!strcmp(sorted[i - 1]->name, sorted[i]->name))
      result = dsnet_error_set(error, DSNET_EFORMAT, "two zip entries have one name");
  free(sorted);
  return result;
}

static int parse_directory(struct zip *zip, const uint8_t *bytes, const struct extent *extent,
                           struct dsnet_error *error) {
  size_t length = (size_t)extent->size, used;
  while (zip->count < extent->count) {
    struct zip_entry *entry = &zip->entries[zip->count];
    int result = parse_central(bytes, length, entry, &used, error);
    if (result < 0) {
      dsnet_error_prefix(error, "zip entry %zu", zip->count);
      return result;
    }
    zip->count++;
    bytes += used;
    length -= used;
    result = check_local(&zip->source, extent->offset, entry, error);
    if (result < 0) {
      dsnet_error_prefix(error, "zip entry %zu", zip->count - 1);
      return result;
    }
  }
  if (length)
    return dsnet_error_set(error, DSNET_EFORMAT, "zip directory is longer than its entries");
  return check_disjoint(zip, error);
}

int zip_open(struct zip *zip, struct zip_source source, struct dsnet_error *error) {
  *zip = (struct zip){.source = source};
  struct extent extent = {0};
  int result = find_directory(&source, &extent, error);
  if (result == 0)
    result = check_extent(&extent, error);
  if (result < 0)
    return result;
  uint8_t *bytes = malloc((size_t)extent.size + 1);
  zip->entries = calloc((size_t)extent.count + 1, sizeof *zip->entries);
  if (!bytes || !zip->entries)
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  else
    result = zip_source_read(&source, extent.offset, bytes, (size_t)extent.size, error);
  if (result == 0)
    result = parse_directory(zip, bytes, &extent, error);
  free(bytes);
  if (result < 0)
    zip_deinit(zip);
  return result;
}

void zip_deinit(struct zip *zip) {
  for (size_t i = 0; i < zip->count; i++)
    free(zip->entries[i].name);
  free(zip->entries);
  *zip = (struct zip){0};
}
