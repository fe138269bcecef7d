// SPDX-License-Identifier: Apache-2.0
#include "io/npz_layout.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "io/npy.h"
#include "io/zip_format.h"

#define VERSION         20u
#define VERSION_64      45u
#define DATE            0x21u // 1980-01-01: archives of the same arrays are the same
#define DESCRIPTOR_SIZE 24u
#define DESCRIPTOR_SIGN 0x08074b50u
#define EXTRA_SIZE      20u // both sizes
#define MASKED          0xffffffffu

static void append(struct npz_layout *layout, const void *data, size_t size) {
  memcpy(layout->prefix + layout->prefix_size, data, size);
  layout->prefix_size += size;
}

// The part of a local and a central header that both have, from the version on.
static uint8_t *put_common(uint8_t *p, const struct npz_layout_entry *entry, bool large,
                           uint32_t crc) {
  p = zip_put16(p, large ? VERSION_64 : VERSION);
  p = zip_put16(p, large ? ZIP_FLAG_DATA_DESCRIPTOR : 0);
  p = zip_put16(p, 0); // stored
  p = zip_put16(p, 0);
  p = zip_put16(p, DATE);
  p = zip_put32(p, crc);
  p = zip_put32(p, large ? MASKED : (uint32_t)entry->size);
  p = zip_put32(p, large ? MASKED : (uint32_t)entry->size);
  p = zip_put16(p, (uint32_t)strlen(entry->name));
  return zip_put16(p, large ? EXTRA_SIZE : 0);
}

static uint8_t *put_name(uint8_t *p, const struct npz_layout_entry *entry, bool large) {
  size_t length = strlen(entry->name);
  memcpy(p, entry->name, length);
  p += length;
  if (!large)
    return p;
  p = zip_put16(p, ZIP_EXTRA_ZIP64);
  p = zip_put16(p, EXTRA_SIZE - 4);
  p = zip_put64(p, entry->size);
  return zip_put64(p, entry->size);
}

static int add(struct npz_layout *layout, const char *name, const char *dtype, size_t dimensions,
               const size_t *shape, const void *data, struct dsnet_error *error) {
  struct npy_info info = {0};
  char npy[NPY_HEADER_TEXT_MAX];
  uint8_t local[ZIP_LOCAL_SIZE + NPZ_LAYOUT_NAME_MAX + EXTRA_SIZE];
  bool large = !data;
  int result = npy_type_parse(dtype, strlen(dtype), &info);
  if (result == 0)
    result = npy_shape_set(&info, dimensions, shape, error);
  if (result < 0)
    return result;
  size_t bytes = npy_bytes(&info), header = npy_header_format(dtype, dimensions, shape, npy);
  size_t inside = large ? 0 : bytes;
  if (layout->count == NPZ_LAYOUT_ARRAYS_MAX || strlen(name) + 5 > NPZ_LAYOUT_NAME_MAX ||
      inside > NPZ_LAYOUT_PREFIX_MAX ||
      layout->prefix_size + sizeof local + header + inside > NPZ_LAYOUT_PREFIX_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "%s: does not fit beside the large array", name);
  struct npz_layout_entry *entry = &layout->entries[layout->count++];
  entry->offset = layout->prefix_size;
  entry->size = header + bytes;
  snprintf(entry->name, sizeof entry->name, "%s.npy", name);
  entry->crc = npz_layout_crc(0, npy, header);
  if (!large)
    entry->crc = npz_layout_crc(entry->crc, data, bytes);
  uint8_t *p =
      put_common(zip_put32(local, ZIP_LOCAL_SIGNATURE), entry, large, large ? 0 : entry->crc);
  p = put_name(p, entry, large);
  append(layout, local, (size_t)(p - local));
  append(layout, npy, header);
  if (!large)
    append(layout, data, bytes);
  else
    layout->array_size = bytes;
  return 0;
}

int npz_layout_add(struct npz_layout *layout, const char *name, const char *dtype,
                   size_t dimensions, const size_t *shape, const void *data,
                   struct dsnet_error *error) {
  return add(layout, name, dtype, dimensions, shape, data, error);
}

static size_t directory_size(const struct npz_layout *layout) {
  size_t size = EXTRA_SIZE;
  for (size_t i = 0; i < layout->count; i++)
    size += ZIP_CENTRAL_SIZE + strlen(layout->entries[i].name);
  return size;
}

int npz_layout_end(struct npz_layout *layout, const char *name, const char *dtype,
                   size_t dimensions, const size_t *shape, struct dsnet_error *error) {
  int result = add(layout, name, dtype, dimensions, shape, NULL, error);
  layout->tail_size =
      DESCRIPTOR_SIZE + directory_size(layout) + ZIP_END64_SIZE + ZIP_LOCATOR64_SIZE + ZIP_END_SIZE;
  return result;
}

uint32_t npz_layout_crc_begin(const struct npz_layout *layout) {
  return layout->entries[layout->count - 1].crc;
}

uint32_t npz_layout_crc(uint32_t crc, const void *data, size_t size) {
  return (uint32_t)crc32_z(crc, data, size);
}

static uint8_t *put_directory(const struct npz_layout *layout, uint32_t crc, uint8_t *p) {
  for (size_t i = 0; i < layout->count; i++) {
    const struct npz_layout_entry *entry = &layout->entries[i];
    bool large = i + 1 == layout->count;
    p = zip_put32(p, ZIP_CENTRAL_SIGNATURE);
    p = zip_put16(p, large ? VERSION_64 : VERSION);
    p = put_common(p, entry, large, large ? crc : entry->crc);
    p = zip_put16(p, 0); // comment
    p = zip_put16(p, 0); // disk
    p = zip_put16(p, 0); // attributes
    p = zip_put32(p, 0);
    p = zip_put32(p, (uint32_t)entry->offset);
    p = put_name(p, entry, large);
  }
  return p;
}

void npz_layout_tail(const struct npz_layout *layout, uint32_t crc,
                     uint8_t tail[NPZ_LAYOUT_TAIL_MAX]) {
  uint64_t size = layout->entries[layout->count - 1].size, count = layout->count;
  uint64_t directory = layout->prefix_size + layout->array_size + DESCRIPTOR_SIZE;
  uint64_t length = directory_size(layout), end = directory + length;
  uint8_t *p = zip_put32(tail, DESCRIPTOR_SIGN);
  p = zip_put64(zip_put64(zip_put32(p, crc), size), size);
  p = put_directory(layout, crc, p);
  p = zip_put64(zip_put32(p, ZIP_END64_SIGNATURE), ZIP_END64_SIZE - 12);
  p = zip_put32(zip_put16(zip_put16(p, VERSION_64), VERSION_64), 0);
  p = zip_put64(zip_put64(zip_put32(p, 0), count), count);
  p = zip_put64(zip_put64(p, length), directory);
  p = zip_put32(zip_put64(zip_put32(zip_put32(p, ZIP_LOCATOR64_SIGNATURE), 0), end), 1);
  p = zip_put32(zip_put32(p, ZIP_END_SIGNATURE), 0);
  p = zip_put16(zip_put16(p, (uint32_t)count), (uint32_t)count);
  p = zip_put32(zip_put32(p, (uint32_t)length), MASKED);
  zip_put16(p, 0);
}
