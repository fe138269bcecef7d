// SPDX-License-Identifier: Apache-2.0
// Elements of an npy member, in whatever type, byte order and memory order they are stored, to the
// row-major float, double or int64_t blocks that the library computes with.
#include "io/npy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/half.h"

// One element as an unsigned number of `width` bytes.
static uint64_t load_bits(const uint8_t *p, size_t width, bool big_endian) {
  uint64_t bits = 0;
  for (size_t i = 0; i < width; i++)
    bits |= (uint64_t)p[big_endian ? width - 1 - i : i] << (8 * i);
  return bits;
}

static double bits_to_float(uint64_t bits, size_t width) {
  if (width == 2)
    return (double)half_to_float((uint16_t)bits);
  if (width == 4) {
    float value;
    uint32_t word = (uint32_t)bits;
    memcpy(&value, &word, sizeof value);
    return (double)value;
  }
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Two's complement of `width` bytes.
static int64_t bits_to_signed(uint64_t bits, size_t width) {
  uint64_t sign = (uint64_t)1 << (8 * width - 1);
  return (int64_t)((bits ^ sign) - sign);
}

static double element_real(const struct npy_info *info, const uint8_t *p) {
  uint64_t bits = load_bits(p, info->width, info->big_endian);
  switch (info->kind) {
  case NPY_FLOAT:
    return bits_to_float(bits, info->width);
  case NPY_INT:
    return (double)bits_to_signed(bits, info->width);
  case NPY_BOOL:
    return bits != 0;
  default:
    return (double)bits;
  }
}

// False when the value is outside int64_t.
static bool element_integer(const struct npy_info *info, const uint8_t *p, int64_t *value) {
  uint64_t bits = load_bits(p, info->width, info->big_endian);
  if (info->kind == NPY_INT)
    *value = bits_to_signed(bits, info->width);
  else if (info->kind == NPY_BOOL)
    *value = bits != 0;
  else if (bits <= INT64_MAX)
    *value = (int64_t)bits;
  else
    return false;
  return true;
}

// Moves on to the element that follows in the file: the next one of the block in C order, the one
// with the next first subscript in Fortran order.
static void advance(struct npy_convert *c) {
  const struct npy_info *info = c->info;
  if (!info->fortran_order) {
    c->index++;
    return;
  }
  size_t stride = info->count;
  for (size_t i = 0; i < info->dimensions; i++) {
    stride /= info->shape[i];
    c->index += stride;
    if (++c->position[i] < info->shape[i])
      return;
    c->index -= stride * info->shape[i];
    c->position[i] = 0;
  }
}

// "[3,5]" of an index into the row-major block.
static const char *subscripts(const struct npy_info *info, size_t index, char *text, size_t size) {
  size_t position[NPY_DIMENSIONS_MAX], used = 0;
  for (size_t i = info->dimensions; i-- > 0; index /= info->shape[i])
    position[i] = index % info->shape[i];
  text[0] = 0;
  for (size_t i = 0; i < info->dimensions; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%zu", i ? "," : "[", position[i]);
  if (info->dimensions)
    snprintf(text + used, size - used, "]");
  return text;
}

static int fail_value(const struct npy_convert *c, double value, struct dsnet_error *error) {
  char where[NPY_DIMENSIONS_MAX * 24];
  return dsnet_error_set(error, DSNET_EVALUE, "element %s is %g, which is not finite in %s",
                         subscripts(c->info, c->index, where, sizeof where), value,
                         c->target == NPY_TO_F32 ? "float32" : "float64");
}

// Whether elements can be copied as they are: floats of `width` in this machine's byte order, in
// the block's own order. Most arrays are, and then reading costs no more than inflating.
static bool is_native(const struct npy_info *info, size_t width) {
  const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
  return info->kind == NPY_FLOAT && info->width == width && info->big_endian == big &&
         !info->fortran_order;
}

static int copy_f32(struct npy_convert *c, const uint8_t *bytes, size_t count,
                    struct dsnet_error *error) {
  float *out = (float *)c->out + c->index;
  memcpy(out, bytes, count * sizeof *out);
  for (size_t k = 0; k < count; k++, c->index++)
    if (!isfinite(out[k]))
      return fail_value(c, (double)out[k], error);
  return 0;
}

static int copy_f64(struct npy_convert *c, const uint8_t *bytes, size_t count,
                    struct dsnet_error *error) {
  double *out = (double *)c->out + c->index;
  memcpy(out, bytes, count * sizeof *out);
  for (size_t k = 0; k < count; k++, c->index++)
    if (!isfinite(out[k]))
      return fail_value(c, out[k], error);
  return 0;
}

static int take_f32(struct npy_convert *c, const uint8_t *bytes, size_t count,
                    struct dsnet_error *error) {
  float *out = c->out;
  for (size_t k = 0; k < count; k++, bytes += c->info->width, advance(c)) {
    double value = element_real(c->info, bytes);
    // Compared before the conversion: what rounds beyond FLT_MAX would be undefined or infinite.
    if (!(fabs(value) < 0x1.ffffffp127))
      return fail_value(c, value, error);
    out[c->index] = (float)value;
  }
  return 0;
}

static int take_f64(struct npy_convert *c, const uint8_t *bytes, size_t count,
                    struct dsnet_error *error) {
  double *out = c->out;
  for (size_t k = 0; k < count; k++, bytes += c->info->width, advance(c)) {
    double value = element_real(c->info, bytes);
    if (!isfinite(value))
      return fail_value(c, value, error);
    out[c->index] = value;
  }
  return 0;
}

static int take_i64(struct npy_convert *c, const uint8_t *bytes, size_t count,
                    struct dsnet_error *error) {
  int64_t *out = c->out;
  for (size_t k = 0; k < count; k++, bytes += c->info->width, advance(c))
    if (!element_integer(c->info, bytes, &out[c->index])) {
      char where[NPY_DIMENSIONS_MAX * 24];
      return dsnet_error_set(error, DSNET_EVALUE, "element %s is too large for int64",
                             subscripts(c->info, c->index, where, sizeof where));
    }
  return 0;
}

int npy_convert_init(struct npy_convert *convert, const struct npy_info *info,
                     enum npy_target target, void *out, struct dsnet_error *error) {
  *convert = (struct npy_convert){.info = info, .target = target, .out = out};
  switch (info->kind) {
  case NPY_FLOAT:
    if (target != NPY_TO_I64)
      return 0;
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "holds floats where integers are needed");
  case NPY_INT:
  case NPY_UINT:
  case NPY_BOOL:
    return 0;
  case NPY_UNICODE:
  case NPY_BYTES:
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "holds text where numbers are needed");
  default:
    return dsnet_error_set(error, DSNET_EUNSUPPORTED,
                           "holds a type that cannot be read (objects, complex numbers, records)");
  }
}

int npy_convert_take(struct npy_convert *c, const uint8_t *bytes, size_t count,
                     struct dsnet_error *error) {
  switch (c->target) {
  case NPY_TO_F32:
    return is_native(c->info, sizeof(float)) ? copy_f32(c, bytes, count, error)
                                             : take_f32(c, bytes, count, error);
  case NPY_TO_F64:
    return is_native(c->info, sizeof(double)) ? copy_f64(c, bytes, count, error)
                                              : take_f64(c, bytes, count, error);
  default:
    return take_i64(c, bytes, count, error);
  }
}

// Appends one code point as UTF-8 to `text`, which has `room` bytes. Returns the bytes written, 0
// when they do not fit.
static size_t put_utf8(uint32_t code, char *text, size_t room) {
  static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  if (length > room)
    return 0;
  for (size_t i = length; i-- > 1; code >>= 6)
    text[i] = (char)(0x80 | (code & 0x3f));
  text[0] = (char)(lead[length] | code);
  return length;
}

static bool is_code_point(uint32_t code) {
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

// Bytes carry no encoding with them; ASCII is what all of them share.
static bool next_code_point(const struct npy_info *info, const uint8_t *bytes, size_t index,
                            uint32_t *code) {
  if (info->kind == NPY_BYTES) {
    *code = bytes[index];
    return *code < 0x80;
  }
  *code = (uint32_t)load_bits(bytes + 4 * index, 4, info->big_endian);
  return is_code_point(*code);
}

int npy_text(const struct npy_info *info, const uint8_t *bytes, char *text, size_t size,
             struct dsnet_error *error) {
  size_t count = info->kind == NPY_UNICODE ? info->width / 4 : info->width, used = 0;
  if (size == 0)
    return dsnet_error_set(error, DSNET_ELIMIT, "is longer than 0 bytes");
  for (size_t i = 0; i < count; i++) {
    uint32_t code;
    if (!next_code_point(info, bytes, i, &code))
      return dsnet_error_set(error, DSNET_EVALUE, "is not well-formed text");
    if (code == 0)
      break;
    size_t length = put_utf8(code, text + used, size - 1 - used);
    if (length == 0)
      return dsnet_error_set(error, DSNET_ELIMIT, "is longer than %zu bytes", size - 1);
    used += length;
  }
  text[used] = 0;
  return 0;
}
