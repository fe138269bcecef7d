// SPDX-License-Identifier: Apache-2.0
#include "train/predict.h"

#include <stdlib.h>

#include "base/memory.h"
#include "train/bptt.h"

#define WINDOW 64

int predict_latents(const struct trainer *trainer, const float *weights,
                    const struct sequence *sequence, float *latents, struct dsnet_error *error) {
  const struct weights_layout *layout = &trainer->layout;
  const struct feature_set *set = trainer->options.features;
  float *state = memory_alloc(bptt_state_size(layout, 1), sizeof *state);
  float *memory = memory_alloc(set->memory, sizeof *memory);
  float *x = memory_alloc(WINDOW * layout->inputs, sizeof *x);
  struct bptt *bptt = NULL;
  int result = bptt_new(&bptt, layout, 1, WINDOW, error);
  if (result == 0 && (!state || !memory || !x))
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  for (size_t first = 0; result == 0 && first < sequence->frames; first += WINDOW) {
    size_t rest = sequence->frames - first, count = rest < WINDOW ? rest : WINDOW;
    for (size_t t = 0; t < count; t++) {
      float *row = x + t * layout->inputs;
      set->step(DYNA_FPS, sequence->clip->pose + (first + t) * CLIP_POSE_SIZE,
                sequence->clip->trans + (first + t) * 3, sequence->betas, memory, row);
      for (size_t i = 0; i < layout->inputs; i++)
        row[i] = (row[i] - trainer->mean[i]) * trainer->scale[i];
    }
    bptt_forward(bptt, weights, x, count, state, latents + first * layout->latent);
  }
  bptt_free(bptt);
  free(state);
  free(memory);
  free(x);
  return result;
}
