// SPDX-License-Identifier: Apache-2.0
// What a run shows while it lasts, on standard error: on a terminal one line that is rewritten,
// with a sparkline of the latency; elsewhere a plain line now and then, for logs. Loop thread.
#ifndef DSNET_STREAM_DISPLAY_H
#define DSNET_STREAM_DISPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "stream/summary.h"

#define DISPLAY_SPARKS 16 // values of the sparkline

enum display_mode { DISPLAY_OFF, DISPLAY_LINES, DISPLAY_TERMINAL };

struct display_options {
  enum display_mode mode;
  bool unicode; // the terminal shows UTF-8
  FILE *out;    // NULL: standard error
};

// Start from {.options = ...}.
struct display {
  struct display_options options;
  // Private:
  uint64_t shown;                // ns; 0: never
  uint64_t received;             // of the summary, when last shown
  struct histogram latency;      // ns, since then
  double sparks[DISPLAY_SPARKS]; // p99 in ms of each time shown, the newest last
  uint64_t noted, unnoted;       // ns of the last note; notes since that were left out
};

void display_record(struct display *display, uint64_t latency);

// Shows the state of things when it is time to.
void display_update(struct display *display, const struct stream_summary *summary, uint64_t now);

// A line about something that happened; no more than some a second are shown, the rest counted.
__attribute__((format(printf, 3, 4))) void display_note(struct display *display, uint64_t now,
                                                        const char *format, ...);

// Clears the line of a terminal.
void display_end(struct display *display);

#endif
