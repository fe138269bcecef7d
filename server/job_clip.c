// SPDX-License-Identifier: Apache-2.0
#include "job_clip.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "io/npz.h"
#include "orient.h"
#include "wire/frame.h"
#include "wire/message.h"

#define JOINTS      (CLIP_POSE_SIZE / 3)
#define COLUMNS_MAX (3 * 110) // of a row of JSON or of an archive's arrays

// Archives ---------------------------------------------------------------------------------------

// Sizes are checked before anything is read: an archive of some megabytes can hold arrays of many
// gigabytes.
static int check_archive(const char *path, size_t frames_max, struct dsnet_error *error) {
  static const char *const names[] = {"poses", "root_orient", "pose_body", "trans"};
  struct npz *npz;
  int result = npz_open(&npz, path, error);
  if (result < 0)
    return result;
  for (size_t i = 0; result == 0 && i < sizeof names / sizeof names[0]; i++) {
    struct npy_info info;
    if (!npz_has(npz, names[i]))
      continue;
    result = npz_info(npz, names[i], &info, error);
    if (result < 0)
      break;
    if (info.dimensions && (info.shape[0] > frames_max || info.count / COLUMNS_MAX > frames_max))
      result = npz_error_set(npz, names[i], error, DSNET_ELIMIT,
                             "has more than %zu frames, the most this server takes", frames_max);
  }
  npz_close(npz);
  return result;
}

// JSON -------------------------------------------------------------------------------------------

static int read_row(const json_t *row, size_t at_least, size_t at_most, const char *member,
                    size_t frame, float *out, struct dsnet_error *error) {
  size_t count = json_array_size(row);
  if (count < at_least || count > at_most)
    return dsnet_error_set(error, DSNET_EFORMAT, "%s: frame %zu is no array of %zu numbers", member,
                           frame, at_least);
  for (size_t i = 0; i < count; i++) {
    const json_t *number = json_array_get(row, i);
    float value = (float)json_number_value(number);
    if (!json_is_number(number) || !isfinite(value))
      return dsnet_error_set(error, DSNET_EVALUE, "%s: frame %zu: item %zu is no number", member,
                             frame, i);
    if (i < at_least)
      out[i] = value;
  }
  return 0;
}

static int read_betas(const json_t *betas, struct clip *clip, struct dsnet_error *error) {
  size_t count = json_array_size(betas);
  if (!betas)
    return 0;
  if (!json_is_array(betas) || count > MESSAGE_BETAS_MAX)
    return dsnet_error_set(error, DSNET_EFORMAT, "betas: not an array of at most %d numbers",
                           MESSAGE_BETAS_MAX);
  for (size_t i = 0; i < count && i < CLIP_BETAS_MAX; i++) {
    const json_t *number = json_array_get(betas, i);
    if (!json_is_number(number))
      return dsnet_error_set(error, DSNET_EVALUE, "betas: item %zu is no number", i);
    clip->betas[clip->betas_count++] = (float)json_number_value(number);
  }
  return 0;
}

static int read_frames(const json_t *pose, const json_t *trans, bool y_up, struct clip *clip,
                       struct dsnet_error *error) {
  for (size_t t = 0; t < clip->frames; t++) {
    float *p = clip->pose + t * CLIP_POSE_SIZE, *at = clip->trans + t * 3;
    int result =
        read_row(json_array_get(pose, t), CLIP_POSE_SIZE, COLUMNS_MAX, "pose", t, p, error);
    if (result == 0)
      result = read_row(json_array_get(trans, t), 3, 3, "trans", t, at, error);
    if (result < 0)
      return result;
    if (y_up)
      orient_y_up_to_z_up(p, at);
  }
  return 0;
}

static int read_document(const json_t *document, size_t frames_max, struct clip **clip,
                         struct dsnet_error *error) {
  const json_t *fps = json_object_get(document, "fps"), *pose = json_object_get(document, "pose");
  const json_t *trans = json_object_get(document, "trans"), *up = json_object_get(document, "up");
  size_t frames = json_array_size(pose);
  const char *word = up ? json_string_value(up) : "z";
  if (!json_is_number(fps))
    return dsnet_error_set(error, DSNET_EMISSING, "fps: there is no number of that name");
  if (!frames)
    return dsnet_error_set(error, DSNET_EMISSING, "pose: there is no array of frames");
  if (json_array_size(trans) != frames)
    return dsnet_error_set(error, DSNET_EMISMATCH, "trans: has %zu frames, pose has %zu",
                           json_array_size(trans), frames);
  if (frames > frames_max)
    return dsnet_error_set(error, DSNET_ELIMIT,
                           "pose: has more than %zu frames, the most this server takes",
                           frames_max);
  if (!word || (strcmp(word, "y") && strcmp(word, "z")))
    return dsnet_error_set(error, DSNET_EVALUE, "up: neither \"y\" nor \"z\"");
  struct clip *made;
  int result = clip_new(&made, frames, json_number_value(fps), error);
  if (result < 0)
    return result;
  result = read_frames(pose, trans, !strcmp(word, "y"), made, error);
  if (result == 0)
    result = read_betas(json_object_get(document, "betas"), made, error);
  if (result < 0) {
    clip_free(made);
    return result;
  }
  *clip = made;
  return 0;
}

static int load_json(struct clip **clip, const char *path, size_t frames_max,
                     struct dsnet_error *error) {
  json_error_t where;
  json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
  if (!document)
    return dsnet_error_set(error, DSNET_EFORMAT, "no valid JSON: line %d, column %d: %s",
                           where.line, where.column, where.text);
  int result = read_document(document, frames_max, clip, error);
  json_decref(document);
  return result;
}

// Both -------------------------------------------------------------------------------------------

static int check_values(const struct clip *clip, struct dsnet_error *error) {
  for (size_t t = 0; t < clip->frames; t++) {
    const float *pose = clip->pose + t * CLIP_POSE_SIZE, *trans = clip->trans + t * 3;
    for (size_t j = 0; j < JOINTS; j++) {
      const float *r = pose + 3 * j;
      double turn = hypot(hypot((double)r[0], (double)r[1]), (double)r[2]);
      if (!(turn <= (double)FRAME_ROTATION_MAX))
        return dsnet_error_set(error, DSNET_EVALUE, "poses: frame %zu: joint %zu turns by %g rad",
                               t, j, turn);
    }
    for (size_t i = 0; i < 3; i++)
      if (!(fabsf(trans[i]) <= FRAME_TRANSLATION_MAX))
        return dsnet_error_set(error, DSNET_EVALUE, "trans: frame %zu is %g m from the origin", t,
                               (double)trans[i]);
  }
  for (size_t i = 0; i < clip->betas_count; i++)
    if (!(fabs((double)clip->betas[i]) <= MESSAGE_BETA_LIMIT))
      return dsnet_error_set(error, DSNET_EVALUE, "betas: item %zu is %g", i,
                             (double)clip->betas[i]);
  return 0;
}

int job_clip_load(struct clip **clip, enum job_clip kind, const char *path, double rate,
                  size_t frames_max, struct dsnet_error *error) {
  struct clip *loaded = NULL;
  int result = kind == JOB_CLIP_JSON ? load_json(&loaded, path, frames_max, error)
                                     : check_archive(path, frames_max, error);
  if (result == 0 && kind == JOB_CLIP_NPZ)
    result = clip_load(&loaded, path, error);
  if (result == 0 && (double)loaded->frames * rate / loaded->fps > (double)frames_max)
    result = dsnet_error_set(error, DSNET_ELIMIT,
                             "the clip takes more than %zu frames at %g frames a second",
                             frames_max, rate);
  if (result == 0)
    result = check_values(loaded, error);
  if (result < 0) {
    clip_free(loaded);
    return result;
  }
  *clip = loaded;
  return 0;
}
