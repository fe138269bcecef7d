// SPDX-License-Identifier: Apache-2.0
// Checks displacement frames as their bytes come in, in pieces of any size, without putting a frame
// together: header, size, finiteness, and the largest displacement of each vertex.
#ifndef DSNET_STREAM_RESULT_H
#define DSNET_STREAM_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

// Start from {.vertices = V, .largest = ...}; result_begin before each frame.
struct result {
  uint32_t vertices;
  float *largest; // [V], the squared length of each vertex's largest displacement, or NULL
  // Private:
  uint8_t header[FRAME_HEADER_SIZE], carry[12]; // carry: a vertex cut by the end of a piece
  size_t header_size, payload_size;
  bool finite;
};

void result_begin(struct result *result);

// Moves *bytes and *size past what belongs to the header. True once the header is whole; then
// `header` is filled.
bool result_take_header(struct result *result, const uint8_t **bytes, size_t *size,
                        struct frame_header *header);

// The payload's next bytes. False, and nothing is read, when they are more than V vertices have.
bool result_take_payload(struct result *result, const uint8_t *bytes, size_t size);

// After the frame's last byte: whether it was all there, and whether every number was finite.
bool result_is_complete(const struct result *result);
bool result_is_finite(const struct result *result);

#endif
