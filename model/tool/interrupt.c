// SPDX-License-Identifier: Apache-2.0
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>

static atomic_int seen; // lock-free, so a handler may set it and any thread read it

static void handle(int number) {
  (void)number;
  atomic_store(&seen, 1);
}

void interrupt_catch(void) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

bool interrupt_seen(void) {
  return atomic_load(&seen) != 0;
}
