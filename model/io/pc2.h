// SPDX-License-Identifier: Apache-2.0
// PC2 point caches, as 3ds Max's Point Cache modifier defined them and Blender's Mesh Cache
// modifier reads them. Little-endian: "POINTCACHE2\0", i32 version 1, i32 points, f32 start frame,
// f32 sample rate (frames of the scene per sample), i32 samples, then samples of f32 [points][3].
#ifndef DSNET_IO_PC2_H
#define DSNET_IO_PC2_H

#include <stddef.h>
#include <stdint.h>

#define PC2_HEADER_SIZE 32

// The header of a cache of `samples` frames, one sample a frame from frame 0 on. Both counts are at
// most INT32_MAX.
void pc2_header_write(uint32_t points, uint32_t samples, uint8_t out[PC2_HEADER_SIZE]);

#endif
