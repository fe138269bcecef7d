// SPDX-License-Identifier: Apache-2.0
// IEEE 754 binary16 to and from float, by the processor's F16C instructions where it has them. Both
// ways agree bit for bit on every input but the payloads of NaNs: to nearest even, beyond 65504 +
// 16 infinity, denormals kept, a NaN stays a NaN.
#ifndef DSNET_IO_HALF_H
#define DSNET_IO_HALF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint16_t half_from_float(float value);
float half_to_float(uint16_t half);

// Whole arrays; neither side needs alignment.
void half_encode(const float *from, void *to, size_t count);
void half_decode(const void *from, float *to, size_t count);

// For tests: whether half_encode and half_decode use F16C here.
bool half_is_hardware(void);

#endif
