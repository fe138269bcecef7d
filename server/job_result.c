// SPDX-License-Identifier: Apache-2.0
#include "job_result.h"

#include <string.h>
#include <unistd.h>

#include "io/file.h"
#include "net/net.h"

static uint64_t record_size(const struct job_result_head *head) {
  return head->latents * sizeof(float) + sizeof(struct job_motion);
}

int job_result_open(const char *path, struct job_result_head *head, struct dsnet_error *error) {
  int descriptor;
  uint64_t size;
  int result = file_open_regular(path, &descriptor, &size, error);
  if (result < 0)
    return result;
  result = file_read_at(descriptor, 0, head, sizeof *head, error);
  if (result == 0 && (memcmp(head->magic, JOB_RESULT_MAGIC, sizeof head->magic) || !head->latents ||
                      head->latents > NET_LATENT_MAX || !head->frames ||
                      head->frames > CLIP_FRAMES_MAX || head->clip_frames > CLIP_FRAMES_MAX ||
                      size != sizeof *head + head->frames * record_size(head) +
                                  head->clip_frames * sizeof(struct job_motion)))
    result = dsnet_error_set(error, DSNET_EFORMAT, "%s is damaged", path);
  if (result < 0) {
    close(descriptor);
    return result;
  }
  return descriptor;
}

int job_result_read(int descriptor, const struct job_result_head *head, uint64_t frame,
                    float *latent, struct job_motion *motion, struct dsnet_error *error) {
  uint64_t at = sizeof *head + frame * record_size(head), latents = head->latents * sizeof(float);
  int result = 0;
  if (latent)
    result = file_read_at(descriptor, at, latent, latents, error);
  if (result == 0 && motion)
    result = file_read_at(descriptor, at + latents, motion, sizeof *motion, error);
  return result;
}

int job_result_read_clip(int descriptor, const struct job_result_head *head, uint64_t frame,
                         struct job_motion *motion, struct dsnet_error *error) {
  uint64_t at = sizeof *head + head->frames * record_size(head) + frame * sizeof *motion;
  return file_read_at(descriptor, at, motion, sizeof *motion, error);
}
