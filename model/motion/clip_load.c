// SPDX-License-Identifier: Apache-2.0
// Clips from AMASS-layout archives, in the variants that its releases and converters have.
#include "motion/clip.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/npz.h"

// Joints of 3 numbers: SMPL-X has 55, and nothing known has more than this.
#define COLUMNS_MAX 330
#define BETAS_MAX   1000
#define ROOT_SIZE   3

static int fail_shape(const struct npz *npz, const char *name, const char *expected,
                      struct dsnet_error *error) {
  return npz_error_set(npz, name, error, DSNET_EFORMAT, "its shape is not %s", expected);
}

// The rows of an array [N][columns], or [N][columns / 3][3], and its columns.
static int matrix_shape(struct npz *npz, const char *name, size_t *rows, size_t *columns,
                        struct dsnet_error *error) {
  struct npy_info info;
  int result = npz_info(npz, name, &info, error);
  if (result < 0)
    return result;
  bool joints = info.dimensions == 3 && info.shape[2] == 3 && info.shape[1] <= COLUMNS_MAX;
  if (info.dimensions != 2 && !joints)
    return fail_shape(npz, name, "[frames][columns]", error);
  *rows = info.shape[0];
  *columns = joints ? 3 * info.shape[1] : info.shape[1];
  if (*rows == 0)
    return npz_error_set(npz, name, error, DSNET_EVALUE, "holds no frame");
  if (*rows > CLIP_FRAMES_MAX || *columns > COLUMNS_MAX)
    return npz_error_set(npz, name, error, DSNET_ELIMIT, "%zu x %zu is more than %d x %d", *rows,
                         *columns, CLIP_FRAMES_MAX, COLUMNS_MAX);
  return 0;
}

// Copies the first `width` columns of array `name` into columns of `out` [frames][stride]. The
// array must have `frames` rows and at least `width` columns (exactly, when `exact`).
static int read_columns(struct npz *npz, const char *name, size_t frames, size_t width, bool exact,
                        float *out, size_t stride, struct dsnet_error *error) {
  size_t rows = 0, columns = 0;
  int result = matrix_shape(npz, name, &rows, &columns, error);
  if (result < 0)
    return result;
  if (columns < width || (exact && columns != width))
    return npz_error_set(npz, name, error, DSNET_EFORMAT, "has %zu columns, needs %s%zu", columns,
                         exact ? "" : "at least ", width);
  if (rows != frames)
    return npz_error_set(npz, name, error, DSNET_EMISMATCH, "has %zu frames, others have %zu", rows,
                         frames);
  float *data;
  result = npz_read_f32(npz, name, rows * columns, &data, NULL, error);
  if (result < 0)
    return result;
  for (size_t i = 0; i < rows; i++)
    memcpy(out + i * stride, data + i * columns, width * sizeof(float));
  free(data);
  return 0;
}

static int read_poses(struct npz *npz, struct clip *clip, bool split, struct dsnet_error *error) {
  if (!split)
    return read_columns(npz, "poses", clip->frames, CLIP_POSE_SIZE, false, clip->pose,
                        CLIP_POSE_SIZE, error);
  int result = read_columns(npz, "root_orient", clip->frames, ROOT_SIZE, true, clip->pose,
                            CLIP_POSE_SIZE, error);
  if (result < 0)
    return result;
  return read_columns(npz, "pose_body", clip->frames, CLIP_POSE_SIZE - ROOT_SIZE, true,
                      clip->pose + ROOT_SIZE, CLIP_POSE_SIZE, error);
}

static int read_rate(struct npz *npz, double *fps, struct dsnet_error *error) {
  static const char *const names[] = {"mocap_framerate", "mocap_frame_rate"};
  const char *name = npz_has(npz, names[0]) ? names[0] : names[1];
  if (!npz_has(npz, name))
    return npz_error_set(npz, names[0], error, DSNET_EMISSING, "is missing from the archive");
  double *value;
  struct npy_info info;
  int result = npz_read_f64(npz, name, 1, &value, &info, error);
  if (result < 0)
    return result;
  if (info.count != 1)
    result = fail_shape(npz, name, "that of one number", error);
  else if (!(*value >= 1 && *value <= 1000))
    result = npz_error_set(npz, name, error, DSNET_EVALUE,
                           "%g is outside 1 to 1000 frames a second", *value);
  else
    *fps = *value;
  free(value);
  return result;
}

// A vector, or a matrix of one row.
static int read_betas(struct npz *npz, struct clip *clip, struct dsnet_error *error) {
  if (!npz_has(npz, "betas"))
    return 0;
  float *betas;
  struct npy_info info;
  int result = npz_read_f32(npz, "betas", BETAS_MAX, &betas, &info, error);
  if (result < 0)
    return result;
  if (info.dimensions == 0 || (info.dimensions > 1 && info.shape[0] != 1) || info.dimensions > 2) {
    result = fail_shape(npz, "betas", "[shape directions]", error);
  } else {
    clip->betas_count = info.count < CLIP_BETAS_MAX ? info.count : CLIP_BETAS_MAX;
    memcpy(clip->betas, betas, clip->betas_count * sizeof(float));
  }
  free(betas);
  return result;
}

// Nothing depends on the gender, and converters store None (an object) for an unknown one: only
// text is read, anything else leaves "neutral".
static int read_gender(struct npz *npz, struct clip *clip, struct dsnet_error *error) {
  struct npy_info info;
  if (!npz_has(npz, "gender"))
    return 0;
  int result = npz_info(npz, "gender", &info, error);
  if (result < 0 || (info.kind != NPY_UNICODE && info.kind != NPY_BYTES))
    return result;
  return npz_read_text(npz, "gender", clip->gender, sizeof clip->gender, error);
}

static int read_clip(struct npz *npz, struct clip **clip, struct dsnet_error *error) {
  size_t frames, columns;
  double fps = 0;
  bool split = !npz_has(npz, "poses") && npz_has(npz, "pose_body");
  int result = matrix_shape(npz, split ? "pose_body" : "poses", &frames, &columns, error);
  if (result == 0)
    result = read_rate(npz, &fps, error);
  if (result < 0)
    return result;
  struct clip *loaded;
  result = clip_new(&loaded, frames, fps, error);
  if (result < 0)
    return result;
  result = read_poses(npz, loaded, split, error);
  if (result == 0)
    result = read_columns(npz, "trans", frames, 3, true, loaded->trans, 3, error);
  if (result == 0)
    result = read_betas(npz, loaded, error);
  if (result == 0)
    result = read_gender(npz, loaded, error);
  if (result < 0) {
    clip_free(loaded);
    return result;
  }
  *clip = loaded;
  return 0;
}

int clip_load(struct clip **clip, const char *path, struct dsnet_error *error) {
  *clip = NULL;
  struct npz *npz;
  int result = npz_open(&npz, path, error);
  if (result < 0)
    return result;
  result = read_clip(npz, clip, error);
  npz_close(npz);
  return result;
}

int clip_load_memory(struct clip **clip, const void *bytes, size_t size,
                     struct dsnet_error *error) {
  *clip = NULL;
  struct npz *npz;
  int result = npz_open_memory(&npz, bytes, size, error);
  if (result < 0)
    return result;
  result = read_clip(npz, clip, error);
  npz_close(npz);
  return result;
}
