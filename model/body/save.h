// SPDX-License-Identifier: Apache-2.0
// Writes a body in the SMPL npz layout.
#ifndef DSNET_BODY_SAVE_H
#define DSNET_BODY_SAVE_H

#include "body/body.h"

// The arrays that body_load reads, deflated: float32 values, `f` and `kintree_table` uint32 (the
// root's parent is 4294967295), `weights` dense, `posedirs` and `soft_tissue` when the body has
// them. The file appears whole or not at all. Loading it gives a body with the same hash.
int body_save(const struct body *body, const char *path, struct dsnet_error *error);

#endif
