// SPDX-License-Identifier: Apache-2.0
// Posed vertices of a sequence to displacements D in the rest space of the shaped body, by inverse
// skinning (body/pose.h), and the clip that belongs to a sequence.
#ifndef DSNET_TRAIN_UNPOSE_H
#define DSNET_TRAIN_UNPOSE_H

#include "body/body.h"
#include "io/dyna.h"
#include "motion/clip.h"

// The clip of a sequence at 60 Hz, and in *frames how many frames both have. Lengths may differ by
// UNPOSE_SLACK frames, as those of DFAUST and its fitted poses do.
#define UNPOSE_SLACK 10
int unpose_clip(const struct dyna_sequence *sequence, struct clip **clip, size_t *frames,
                struct dsnet_error *error);

// DSNET_EMISMATCH unless the data's faces and vertex count are the body's.
int unpose_check_body(const struct dyna *dyna, const struct body *body, struct dsnet_error *error);

// What stays the same over a sequence. One thread.
struct unpose {
  const struct body *body;
  float *shaped; // [V][3] T(betas)
  float *rest;   // [V][3] with the pose part of the frame at hand
  float joints[BODY_JOINTS * 3];
  float transforms[BODY_JOINTS * 12];
};

int unpose_init(struct unpose *unpose, const struct body *body, const float *betas, size_t count,
                struct dsnet_error *error);
void unpose_deinit(struct unpose *unpose);

// Sets `rest` and `transforms` to a frame of a clip.
void unpose_frame(struct unpose *unpose, const float *pose, const float *trans);

// displacements [count][V][3] of posed [count][V][3], frames first ... of the clip. The two may not
// overlap.
int unpose_range(struct unpose *unpose, const struct clip *clip, size_t first, size_t count,
                 const float *posed, float *displacements, struct dsnet_error *error);

#endif
