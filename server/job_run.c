// SPDX-License-Identifier: Apache-2.0
#include "job_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/file.h"
#include "job_clip.h"
#include "job_result.h"
#include "net/net.h"

#define STRETCH 192 // frames between two questions whether to go on

// Everything one run holds. Zeroed before use, so that it can be released at any point.
struct run {
  const struct job_run_settings *settings;
  const struct net *net;
  struct job_result_head head;
  struct clip *raw, *clip; // as sent, and at the model's rate
  struct net_stretch *stretch;
  float *state, *latents; // [net_state_size], [STRETCH][Z]
  struct file_writer *writer;
};

static void release(struct run *run) {
  file_writer_abort(run->writer);
  net_stretch_free(run->stretch);
  free(run->state);
  free(run->latents);
  clip_free(run->clip);
  clip_free(run->raw);
}

// The sender knows nothing of where the file is.
static void drop_path(struct dsnet_error *error, const char *path) {
  size_t length = strnlen(path, 160); // as much of it as messages have
  if (error && !strncmp(error->text, path, length) && !strncmp(error->text + length, ": ", 2))
    memmove(error->text, error->text + length + 2, strlen(error->text + length + 2) + 1);
}

static int load(struct run *run, const struct job *job, struct dsnet_error *error) {
  const struct net_config *config = net_config(run->net);
  char path[JOB_PATH_SIZE];
  job_files_clip(run->settings->files, job->id, path);
  int result =
      job_clip_load(&run->raw, job->clip, path, config->rate, run->settings->frames_max, error);
  if (result < 0)
    drop_path(error, path);
  else
    result = clip_resample(run->raw, config->rate, &run->clip, error);
  return result;
}

static int prepare(struct run *run, const struct job *job, size_t model,
                   struct dsnet_error *error) {
  const struct net_config *config = net_config(run->net);
  int result = load(run, job, error);
  if (result == 0)
    result = net_stretch_new(&run->stretch, run->net, error);
  if (result < 0)
    return result;
  run->state = memory_alloc(net_state_size(run->net), sizeof(float));
  run->latents = memory_alloc(STRETCH * config->latent, sizeof(float));
  if (!run->state || !run->latents)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  bool same = run->raw->frames == run->clip->frames;
  run->head = (struct job_result_head){.magic = JOB_RESULT_MAGIC,
                                       .latents = config->latent,
                                       .frames = run->clip->frames,
                                       .clip_frames = same ? 0 : run->raw->frames,
                                       .rate = config->rate,
                                       .clip_fps = run->raw->fps};
  memcpy(run->head.betas, job->has_betas ? job->betas : run->clip->betas, sizeof run->head.betas);
  memcpy(run->head.identity, run->settings->models->items[model].identity,
         sizeof run->head.identity);
  return 0;
}

static struct job_motion motion_of(const struct clip *clip, size_t frame) {
  struct job_motion motion;
  memcpy(motion.pose, clip->pose + frame * CLIP_POSE_SIZE, sizeof motion.pose);
  memcpy(motion.trans, clip->trans + frame * 3, sizeof motion.trans);
  return motion;
}

static int write_stretch(struct run *run, size_t first, size_t count, struct dsnet_error *error) {
  size_t latent = net_config(run->net)->latent;
  net_step_stretch(run->net, run->stretch, run->state, count,
                   run->clip->pose + first * CLIP_POSE_SIZE, run->clip->trans + first * 3,
                   run->head.betas, run->latents);
  int result = 0;
  for (size_t t = 0; result == 0 && t < count; t++) {
    struct job_motion motion = motion_of(run->clip, first + t);
    result =
        file_writer_append(run->writer, run->latents + t * latent, latent * sizeof(float), error);
    if (result == 0)
      result = file_writer_append(run->writer, &motion, sizeof motion, error);
  }
  return result;
}

static int write_frames(struct run *run, struct dsnet_error *error) {
  size_t frames = run->clip->frames;
  int result = file_writer_append(run->writer, &run->head, sizeof run->head, error);
  for (size_t done = 0; result == 0 && done < frames; done += STRETCH) {
    if (!run->settings->go_on(run->settings->user, frames, done))
      return dsnet_error_set(error, DSNET_ECANCELLED, "interrupted");
    result = write_stretch(run, done, frames - done < STRETCH ? frames - done : STRETCH, error);
  }
  for (size_t t = 0; result == 0 && t < run->head.clip_frames; t++) {
    struct job_motion motion = motion_of(run->raw, t);
    result = file_writer_append(run->writer, &motion, sizeof motion, error);
  }
  return result;
}

int job_run(const struct job_run_settings *settings, struct job *job, struct dsnet_error *error) {
  struct run run = {.settings = settings};
  char path[JOB_PATH_SIZE];
  int model = models_find(settings->models, job->model);
  if (model < 0)
    return dsnet_error_set(error, DSNET_EMISSING,
                           "model: this server does not have \"%s\" any more", job->model);
  run.net = settings->models->items[model].net;
  int result = prepare(&run, job, (size_t)model, error);
  job_files_result(settings->files, job, path);
  if (result == 0)
    result = file_writer_open(&run.writer, path, error);
  if (result == 0)
    result = write_frames(&run, error);
  if (result == 0) {
    struct file_writer *writer = run.writer;
    run.writer = NULL;
    result = file_writer_commit(writer, error);
    job->frames = run.clip->frames;
  }
  release(&run);
  return result;
}
