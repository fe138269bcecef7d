// SPDX-License-Identifier: Apache-2.0
// MDD point caches, as LightWave's MD Designer defined them and Blender's Mesh Cache modifier reads
// them. Big-endian: i32 frames, i32 points, f32 [frames] times in seconds, then frames of f32
// [points][3].
#ifndef DSNET_IO_MDD_H
#define DSNET_IO_MDD_H

#include <stddef.h>
#include <stdint.h>

#define MDD_HEADER_SIZE 8 // without the times

// Both counts are at most INT32_MAX.
void mdd_header_write(uint32_t points, uint32_t frames, uint8_t out[MDD_HEADER_SIZE]);
// Numbers into the file's order; `out` [4 * count] may be where the values are.
void mdd_floats_write(const float *values, size_t count, uint8_t *out);

#endif
