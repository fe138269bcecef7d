// SPDX-License-Identifier: Apache-2.0
#include "stream/clips.h"

#include <string.h>
#include <sys/stat.h>

#include "builtin/builtin.h"

static int load(struct clip **clip, const char *name, double fps, struct dsnet_error *error) {
  struct clip *original;
  int status = strcmp(name, "sample") == 0 ? builtin_clip_load(&original, error)
                                           : clip_load(&original, name, error);
  if (status != 0)
    return status;
  status = clip_resample(original, fps, clip, error);
  clip_free(original);
  if (status == 0 && (*clip)->frames == 0) {
    clip_free(*clip);
    status = dsnet_error_set(error, DSNET_EVALUE, "has no frame");
  }
  return status ? dsnet_error_prefix(error, "%s", name) : 0;
}

int clips_load(struct clips *clips, const struct option_list *names, double fps, const float *betas,
               struct dsnet_error *error) {
  for (; clips->count < names->count; clips->count++) {
    struct clip **clip = &clips->loaded[clips->count];
    int status = load(clip, names->items[clips->count], fps, error);
    if (status < 0)
      return status;
    struct stream_clip *streamed = &clips->streamed[clips->count];
    *streamed = (struct stream_clip){
        .frames = (*clip)->frames, .pose = (*clip)->pose, .trans = (*clip)->trans};
    memcpy(streamed->betas, betas ? betas : (*clip)->betas, sizeof streamed->betas);
  }
  return 0;
}

int clips_check_record(const struct option_list *names, const char *path,
                       struct dsnet_error *error) {
  struct stat record, clip;
  if (!path || stat(path, &record) != 0)
    return 0;
  for (size_t i = 0; i < names->count; i++)
    if (stat(names->items[i], &clip) == 0 && clip.st_dev == record.st_dev &&
        clip.st_ino == record.st_ino)
      return dsnet_error_set(error, DSNET_EUSAGE, "--record: %.200s is a clip of this run",
                             names->items[i]);
  return 0;
}

void clips_free(struct clips *clips) {
  while (clips->count)
    clip_free(clips->loaded[--clips->count]);
}
