// SPDX-License-Identifier: Apache-2.0
#include "stream/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>

#include "base/memory.h"
#include "io/file.h"
#include "io/npz.h"
#include "io/pc2.h"

enum format { FORMAT_NONE, FORMAT_NPZ, FORMAT_PC2, FORMAT_RAW };

#define SUFFIX_LENGTH 4 // of every format's

struct recording {
  enum format format;
  char *path;
  struct npz_writer *npz;   // of FORMAT_NPZ
  struct file_writer *file; // of the others
  struct recording_shape shape;
  size_t done;
  uint32_t *seq;   // [frames]
  double *latency; // [frames] seconds
};

static enum format format_of(const char *path) {
  static const char suffixes[][SUFFIX_LENGTH + 1] = {
      [FORMAT_NPZ] = ".npz", [FORMAT_PC2] = ".pc2", [FORMAT_RAW] = ".raw"};
  size_t length = strlen(path);
  for (enum format format = FORMAT_NPZ; format <= FORMAT_RAW; format++)
    if (length > SUFFIX_LENGTH && !strcasecmp(path + length - SUFFIX_LENGTH, suffixes[format]))
      return format;
  return FORMAT_NONE;
}

int recording_check_name(const char *output, enum frame_kind kind, struct dsnet_error *error) {
  enum format format = format_of(output);
  if (format == FORMAT_NONE)
    return dsnet_error_set(error, DSNET_EUSAGE, "%.200s: the name must end in .npz, .pc2 or .raw",
                           output);
  if (format == FORMAT_PC2 && kind == FRAME_LATENT)
    return dsnet_error_set(error, DSNET_EUSAGE,
                           "%.200s: a point cache holds vertices or displacements, not latents",
                           output);
  return 0;
}

int recording_path(char *path, size_t size, const char *output, size_t session, size_t sessions,
                   struct dsnet_error *error) {
  size_t stem = strlen(output);
  if (format_of(output) != FORMAT_NONE)
    stem -= SUFFIX_LENGTH;
  int length = sessions == 1 ? snprintf(path, size, "%s", output)
                             : snprintf(path, size, "%.*s_%03zu%s", (int)stem, output, session,
                                        output + stem);
  if (length < 0 || (size_t)length >= size)
    return dsnet_error_set(error, DSNET_ELIMIT, "%.200s: the path is too long", output);
  return 0;
}

int recording_open(struct recording **out, const char *path, struct dsnet_error *error) {
  struct recording *recording = calloc(1, sizeof *recording);
  if (!recording || !(recording->path = strdup(path))) {
    free(recording);
    return dsnet_error_set(error, DSNET_ENOMEM, "%.200s: out of memory", path);
  }
  recording->format = format_of(path);
  // Stored, not deflated: displacements hardly shrink, and this runs inside the loop.
  int status = recording->format == FORMAT_NPZ
                   ? npz_writer_open(&recording->npz, path, false, error)
                   : file_writer_open(&recording->file, path, error);
  if (status != 0) {
    recording_abort(recording);
    return status;
  }
  *out = recording;
  return 0;
}

int recording_check_space(const struct recording *recording, double numbers,
                          struct dsnet_error *error) {
  struct statvfs disk;
  const char *slash = strrchr(recording->path, '/');
  char *folder =
      slash ? strndup(recording->path, (size_t)(slash - recording->path) + 1) : strdup(".");
  bool known = folder && (statvfs(recording->path, &disk) == 0 || statvfs(folder, &disk) == 0);
  free(folder);
  if (!known)
    return 0;
  double wanted = numbers * sizeof(float);
  double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
  if (wanted <= free_bytes)
    return 0;
  return dsnet_error_set(error, DSNET_ELIMIT,
                         "%.200s: the disk is too full: %.1f MB will be written, %.1f MB are free",
                         recording->path, wanted * 1e-6, free_bytes * 1e-6);
}

static const char *array_name(enum frame_kind kind) {
  return kind == FRAME_LATENT ? "latent" : kind == FRAME_VERTICES ? "vertices" : "displacement";
}

static int begin_npz(struct recording *recording, struct dsnet_error *error) {
  const struct recording_shape *shape = &recording->shape;
  bool latent = shape->kind == FRAME_LATENT;
  const size_t sizes[3] = {shape->frames, latent ? shape->numbers : shape->numbers / 3, 3};
  return npz_writer_begin(recording->npz, array_name(shape->kind), "<f4", latent ? 2 : 3, sizes,
                          error);
}

static int begin_pc2(struct recording *recording, struct dsnet_error *error) {
  const struct recording_shape *shape = &recording->shape;
  uint8_t header[PC2_HEADER_SIZE];
  if (shape->frames > INT32_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "%.200s: too many frames for a point cache",
                           recording->path);
  pc2_header_write((uint32_t)(shape->numbers / 3), (uint32_t)shape->frames, header);
  return file_writer_append(recording->file, header, sizeof header, error);
}

int recording_begin(struct recording *recording, const struct recording_shape *shape,
                    struct dsnet_error *error) {
  recording->shape = *shape;
  recording->seq = memory_alloc(shape->frames, sizeof *recording->seq);
  recording->latency = memory_alloc(shape->frames, sizeof *recording->latency);
  if (!recording->seq || !recording->latency)
    return dsnet_error_set(error, DSNET_ENOMEM, "%.200s: out of memory", recording->path);
  switch (recording->format) {
  case FORMAT_NPZ:
    return begin_npz(recording, error);
  case FORMAT_PC2:
    return begin_pc2(recording, error);
  default:
    return 0;
  }
}

int recording_add(struct recording *recording, const float *values, uint32_t seq, double latency,
                  struct dsnet_error *error) {
  size_t size = recording->shape.numbers * sizeof *values;
  if (recording->done == recording->shape.frames)
    return dsnet_error_set(error, DSNET_EMISMATCH, "%.200s: more frames than were announced",
                           recording->path);
  recording->seq[recording->done] = seq;
  recording->latency[recording->done++] = latency;
  return recording->format == FORMAT_NPZ ? npz_writer_append(recording->npz, values, size, error)
                                         : file_writer_append(recording->file, values, size, error);
}

static int close_npz(struct recording *recording, double fps, const char *model,
                     struct dsnet_error *error) {
  struct npz_writer *writer = recording->npz;
  const size_t *frames = &recording->shape.frames;
  int status = npz_writer_end(writer, error);
  if (status == 0)
    status = npz_writer_add(writer, "seq", "<u4", 1, frames, recording->seq, error);
  if (status == 0)
    status = npz_writer_add(writer, "latency", "<f8", 1, frames, recording->latency, error);
  if (status == 0)
    status = npz_writer_add(writer, "fps", "<f8", 0, NULL, &fps, error);
  if (status == 0)
    status = npz_writer_add_text(writer, "model", model, error);
  if (status != 0)
    return status;
  recording->npz = NULL;
  return npz_writer_close(writer, error);
}

static int close_file(struct recording *recording, struct dsnet_error *error) {
  struct file_writer *writer = recording->file;
  if (recording->done != recording->shape.frames)
    return dsnet_error_set(error, DSNET_EMISMATCH, "%.200s: frames are missing", recording->path);
  recording->file = NULL;
  return file_writer_commit(writer, error);
}

int recording_close(struct recording *recording, double fps, const char *model,
                    struct dsnet_error *error) {
  int status = recording->format == FORMAT_NPZ ? close_npz(recording, fps, model, error)
                                               : close_file(recording, error);
  recording_abort(recording);
  return status;
}

void recording_abort(struct recording *recording) {
  if (!recording)
    return;
  npz_writer_abort(recording->npz);
  file_writer_abort(recording->file);
  free(recording->seq);
  free(recording->latency);
  free(recording->path);
  free(recording);
}
