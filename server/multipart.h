// SPDX-License-Identifier: Apache-2.0
// One file out of a multipart/form-data body (RFC 7578, RFC 2046), as it arrives in pieces of any
// size: finds the part with a given name and hands on its content. Other parts are passed over.
#ifndef DSNET_SERVER_MULTIPART_H
#define DSNET_SERVER_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define MULTIPART_BOUNDARY_MAX 70 // as the RFC has it
#define MULTIPART_HEAD_MAX     2048

enum multipart_state {
  MULTIPART_CONTENT,   // of a part, or the preamble
  MULTIPART_DELIMITED, // behind a delimiter: the next lines tell whether it was the last
  MULTIPART_HEAD,
  MULTIPART_END,
};

struct multipart {
  const char *field; // the name of the part that is wanted
  char delimiter[MULTIPART_BOUNDARY_MAX + 5];
  size_t delimiter_size, matched;
  enum multipart_state state;
  char head[MULTIPART_HEAD_MAX];
  size_t head_size;
  bool wanted; // the part at hand is the one
  bool found;
};

// Takes the boundary from a Content-Type field. `field` is kept. DSNET_EFORMAT when there is no
// good boundary in it.
int multipart_init(struct multipart *multipart, const char *content_type, const char *field,
                   struct dsnet_error *error);

// Where the wanted content goes; anything but 0 stops and is returned by multipart_take.
typedef int multipart_sink(void *user, const char *data, size_t size);

// DSNET_EFORMAT for a body that is no such document, has the wanted part twice, or heads that are
// too long.
int multipart_take(struct multipart *multipart, const char *data, size_t size, multipart_sink *sink,
                   void *user, struct dsnet_error *error);

// At the body's end: DSNET_EFORMAT when it is not complete or the part was not in it.
int multipart_finish(const struct multipart *multipart, struct dsnet_error *error);

#endif
