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
  const char *summary; // one line of `--help`
  // argv[0] is the subcommand's name.
  int (*run)(int argc, char **argv);
};

// name, summary. Each is `int command_NAME(int argc, char **argv)` in NAME.c.
#define COMMANDS(X)                                                                                \
  X(body, "make the built-in body, export a mesh")                                                 \
  X(eval, "compare models and their rivals on held-out sequences")                                 \
  X(excite, "perturb clips for the training data")                                                 \
  X(info, "say what a body, clip, model or npz file holds")                                        \
  X(init, "write a model with random weights")                                                     \
  X(motion, "make a clip of parametric motion")                                                    \
  X(predict, "run a model over a clip and write the displacement of every frame")                  \
  X(simulate, "simulate soft tissue over clips and shapes: ground truth for training")             \
  X(train, "train a network on mesh sequences")

#define X(name, summary) int command_##name(int argc, char **argv);
COMMANDS(X)
#undef X

// A subcommand of `dsnet body`.
int command_body_export(int argc, char **argv);

// Runs the subcommand that argv[1] names, of a table that ends with a NULL name. `program` is what
// has been typed so far ("dsnet", "dsnet body"). Prints the list for --help and for no or an
// unknown name.
int command_dispatch(const char *program, const char *about, const struct command *commands,
                     int argc, char **argv);

// Parses into `target`. True when the command should go on; otherwise help or the error has been
// printed and *status is what to return.
bool command_parse(const struct option_table *table, int argc, char **argv, void *target,
                   int *status);

// Prints "dsnet NAME: text" to standard error and returns COMMAND_FAILED.
int command_fail(const char *name, const struct dsnet_error *error);

#endif
