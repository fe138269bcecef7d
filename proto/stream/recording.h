// SPDX-License-Identifier: Apache-2.0
// A session's results as a file, written frame by frame so that no clip is ever whole in memory.
// The ending of its name chooses the format:
//
//   .npz  `displacement` or `vertices` [T][V][3], or `latent` [T][Z], float32; `seq` [T] uint32,
//         `latency` [T] float64 seconds, `fps` float64, `model` text
//   .pc2  a point cache (io/pc2.h) of vertices or displacements
//   .raw  the frames' float32 numbers, little-endian, one frame after the other, and nothing else
//
// Metres; the file appears only when every frame is in it. Loop thread; the writes block.
#ifndef DSNET_STREAM_RECORDING_H
#define DSNET_STREAM_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/frame.h"

struct recording;

struct recording_shape {
  enum frame_kind kind;
  size_t frames, numbers; // 3 V or Z numbers a frame
};

// Whether results of `kind` can be recorded under this name; DSNET_EUSAGE says why not.
int recording_check_name(const char *output, enum frame_kind kind, struct dsnet_error *error);

// "out.npz" for one session, "out_000.npz" ... for several. DSNET_ELIMIT when it does not fit.
int recording_path(char *path, size_t size, const char *output, size_t session, size_t sessions,
                   struct dsnet_error *error);

// Creates the file under a temporary name, so that a path that cannot be written shows early.
int recording_open(struct recording **recording, const char *path, struct dsnet_error *error);

// Whether the file's disk has room for `numbers` float32; DSNET_ELIMIT when it has not. A file
// system that does not tell is trusted.
int recording_check_space(const struct recording *recording, double numbers,
                          struct dsnet_error *error);

// Writes what stands before the frames.
int recording_begin(struct recording *recording, const struct recording_shape *shape,
                    struct dsnet_error *error);

// The next frame: `values` [numbers], its seq and latency in seconds.
int recording_add(struct recording *recording, const float *values, uint32_t seq, double latency,
                  struct dsnet_error *error);

// After the last frame: finishes the file. The recording is gone afterwards.
int recording_close(struct recording *recording, double fps, const char *model,
                    struct dsnet_error *error);

// Gives up, leaving no file. NULL is allowed.
void recording_abort(struct recording *recording);

#endif
