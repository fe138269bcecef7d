// SPDX-License-Identifier: Apache-2.0
// dsnet: the offline tool. Only dispatches; every subcommand is a file of its own.
#include <stdio.h>
#include <string.h>

#include "command.h"

static const struct command commands[] = {
    {"body", "make the built-in body", command_body},
    {"init", "write a model with random weights", command_init},
    {NULL, NULL, NULL},
};

static void print_help(FILE *out) {
  fputs("usage: dsnet COMMAND [options]\n\n"
        "Bodies, motion and the displacement of soft tissue, offline.\n\ncommands:\n",
        out);
  for (const struct command *command = commands; command->name; command++)
    fprintf(out, "  %-10s %s\n", command->name, command->summary);
  fputs("\n`dsnet COMMAND --help` describes each; `dsnet --version` prints the version.\n", out);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return COMMAND_USAGE;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
    print_help(stdout);
    return COMMAND_OK;
  }
  if (!strcmp(argv[1], "--version")) {
    puts("dsnet " DSNET_VERSION);
    return COMMAND_OK;
  }
  for (const struct command *command = commands; command->name; command++)
    if (!strcmp(argv[1], command->name))
      return command->run(argc - 1, argv + 1);
  fprintf(stderr, "dsnet: unknown command \"%s\" (`dsnet --help` lists them)\n", argv[1]);
  return COMMAND_USAGE;
}
