// SPDX-License-Identifier: Apache-2.0
// From the joints of a file (SMPL's 24, SMPL-H's 52, SMPL-X's 55) to a body's 24. A joint that no
// pose moves goes rigidly with its parent, so its weights may be given to that parent exactly.
#ifndef DSNET_BODY_FOLD_H
#define DSNET_BODY_FOLD_H

#include "body/arrays.h"

struct fold {
  uint8_t target[BODY_FILE_JOINTS_MAX]; // the body joint that a file joint's weights go to
  uint8_t source[BODY_JOINTS];          // the file joint whose place a body joint takes
  int parents[BODY_JOINTS];             // -1 for the root
};

// Checks the file's tree [2][joints] (one root, which is joint 0; parents before children; ids in
// order) and fills `fold`. Fails with DSNET_EMISMATCH, or DSNET_EUNSUPPORTED for another count.
int fold_joints(const int64_t *kintree_table, size_t joints, struct fold *fold,
                struct dsnet_error *error);

#endif
