// SPDX-License-Identifier: Apache-2.0
// The frames of a job's result in the form that a client asked for. One thread at a time.
#ifndef DSNET_SERVER_JOB_OUTPUT_H
#define DSNET_SERVER_JOB_OUTPUT_H

#include "job_result.h"
#include "models.h"
#include "net/output.h"

struct job_output_form {
  enum net_output_kind kind;
  enum net_output_encoding encoding; // NET_AS_F32 or NET_AS_F16
  bool clip_rate;                    // frames of the clip instead of the model's
  bool big_endian;                   // of f32
};

struct job_output;

// `descriptor` is a result's, whose head this is; it is taken, also by a failure. `model` is an
// index.
int job_output_new(struct job_output **output, const struct models *models, size_t model,
                   int descriptor, const struct job_result_head *head,
                   const struct job_output_form *form, struct dsnet_error *error);
void job_output_free(struct job_output *output);

// Frames that the result has at a rate, and bytes of one.
uint64_t job_output_frames(const struct job_result_head *head, bool clip_rate);
size_t job_output_frame_size(const struct models *models, size_t model,
                             const struct job_output_form *form);
// Frames that are best made together, and at most.
size_t job_output_block(const struct job_output *output);
// Writes `count` frames from `first` on. DSNET_EIO when the file cannot be read.
int job_output_write(struct job_output *output, uint64_t first, size_t count, void *out,
                     struct dsnet_error *error);

#endif
