// SPDX-License-Identifier: Apache-2.0
// Puts result frames together as their bytes come in, in pieces of any size, and decodes them.
#ifndef DSNET_STREAM_RESULT_H
#define DSNET_STREAM_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

// All zeros is empty; result_init before use, result_begin before each frame.
struct result {
  enum frame_encoding encoding;
  size_t numbers; // of a payload: 3 V or Z
  // Private:
  uint8_t header[FRAME_HEADER_SIZE];
  uint8_t *payload; // [payload_size]
  size_t payload_size, header_taken, payload_taken;
};

// Room for the results of a session with V vertices and Z latents. DSNET_ENOMEM, or DSNET_EVALUE
// when kind or encoding is none a server sends. result_deinit frees it; all zeros is allowed there.
int result_init(struct result *result, enum frame_kind kind, enum frame_encoding encoding,
                uint32_t vertices, uint32_t latents);
void result_deinit(struct result *result);

void result_begin(struct result *result);

// Moves *bytes and *size past what belongs to the header. True once the header is whole; then
// `header` is filled.
bool result_take_header(struct result *result, const uint8_t **bytes, size_t *size,
                        struct frame_header *header);

// The payload's next bytes, or NULL when they were not kept. False, and nothing is read, when they
// are more than the payload has.
bool result_take_payload(struct result *result, const uint8_t *bytes, size_t size);

// After the frame's last byte: whether it was all there.
bool result_is_complete(const struct result *result);

// Decodes the payload, of which every byte must have been kept, into `values` [numbers]. False when
// one of them is not finite.
bool result_decode(const struct result *result, float *values);

// Raises `largest` [V], squared metres, to the squared lengths of `values` [V][3] where these are
// larger.
void result_note_largest(const float *values, size_t vertices, float *largest);

#endif
