// SPDX-License-Identifier: Apache-2.0
// The identity of a body: a model learned on one body must not be run on another.
#ifndef DSNET_BODY_HASH_H
#define DSNET_BODY_HASH_H

#include "body/body.h"

// Fills body->hash, which is BLAKE2b-256 (RFC 7693, no key) of these bytes, all little-endian and
// without padding:
//
//   "dsnet body 1"                12 bytes
//   V, F, B, P                    u32 each; P is 207, or 0 without pose directions
//   template [V][3]               f32
//   shape directions [V][3][B]    f32
//   pose directions [V][3][P]     f32
//   regressor [24][V]             f32
//   weight joints [V][4]          u8, heaviest first; without a weight, the first one again
//   weights [V][4]                f32
//   parents [24]                  i32, -1 for the root
//   faces [F][3]                  u32
//
// They are the arrays that a body keeps, so a file's number type, compression, surplus shape
// directions or soft-tissue map do not matter.
void hash_body(struct body *body);

#endif
