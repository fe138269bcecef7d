// SPDX-License-Identifier: Apache-2.0
// How far long work has come, on standard error: one line rewritten in place on a terminal, a plain
// line now and then where there is none (a log).
#ifndef DSNET_TOOL_PROGRESS_H
#define DSNET_TOOL_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
  const char *unit; // "frames"
  size_t total;
  double started, printed; // seconds of the monotonic clock
  bool terminal;
};

void progress_start(struct progress *progress, const char *unit, size_t total);
// Call as often as is handy: prints at most some times a second. `detail` follows the time left,
// may be NULL.
void progress_update(struct progress *progress, size_t done, const char *detail);
// Ends the line. Prints nothing more.
void progress_finish(struct progress *progress);

double progress_seconds(const struct progress *progress); // since the start

#endif
