// SPDX-License-Identifier: Apache-2.0
// What a clip is in memory, and its writing. Reading is in clip_load.c, other rates in
// clip_resample.c.
#include "motion/clip.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/npz.h"

#define AMASS_POSE_SIZE 156 // SMPL-H: 22 body joints, 15 of each hand

int clip_new(struct clip **clip, size_t frames, double fps, struct dsnet_error *error) {
  *clip = NULL;
  if (frames > CLIP_FRAMES_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "a clip of %zu frames is longer than %d", frames,
                           CLIP_FRAMES_MAX);
  if (!(fps >= 1 && fps <= 1000))
    return dsnet_error_set(error, DSNET_EVALUE, "%g is outside 1 to 1000 frames a second", fps);
  struct clip *made = calloc(1, sizeof *made);
  if (!made)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  made->frames = frames;
  made->fps = fps;
  strcpy(made->gender, "neutral");
  made->pose = memory_alloc(frames, CLIP_POSE_SIZE * sizeof(float));
  made->trans = memory_alloc(frames, 3 * sizeof(float));
  if (!made->pose || !made->trans) {
    clip_free(made);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for a clip of %zu frames", frames);
  }
  *clip = made;
  return 0;
}

void clip_free(struct clip *clip) {
  if (!clip)
    return;
  free(clip->pose);
  free(clip->trans);
  free(clip);
}

// The hands, which a clip does not have, are at rest.
static void write_poses(const struct clip *clip, struct npz_writer *writer,
                        struct dsnet_error *error) {
  float row[AMASS_POSE_SIZE] = {0};
  npz_writer_begin(writer, "poses", "<f4", 2, (const size_t[]){clip->frames, AMASS_POSE_SIZE},
                   error);
  for (size_t i = 0; i < clip->frames; i++) {
    memcpy(row, clip->pose + i * CLIP_POSE_SIZE, CLIP_POSE_SIZE * sizeof(float));
    if (npz_writer_append(writer, row, sizeof row, error) < 0)
      return;
  }
  npz_writer_end(writer, error);
}

// Failures of the single calls stay in the writer, and its close returns the first.
int clip_save(const struct clip *clip, const char *path, struct dsnet_error *error) {
  struct npz_writer *writer;
  int result = npz_writer_open(&writer, path, true, error);
  if (result < 0)
    return result;
  write_poses(clip, writer, error);
  npz_writer_add(writer, "trans", "<f4", 2, (const size_t[]){clip->frames, 3}, clip->trans, error);
  npz_writer_add(writer, "betas", "<f4", 1, (const size_t[]){CLIP_BETAS_MAX}, clip->betas, error);
  npz_writer_add(writer, "mocap_framerate", "<f8", 0, NULL, &clip->fps, error);
  result = npz_writer_add_text(writer, "gender", clip->gender, error);
  if (result < 0) {
    npz_writer_abort(writer);
    return result;
  }
  return npz_writer_close(writer, error);
}
