// SPDX-License-Identifier: Apache-2.0
#include "load.h"

void load_init(struct load *load, double limit, uint64_t now) {
  *load = (struct load){.limit = limit, .since = now};
}

void load_add(struct load *load, bool late) {
  load->frames++;
  load->late += late;
}

void load_turn(struct load *load, uint64_t now) {
  if (now - load->since < LOAD_WINDOW_MS)
    return;
  double share = load->frames >= LOAD_FRAMES_MIN ? (double)load->late / load->frames : 0;
  load->calm = share <= load->limit / 5 ? load->calm + 1 : 0;
  if (share > load->limit)
    load->overloaded = true;
  else if (load->calm >= LOAD_CALM)
    load->overloaded = false;
  load->since = now;
  load->frames = load->late = 0;
}
