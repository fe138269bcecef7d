// SPDX-License-Identifier: Apache-2.0
#include "job_output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "body/pose.h"
#include "io/mdd.h"

#define TOGETHER_MAX 8
#define BLOCK_BYTES  (1u << 20)

struct job_output {
  const struct models *models;
  const struct net *net;
  int descriptor;
  struct job_result_head head;
  struct job_output_form form;
  size_t frame_size, together;
  struct net_output_scratch *scratch;
  float joints[BODY_JOINTS * 3]; // of the shaped body at rest
  float *latents;                // [TOGETHER_MAX + 1][Z]; the last is for mixing
  struct job_motion motions[TOGETHER_MAX];
  float transforms[TOGETHER_MAX][BODY_JOINTS * 12];
  struct net_placement placements[TOGETHER_MAX];
  struct net_output outputs[TOGETHER_MAX];
};

uint64_t job_output_frames(const struct job_result_head *head, bool clip_rate) {
  return clip_rate && head->clip_frames ? head->clip_frames : head->frames;
}

size_t job_output_frame_size(const struct models *models, size_t model,
                             const struct job_output_form *form) {
  return net_output_size(models->items[model].net, form->kind, form->encoding);
}

int job_output_new(struct job_output **out, const struct models *models, size_t model,
                   int descriptor, const struct job_result_head *head,
                   const struct job_output_form *form, struct dsnet_error *error) {
  *out = NULL;
  struct job_output *output = calloc(1, sizeof *output);
  if (!output) {
    close(descriptor);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  output->models = models;
  output->net = models->items[model].net;
  output->descriptor = descriptor;
  output->head = *head;
  output->form = *form;
  output->frame_size = job_output_frame_size(models, model, form);
  size_t fit = BLOCK_BYTES / output->frame_size;
  output->together = fit < 1 ? 1 : fit > TOGETHER_MAX ? TOGETHER_MAX : fit;
  output->latents = memory_alloc((TOGETHER_MAX + 1) * head->latents, sizeof(float));
  int result = output->latents ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0)
    result = net_output_scratch_new(&output->scratch, output->net, output->together, error);
  if (result < 0) {
    job_output_free(output);
    return result;
  }
  body_shape(models->body, head->betas, JOB_BETAS, NULL, output->joints);
  *out = output;
  return 0;
}

void job_output_free(struct job_output *output) {
  if (!output)
    return;
  close(output->descriptor);
  net_output_scratch_free(output->scratch);
  free(output->latents);
  free(output);
}

size_t job_output_block(const struct job_output *output) {
  return output->together;
}

// The latent and motion of a frame at the clip's rate: the motion is the clip's own, the latent is
// mixed from the model's frames around its time. Behind the last of these it is the last.
static int read_between(struct job_output *output, uint64_t frame, float *latent,
                        struct job_motion *motion, struct dsnet_error *error) {
  const struct job_result_head *head = &output->head;
  float *next = output->latents + TOGETHER_MAX * head->latents;
  double time = (double)frame * head->rate / head->clip_fps;
  uint64_t before = (uint64_t)time;
  float mix = (float)(time - floor(time));
  if (before + 1 >= head->frames) {
    before = head->frames - 1;
    mix = 0;
  }
  int result = job_result_read_clip(output->descriptor, head, frame, motion, error);
  if (result == 0)
    result = job_result_read(output->descriptor, head, before, latent, NULL, error);
  if (result < 0 || mix == 0)
    return result;
  result = job_result_read(output->descriptor, head, before + 1, next, NULL, error);
  for (size_t i = 0; result == 0 && i < head->latents; i++)
    latent[i] += mix * (next[i] - latent[i]);
  return result;
}

static int read_frame(struct job_output *output, uint64_t frame, size_t row,
                      struct dsnet_error *error) {
  const struct job_result_head *head = &output->head;
  float *latent = output->latents + row * head->latents;
  struct job_motion *motion = &output->motions[row];
  return output->form.clip_rate && head->clip_frames
             ? read_between(output, frame, latent, motion, error)
             : job_result_read(output->descriptor, head, frame, latent, motion, error);
}

static void place(struct job_output *output, size_t row) {
  const struct job_motion *motion = &output->motions[row];
  body_transforms(output->models->body, output->joints, motion->pose, motion->trans,
                  output->transforms[row], NULL);
  output->placements[row] = (struct net_placement){.body = output->models->body,
                                                   .pose = motion->pose,
                                                   .betas = output->head.betas,
                                                   .transforms = output->transforms[row]};
}

int job_output_write(struct job_output *output, uint64_t first, size_t count, void *out,
                     struct dsnet_error *error) {
  char *to = out;
  for (size_t row = 0; row < count; row++) {
    int result = read_frame(output, first + row, row, error);
    if (result < 0)
      return result;
    if (output->form.kind == NET_VERTICES)
      place(output, row);
    output->outputs[row] =
        (struct net_output){.kind = output->form.kind,
                            .encoding = output->form.encoding,
                            .latent = output->latents + row * output->head.latents,
                            .placement = &output->placements[row],
                            .payload = to + row * output->frame_size};
  }
  net_output_write(output->net, output->scratch, output->outputs, count);
  if (output->form.big_endian)
    mdd_floats_write(out, count * output->frame_size / sizeof(float), out);
  return 0;
}
