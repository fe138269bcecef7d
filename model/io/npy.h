// SPDX-License-Identifier: Apache-2.0
// One npy member (NumPy's "NPY format" document, versions 1.0 to 3.0), inside the io folder:
//
//   "\x93NUMPY" major minor   length of the header: u16 in version 1, u32 in 2 and 3
//   header                    a Python dictionary as text: {'descr': '<f4', 'fortran_order': False,
//                             'shape': (3, 4), }, then spaces and a newline
//   elements                  product(shape) * width bytes
//
// and the conversion of elements to what the library computes with.
#ifndef DSNET_IO_NPY_H
#define DSNET_IO_NPY_H

#include "io/npz.h"

#define NPY_PREFIX_SIZE     8 // magic and version
#define NPY_HEADER_MAX      65535
#define NPY_ELEMENT_MAX     (1u << 28) // bytes of one string
#define NPY_HEADER_TEXT_MAX 512        // what npy_header_format writes

// The type of "<f4", ">i8", "|b1", "<U6", ... into kind, width and big_endian. '=' and '|' count as
// little-endian. Well-formed types that are never read (objects, complex, dates) are NPY_OTHER;
// text that is no type at all is DSNET_EFORMAT.
int npy_type_parse(const char *text, size_t length, struct npy_info *info);

// The dictionary. All three keys, each once, and nothing else; a shape whose byte count overflows
// is refused here.
int npy_header_parse(const char *text, size_t length, struct npy_info *info,
                     struct dsnet_error *error);

// Fills shape and count of `info` (whose type is set), refusing an overflow of count * width.
int npy_shape_set(struct npy_info *info, size_t dimensions, const size_t *shape,
                  struct dsnet_error *error);

// A whole version 1.0 header, magic included, padded so that it is a multiple of 64 bytes. Returns
// its length.
size_t npy_header_format(const char *type, size_t dimensions, const size_t *shape,
                         char text[NPY_HEADER_TEXT_MAX]);

// The number of bytes an array of this type and shape takes.
size_t npy_bytes(const struct npy_info *info);

enum npy_target { NPY_TO_F32, NPY_TO_F64, NPY_TO_I64 };

// Converts the elements of an array piece by piece, in the order of the file, into a row-major
// block.
struct npy_convert {
  const struct npy_info *info;
  enum npy_target target;
  void *out;
  size_t index;                        // where in the block the next element goes
  size_t position[NPY_DIMENSIONS_MAX]; // its subscripts, kept for Fortran order only
};

#define NPY_PIECE 2048 // elements converted at a time

// DSNET_EUNSUPPORTED when the type cannot become the target.
int npy_convert_init(struct npy_convert *convert, const struct npy_info *info,
                     enum npy_target target, void *out, struct dsnet_error *error);
// `count` <= NPY_PIECE elements of info->width bytes. DSNET_EVALUE names the subscripts of a value
// that is not finite or does not fit.
int npy_convert_take(struct npy_convert *convert, const uint8_t *bytes, size_t count,
                     struct dsnet_error *error);

// One string element of kind U or S as UTF-8 up to its first NUL. DSNET_EVALUE when it is not
// well-formed text, DSNET_ELIMIT when it does not fit.
int npy_text(const struct npy_info *info, const uint8_t *bytes, char *text, size_t size,
             struct dsnet_error *error);

#endif
