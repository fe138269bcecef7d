// SPDX-License-Identifier: Apache-2.0
// The client's half of the WebSocket opening handshake (RFC 6455, section 4.1): the request, and
// the check of every rule the answer must keep. Text only, no I/O, no allocation.
#ifndef DSNET_STREAM_UPGRADE_H
#define DSNET_STREAM_UPGRADE_H

#include <stddef.h>

#include "stream/url.h"

#define UPGRADE_HEAD_MAX 8192 // bytes of an answer's status line and headers

// Writes the request; returns its length, or 0 when it does not fit. `key` is that of
// wire/handshake.h; `token` (may be NULL) must be printable ASCII and goes into an Authorization
// header.
size_t upgrade_request_write(char *out, size_t size, const struct stream_url *url, const char *key,
                             const char *token);

enum upgrade_status {
  UPGRADE_MORE,    // the head is not complete yet
  UPGRADE_DONE,    // this is a dsnet.v1 WebSocket now; frames start at head_size
  UPGRADE_REFUSED, // a valid answer with another status than 101
  UPGRADE_BAD,     // not an answer that RFC 6455 allows
};

struct upgrade_response {
  size_t head_size;
  int status;         // of HTTP, 0 when the status line is not one
  double retry_after; // seconds from now that a Retry-After names, or 0
  char text[256];     // REFUSED and BAD: what is wrong, one line without control characters
};

// Reads the first `size` bytes of the answer, all of them on every call.
enum upgrade_status upgrade_response_read(const char *bytes, size_t size, const char *key,
                                          struct upgrade_response *response);

#endif
