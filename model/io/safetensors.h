// SPDX-License-Identifier: Apache-2.0
// Safetensors files (huggingface.co/docs/safetensors): u64 little-endian length n of the header,
// then n bytes of JSON, then the tensors' bytes:
//   {"__metadata__": {"key": "text", ...},
//    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
// Offsets count from the end of the header. Everything is row-major and little-endian; the tensors
// cover the rest of the file exactly, without gaps or overlaps. A file is hostile until opened: the
// header is checked whole, and a failure names the tensor it is about.
#ifndef DSNET_IO_SAFETENSORS_H
#define DSNET_IO_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SAFETENSORS_DIMENSIONS_MAX 8
#define SAFETENSORS_TENSORS_MAX    4096
#define SAFETENSORS_HEADER_MAX     ((size_t)1 << 20)
#define SAFETENSORS_FILE_MAX       ((size_t)4 << 30)

enum safetensors_type {
  SAFETENSORS_OTHER, // any type that is not read here: listed, and refused when asked for
  SAFETENSORS_F32,
  SAFETENSORS_F16,
  SAFETENSORS_BF16,
};

struct safetensors_tensor {
  const char *name;
  const char *type_name;
  enum safetensors_type type;
  size_t dimensions;
  size_t shape[SAFETENSORS_DIMENSIONS_MAX];
  size_t count; // product of shape, 1 for a scalar
  const uint8_t *data;
  size_t bytes;
};

// An opened file; const after opening, any thread.
struct safetensors;

// Reads a whole file.
int safetensors_open(struct safetensors **file, const char *path, struct dsnet_error *error);
// The caller keeps the bytes until safetensors_close.
int safetensors_open_memory(struct safetensors **file, const void *bytes, size_t size,
                            struct dsnet_error *error);
void safetensors_close(struct safetensors *file);

// The tensors, in the order of their data.
size_t safetensors_count(const struct safetensors *file);
const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index);
// NULL when there is none of that name.
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);
// An entry of "__metadata__", NULL when there is none. Lives as long as the file.
const char *safetensors_metadata(const struct safetensors *file, const char *key);

// Converts tensor `name`, which must have exactly this shape and finite values, into out
// [product of shape]. DSNET_EMISSING, DSNET_EMISMATCH (shape), DSNET_EUNSUPPORTED (type) or
// DSNET_EVALUE (not finite); `out` is then undefined.
int safetensors_read_f32(const struct safetensors *file, const char *name, size_t dimensions,
                         const size_t *shape, float *out, struct dsnet_error *error);

// What is to be written.
struct safetensors_array {
  const char *name;
  size_t dimensions;
  size_t shape[SAFETENSORS_DIMENSIONS_MAX];
  const float *data;
};

struct safetensors_text {
  const char *key, *value;
};

// Writes a file atomically, all tensors as SAFETENSORS_F32 or SAFETENSORS_F16, in the order given,
// each aligned to its own width. The same input gives the same bytes. A value that is not finite in
// the type is DSNET_EVALUE and nothing is written.
int safetensors_write(const char *path, enum safetensors_type type,
                      const struct safetensors_array *arrays, size_t count,
                      const struct safetensors_text *metadata, size_t metadata_count,
                      struct dsnet_error *error);

#endif
