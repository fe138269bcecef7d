// SPDX-License-Identifier: Apache-2.0
// Which sequence is trained on, which one stops the training, and which are only ever tested. Fixed
// and written down in a text file, one rule a line, patterns as in the shell (* ? []):
//
//   # comment
//   subject PATTERN      shapes that never enter training
//   motion PATTERN       motions that never enter training
//   validation PATTERN   "<subject>_<motion>" of what is left: only decides when to stop
#ifndef DSNET_EVAL_SPLITS_H
#define DSNET_EVAL_SPLITS_H

#include "base/error.h"

enum split {
  SPLIT_TRAIN,
  SPLIT_VALIDATION,
  SPLIT_UNSEEN_MOTION, // seen shape
  SPLIT_UNSEEN_SHAPE,  // seen motion
  SPLIT_UNSEEN_BOTH,
  SPLIT_COUNT
};

struct splits;

int splits_load(struct splits **splits, const char *path, struct dsnet_error *error);
// The same from text; `name` is for errors.
int splits_parse(struct splits **splits, const char *text, const char *name,
                 struct dsnet_error *error);
void splits_free(struct splits *splits);

enum split splits_of(const struct splits *splits, const char *subject, const char *motion);

// "unseen motion, seen shape" ...
const char *split_name(enum split split);

#endif
