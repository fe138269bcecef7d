// SPDX-License-Identifier: Apache-2.0
// dsnet: the offline tool. Only dispatches; every subcommand is a file of its own.
#include <string.h>

#include "command.h"

int main(int argc, char **argv) {
  static const struct command commands[] = {
#define X(name, summary) {#name, summary, command_##name},
      COMMANDS(X)
#undef X
          {NULL, NULL, NULL},
  };
  if (argc > 1 && !strcmp(argv[1], "--version")) {
    puts("dsnet " DSNET_VERSION);
    return COMMAND_OK;
  }
  return command_dispatch("dsnet", "Bodies, motion and the displacement of soft tissue, offline.",
                          commands, argc, argv);
}
