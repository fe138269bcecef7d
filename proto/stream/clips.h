// SPDX-License-Identifier: Apache-2.0
// The clips of a run, loaded and brought to its rate.
#ifndef DSNET_STREAM_CLIPS_H
#define DSNET_STREAM_CLIPS_H

#include "base/options.h"
#include "motion/clip.h"
#include "stream/stream.h"

// Start from {0}; clips_free releases what was loaded.
struct clips {
  struct clip *loaded[OPTION_LIST_MAX];
  struct stream_clip streamed[OPTION_LIST_MAX];
  size_t count;
};

// Loads each of `names`, an AMASS npz or "sample", at `fps` frames a second. `betas` [STREAM_BETAS]
// replace each clip's own, unless NULL. The error names the clip.
int clips_load(struct clips *clips, const struct option_list *names, double fps, const float *betas,
               struct dsnet_error *error);

// Whether none of the files `names` is the one at `path` (NULL allowed), which a recording would
// replace. DSNET_EUSAGE names it otherwise.
int clips_check_record(const struct option_list *names, const char *path,
                       struct dsnet_error *error);

void clips_free(struct clips *clips);

#endif
