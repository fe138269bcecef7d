// SPDX-License-Identifier: Apache-2.0
#include "stream/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/npz.h"

struct recording {
  struct npz_writer *writer;
  size_t frames, done;
  uint32_t *seq;   // [frames]
  double *latency; // [frames] seconds
};

int recording_path(char *path, size_t size, const char *output, size_t session, size_t sessions,
                   struct dsnet_error *error) {
  size_t stem = strlen(output);
  if (stem > 4 && !strcmp(output + stem - 4, ".npz"))
    stem -= 4;
  int length = sessions == 1 ? snprintf(path, size, "%s", output)
                             : snprintf(path, size, "%.*s_%03zu%s", (int)stem, output, session,
                                        output + stem);
  if (length < 0 || (size_t)length >= size)
    return dsnet_error_set(error, DSNET_ELIMIT, "%s: the path is too long", output);
  return 0;
}

int recording_open(struct recording **out, const char *path, size_t frames, size_t vertices,
                   struct dsnet_error *error) {
  struct recording *recording = calloc(1, sizeof *recording);
  if (!recording)
    return dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
  recording->frames = frames;
  recording->seq = memory_alloc(frames, sizeof *recording->seq);
  recording->latency = memory_alloc(frames, sizeof *recording->latency);
  size_t shape[3] = {frames, vertices, 3};
  int status = recording->seq && recording->latency
                   ? 0
                   : dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
  // Stored, not deflated: displacements hardly shrink, and this runs inside the loop.
  if (status == 0)
    status = npz_writer_open(&recording->writer, path, false, error);
  if (status == 0)
    status = npz_writer_begin(recording->writer, "displacement", "<f4", 3, shape, error);
  if (status != 0) {
    recording_abort(recording);
    return status;
  }
  *out = recording;
  return 0;
}

int recording_append(struct recording *recording, const uint8_t *bytes, size_t size,
                     struct dsnet_error *error) {
  return npz_writer_append(recording->writer, bytes, size, error);
}

void recording_end_frame(struct recording *recording, uint32_t seq, double latency) {
  if (recording->done == recording->frames)
    return;
  recording->seq[recording->done] = seq;
  recording->latency[recording->done++] = latency;
}

static void release(struct recording *recording) {
  free(recording->seq);
  free(recording->latency);
  free(recording);
}

int recording_close(struct recording *recording, double fps, const char *model,
                    struct dsnet_error *error) {
  struct npz_writer *writer = recording->writer;
  int status = npz_writer_end(writer, error);
  if (status == 0)
    status = npz_writer_add(writer, "seq", "<u4", 1, &recording->frames, recording->seq, error);
  if (status == 0)
    status =
        npz_writer_add(writer, "latency", "<f8", 1, &recording->frames, recording->latency, error);
  if (status == 0)
    status = npz_writer_add(writer, "fps", "<f8", 0, NULL, &fps, error);
  if (status == 0)
    status = npz_writer_add_text(writer, "model", model, error);
  if (status == 0)
    status = npz_writer_close(writer, error);
  else
    npz_writer_abort(writer);
  release(recording);
  return status;
}

void recording_abort(struct recording *recording) {
  if (!recording)
    return;
  npz_writer_abort(recording->writer);
  release(recording);
}
