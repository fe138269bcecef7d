// SPDX-License-Identifier: Apache-2.0
// The whole trainable network (features -> LSTM layers -> linear (+ direct path) -> latents) over a
// window, forward and backward, for one shard of streams. A shard is what one thread works on: it
// shares nothing but the weights.
#ifndef DSNET_TRAIN_BPTT_H
#define DSNET_TRAIN_BPTT_H

#include "base/error.h"
#include "train/weights.h"

struct bptt;

// Working memory for windows of up to `frames` frames of `streams` streams.
int bptt_new(struct bptt **bptt, const struct weights_layout *layout, size_t streams, size_t frames,
             struct dsnet_error *error);
void bptt_free(struct bptt *bptt);

// Floats of the state that is carried from window to window: [layers][2 (h, c)][streams][H].
size_t bptt_state_size(const struct weights_layout *layout, size_t streams);
// Sets one stream's part of it to the start of a sequence.
void bptt_state_reset(const struct weights_layout *layout, size_t streams, size_t stream,
                      float *state);

// latents [frames][streams][Z] of normalised features x [frames][streams][F]; advances `state`.
void bptt_forward(struct bptt *bptt, const float *weights, const float *x, size_t frames,
                  float *state, float *latents);

// After bptt_forward with the same weights and x: adds the gradients of a loss whose gradient at
// the latents is d_latents [frames][streams][Z] to `gradients` [layout total].
void bptt_backward(struct bptt *bptt, const float *weights, const float *x, size_t frames,
                   const float *d_latents, float *gradients);

#endif
