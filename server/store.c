// SPDX-License-Identifier: Apache-2.0
#include "store.h"

const char *job_state_word(enum job_state state) {
  static const char *const words[JOB_STATE_COUNT] = {
#define X(name, number, word) [JOB_##name] = (word),
      JOB_STATES(X)
#undef X
  };
  return words[state];
}
