// SPDX-License-Identifier: Apache-2.0
// A network in training run over one whole sequence.
#ifndef DSNET_TRAIN_PREDICT_H
#define DSNET_TRAIN_PREDICT_H

#include "train/trainer.h"

// latents [frames][Z] (whitened) of a sequence from its start with the given weights.
int predict_latents(const struct trainer *trainer, const float *weights,
                    const struct sequence *sequence, float *latents, struct dsnet_error *error);

#endif
