// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM for work that can be stopped in good order.
#ifndef DSNET_TOOL_INTERRUPT_H
#define DSNET_TOOL_INTERRUPT_H

#include <stdbool.h>

// From now on these signals only set a flag; SIGQUIT still ends the process at once.
void interrupt_catch(void);
// Whether one has come. Any thread.
bool interrupt_seen(void);

#endif
