// SPDX-License-Identifier: Apache-2.0
// The subcommands of `dsnet`. Each parses its own options (base/options.h), prints results to
// standard output and messages to standard error, and returns the process's exit status.
#ifndef DSNET_TOOL_COMMAND_H
#define DSNET_TOOL_COMMAND_H

#include "base/error.h"
#include "base/options.h"

enum { COMMAND_OK = 0, COMMAND_FAILED = 1, COMMAND_USAGE = 2 };

struct command {
  const char *name;
  const char *summary; // one line of `dsnet --help`
  // argv[0] is the subcommand's name.
  int (*run)(int argc, char **argv);
};

// Parses into `target`. True when the command should go on; otherwise help or the error has been
// printed and *status is what to return.
bool command_parse(const struct option_table *table, int argc, char **argv, void *target,
                   int *status);

// Prints "dsnet NAME: text" to standard error and returns COMMAND_FAILED.
int command_fail(const char *name, const struct dsnet_error *error);

// The subcommands, one file each.
int command_body(int argc, char **argv);
int command_init(int argc, char **argv);

#endif
