// SPDX-License-Identifier: Apache-2.0
// NumPy archives. An npz is a zip file (PKWARE APPNOTE 6.3.x: stored or deflated entries, zip64) of
// npy members (NumPy's "NPY format" document: versions 1.0 to 3.0). Everything read is hostile
// until parsed: offsets, sizes, CRC, decompressed size, header text and finiteness are all checked,
// and a failure names the archive's array.
#ifndef DSNET_IO_NPZ_H
#define DSNET_IO_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define NPY_DIMENSIONS_MAX 8

enum npy_kind {
  NPY_FLOAT = 'f',
  NPY_INT = 'i',
  NPY_UINT = 'u',
  NPY_BOOL = 'b',
  NPY_UNICODE = 'U', // UTF-32, width is bytes of one element (4 per character)
  NPY_BYTES = 'S',
  NPY_OTHER = 'O', // objects, complex, records: may be listed, never read
};

struct npy_info {
  enum npy_kind kind;
  size_t width; // bytes of one element
  bool big_endian;
  bool fortran_order;
  size_t dimensions; // 0 for a scalar
  size_t shape[NPY_DIMENSIONS_MAX];
  size_t count; // product of shape, 1 for a scalar
};

// An archive opened for reading. One thread at a time.
struct npz;

// Opens a file (kept open until npz_close), or bytes that the caller keeps until npz_close. The
// directory is read and checked at once; arrays only when they are asked for.
int npz_open(struct npz **npz, const char *path, struct dsnet_error *error);
int npz_open_memory(struct npz **npz, const void *data, size_t size, struct dsnet_error *error);
void npz_close(struct npz *npz);

// The arrays in directory order; names are without ".npy".
size_t npz_count(const struct npz *npz);
const char *npz_name(const struct npz *npz, size_t index);
bool npz_has(const struct npz *npz, const char *name);

// Type and shape of an array. DSNET_EMISSING when it is not there.
int npz_info(struct npz *npz, const char *name, struct npy_info *info, struct dsnet_error *error);

// Read a whole numeric array, converted and put into row-major order, into a block that the caller
// frees with free(). `limit` bounds the element count (DSNET_ELIMIT). Floats must be finite
// (DSNET_EVALUE names the first index that is not). `info` may be NULL.
int npz_read_f32(struct npz *npz, const char *name, size_t limit, float **data,
                 struct npy_info *info, struct dsnet_error *error);
int npz_read_f64(struct npz *npz, const char *name, size_t limit, double **data,
                 struct npy_info *info, struct dsnet_error *error);
// Integers and booleans only; a value outside int64_t is DSNET_EVALUE.
int npz_read_i64(struct npz *npz, const char *name, size_t limit, int64_t **data,
                 struct npy_info *info, struct dsnet_error *error);
// A scalar or one-element string (kind U or S) as UTF-8, cut at the first NUL.
int npz_read_text(struct npz *npz, const char *name, char *text, size_t size,
                  struct dsnet_error *error);

// Records an error that a caller found in an array: "path: name: text", as the functions above do.
// Returns `code`.
int npz_error_set(const struct npz *npz, const char *name, struct dsnet_error *error,
                  enum dsnet_code code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

// An archive being written, deflated or stored, zip64 where it must be. The file appears under its
// name only when npz_writer_close succeeds (a temporary beside it is renamed over it); a failure
// leaves what was there before. The bytes depend only on the arrays: no time stamps.
struct npz_writer;

int npz_writer_open(struct npz_writer **writer, const char *path, bool deflate,
                    struct dsnet_error *error);
// dtype is NumPy's little-endian text: "<f4", "<f8", "<i8", "<u4", "|u1", "<U12" ...
int npz_writer_add(struct npz_writer *writer, const char *name, const char *dtype,
                   size_t dimensions, const size_t *shape, const void *data,
                   struct dsnet_error *error);
// The same in pieces, for arrays that are never whole in memory: begin, append until
// product(shape) * width bytes have been given, end (DSNET_EMISMATCH when they have not).
int npz_writer_begin(struct npz_writer *writer, const char *name, const char *dtype,
                     size_t dimensions, const size_t *shape, struct dsnet_error *error);
int npz_writer_append(struct npz_writer *writer, const void *data, size_t bytes,
                      struct dsnet_error *error);
int npz_writer_end(struct npz_writer *writer, struct dsnet_error *error);
// A scalar string, stored as <U.
int npz_writer_add_text(struct npz_writer *writer, const char *name, const char *text,
                        struct dsnet_error *error);
// Finishes and renames. The writer is gone afterwards, whatever is returned.
int npz_writer_close(struct npz_writer *writer, struct dsnet_error *error);
// Gives up: removes the temporary. NULL is allowed.
void npz_writer_abort(struct npz_writer *writer);

#endif
