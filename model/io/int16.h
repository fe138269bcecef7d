// SPDX-License-Identifier: Apache-2.0
// Arrays as 16-bit integers with one scale: value = q * scale, |q| <= 32767, the scale chosen so
// that the largest magnitude is 32767. The error is at most scale / 2, to the rounding of floats.
// Values must be finite.
#ifndef DSNET_IO_INT16_H
#define DSNET_IO_INT16_H

#include <stddef.h>
#include <stdint.h>

// Returns the scale, 0 when all values are 0. `to` has room for count little-endian
// integers, aligned to 2.
float int16_encode(const float *from, void *to, size_t count);
void int16_decode(float scale, const void *from, float *to, size_t count);

#endif
