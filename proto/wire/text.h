// SPDX-License-Identifier: Apache-2.0
// Text that came from outside, made fit to be put in a message or on a terminal.
#ifndef DSNET_WIRE_TEXT_H
#define DSNET_WIRE_TEXT_H

#include <stddef.h>

// Copies `in` (NUL-terminated) as one line of valid UTF-8: every control character and every byte
// that is not part of a valid sequence (RFC 3629: no surrogates, no overlong forms) becomes '?'.
// What does not fit `size` (at least 1, the NUL included) is cut off at a character's boundary.
void text_copy_line(char *out, size_t size, const char *in);

#endif
