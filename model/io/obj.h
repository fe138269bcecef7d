// SPDX-License-Identifier: Apache-2.0
// Wavefront OBJ meshes: `v x y z` lines, then `f a b c` lines with indices from 1.
#ifndef DSNET_IO_OBJ_H
#define DSNET_IO_OBJ_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// Writes vertices [count][3] and faces [face_count][3] atomically. Nine significant digits, so that
// every float reads back as it was.
int obj_write(const char *path, const float *vertices, size_t count, const uint32_t *faces,
              size_t face_count, struct dsnet_error *error);

#endif
