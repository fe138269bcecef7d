// SPDX-License-Identifier: Apache-2.0
// Any bytes as an npz: every array is read in every way. Whatever is read must be as large as its
// shape says and, as floats, finite.
#include <math.h>
#include <stdlib.h>

#include "io/npz.h"

#define ELEMENTS_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_f32(struct npz *npz, const char *name) {
  float *values;
  struct npy_info info;
  struct dsnet_error error = {0};
  if (npz_read_f32(npz, name, ELEMENTS_MAX, &values, &info, &error) < 0) {
    if (!error.text[0] || values)
      abort();
    return;
  }
  for (size_t i = 0; i < info.count; i++)
    if (!isfinite(values[i]))
      abort();
  free(values);
}

static void check_f64(struct npz *npz, const char *name) {
  double *values;
  struct npy_info info;
  if (npz_read_f64(npz, name, ELEMENTS_MAX, &values, &info, NULL) < 0)
    return;
  for (size_t i = 0; i < info.count; i++)
    if (!isfinite(values[i]))
      abort();
  free(values);
}

static void check_i64(struct npz *npz, const char *name) {
  int64_t *values;
  struct npy_info info;
  if (npz_read_i64(npz, name, ELEMENTS_MAX, &values, &info, NULL) < 0)
    return;
  int64_t bits = 0;
  for (size_t i = 0; i < info.count; i++)
    bits |= values[i];
  if (info.kind == NPY_BOOL && bits & ~(int64_t)1)
    abort();
  free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct npz *npz;
  struct dsnet_error error = {0};
  if (npz_open_memory(&npz, data, size, &error) < 0) {
    if (!error.text[0])
      abort();
    return 0;
  }
  for (size_t i = 0; i < npz_count(npz); i++) {
    char text[32];
    struct npy_info info;
    const char *name = npz_name(npz, i);
    npz_info(npz, name, &info, NULL);
    npz_read_text(npz, name, text, sizeof text, NULL);
    check_f32(npz, name);
    check_f64(npz, name);
    check_i64(npz, name);
  }
  npz_close(npz);
  return 0;
}
