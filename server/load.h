// SPDX-License-Identifier: Apache-2.0
// Whether the server keeps up: the share of results, second by second, that came later than their
// frame's period. While it is above a limit no new stream is taken, so that those there are keep
// their deadline; streams are taken again when it has been under a fifth of that for some seconds.
#ifndef DSNET_SERVER_LOAD_H
#define DSNET_SERVER_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_WINDOW_MS  1000
#define LOAD_FRAMES_MIN 60 // results of a second under which nothing is concluded
#define LOAD_CALM       3  // good seconds in a row after which streams are taken again

struct load {
  double limit;   // share that may be late; 1 or more never refuses
  uint64_t since; // ms, start of the present window
  uint32_t frames, late;
  uint32_t calm; // good windows in a row
  bool overloaded;
};

void load_init(struct load *load, double limit, uint64_t now);
// One result.
void load_add(struct load *load, bool late);
// To be called now and then.
void load_turn(struct load *load, uint64_t now);

#endif
