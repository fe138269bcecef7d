// SPDX-License-Identifier: Apache-2.0
// What a job leaves: latents and motion, from which any output is made while it is downloaded. One
// file, in the byte order and layout of the machine that wrote it, which alone reads it:
//   struct job_result_head
//   frames x (latent [Z], pose [66], trans [3])   at the model's rate
//   clip_frames x (pose [66], trans [3])          at the clip's, when that is another
#ifndef DSNET_SERVER_JOB_RESULT_H
#define DSNET_SERVER_JOB_RESULT_H

#include <stdint.h>

#include "motion/clip.h"
#include "store.h"
#include "token.h"

#define JOB_RESULT_MAGIC "DSNETJ1"

struct job_result_head {
  char magic[8];
  uint64_t latents, frames, clip_frames; // clip_frames 0: the rates are the same
  double rate, clip_fps;
  float betas[JOB_BETAS];
  uint8_t identity[TOKEN_IDENTITY_SIZE]; // of the network and body, see models.h
};

// The motion of one frame as it stands in the file.
struct job_motion {
  float pose[CLIP_POSE_SIZE], trans[3];
};

// Opens a result and checks its head against its size. Returns a descriptor, which is the caller's,
// or a negative code.
int job_result_open(const char *path, struct job_result_head *head, struct dsnet_error *error);
// Frames at the model's rate; `motion` and `latent` may be NULL.
int job_result_read(int descriptor, const struct job_result_head *head, uint64_t frame,
                    float *latent, struct job_motion *motion, struct dsnet_error *error);
// Motion of a frame at the clip's rate.
int job_result_read_clip(int descriptor, const struct job_result_head *head, uint64_t frame,
                         struct job_motion *motion, struct dsnet_error *error);

#endif
