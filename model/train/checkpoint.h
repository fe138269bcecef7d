// SPDX-License-Identifier: Apache-2.0
// A training run on disk: an npz (readable by NumPy) with the weights, the best ones so far, Adam's
// moments, the counts and the record of every epoch. Written whole or not at all, between epochs.
#ifndef DSNET_TRAIN_CHECKPOINT_H
#define DSNET_TRAIN_CHECKPOINT_H

#include "train/trainer.h"

int checkpoint_save(const struct trainer *trainer, const char *path, struct dsnet_error *error);
// Into a fresh trainer made with the same data and options; DSNET_EMISMATCH when the checkpoint is
// of another run (sizes, normalisation, seed), DSNET_EVALUE for counts that cannot be.
int checkpoint_load(struct trainer *trainer, const char *path, struct dsnet_error *error);

#endif
