// SPDX-License-Identifier: Apache-2.0
// A session's results as an npz, written while they come in so that no clip is ever whole in
// memory: `displacement` [T][V][3] float32 metres, `seq` [T] uint32, `latency` [T] float64 seconds,
// `fps` float64, `model` text. The file appears only when every frame is in it. Loop thread; the
// writes block.
#ifndef DSNET_STREAM_RECORDING_H
#define DSNET_STREAM_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct recording;

// "out.npz" for one session, "out_000.npz" ... for several. DSNET_ELIMIT when it does not fit.
int recording_path(char *path, size_t size, const char *output, size_t session, size_t sessions,
                   struct dsnet_error *error);

int recording_open(struct recording **recording, const char *path, size_t frames, size_t vertices,
                   struct dsnet_error *error);
// The next bytes of the current frame's displacement.
int recording_append(struct recording *recording, const uint8_t *bytes, size_t size,
                     struct dsnet_error *error);
// The current frame is complete.
void recording_end_frame(struct recording *recording, uint32_t seq, double latency);
// After the last frame: finishes the file. The recording is gone afterwards.
int recording_close(struct recording *recording, double fps, const char *model,
                    struct dsnet_error *error);
// Gives up, leaving no file. NULL is allowed.
void recording_abort(struct recording *recording);

#endif
