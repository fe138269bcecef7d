// SPDX-License-Identifier: Apache-2.0
// Any bytes as a clip: what loads is within its bounds and finite, resamples, and gives features
// that are numbers.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "motion/clip.h"
#include "motion/features.h"

#define FRAMES_MAX 2000 // of a clip that is looked at further, to keep a run short

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_clip(const struct clip *clip) {
  if (clip->frames == 0 || clip->frames > CLIP_FRAMES_MAX || !(clip->fps >= 1 && clip->fps <= 1000))
    abort();
  for (size_t i = 0; i < clip->frames * CLIP_POSE_SIZE; i++)
    if (!isfinite(clip->pose[i]))
      abort();
  for (size_t i = 0; i < clip->frames * 3; i++)
    if (!isfinite(clip->trans[i]))
      abort();
}

// Poses are turned into velocities that cannot exceed half a turn a frame; translations may be as
// large as floats are, and then their differences may be infinite, but nothing is not a number.
static void check_features(const struct clip *clip) {
  const struct feature_set *set = feature_set_find("paper");
  float *memory = calloc(set->memory, sizeof *memory), *out = calloc(set->width, sizeof *out);
  for (size_t k = 0; memory && out && k < clip->frames; k++) {
    set->step(clip->fps, clip->pose + k * CLIP_POSE_SIZE, clip->trans + 3 * k, clip->betas, memory,
              out);
    for (size_t i = CLIP_POSE_SIZE; i < 2 * CLIP_POSE_SIZE; i++)
      if (!(fabs((double)out[i]) <= 3.1416 * clip->fps))
        abort();
    for (size_t i = 0; i < set->width; i++)
      if (isnan(out[i]))
        abort();
  }
  free(memory);
  free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct clip *clip, *resampled;
  struct dsnet_error error = {0};
  if (clip_load_memory(&clip, data, size, &error) < 0) {
    if (!error.text[0])
      abort();
    return 0;
  }
  check_clip(clip);
  if (clip->frames <= FRAMES_MAX && clip_resample(clip, 60, &resampled, NULL) == 0) {
    if (resampled->frames <= 60 * FRAMES_MAX)
      check_features(resampled);
    clip_free(resampled);
  }
  clip_free(clip);
  return 0;
}
