// SPDX-License-Identifier: Apache-2.0
// A job's clip from the file it was sent as: an AMASS npz, or JSON
//   {"fps": 60, "pose": [[66 or more numbers], ...], "trans": [[x, y, z], ...],
//    "betas": [...], "up": "z" or "y"}
// whose first two tell a frame each row; betas and up may be left out.
#ifndef DSNET_SERVER_JOB_CLIP_H
#define DSNET_SERVER_JOB_CLIP_H

#include "motion/clip.h"
#include "store.h"

// Bytes of a JSON clip, which is read as a whole and takes some twenty times its size in memory.
#define JOB_JSON_MAX (8u << 20)

// Loads and checks: at most `frames_max` frames, also at `rate` frames a second; rotations and
// places within what the stream protocol takes. An error names the array or member, and the frame.
int job_clip_load(struct clip **clip, enum job_clip kind, const char *path, double rate,
                  size_t frames_max, struct dsnet_error *error);

#endif
