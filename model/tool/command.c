// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <string.h>

bool command_parse(const struct option_table *table, int argc, char **argv, void *target,
                   int *status) {
  struct dsnet_error error = {0};
  int outcome = options_parse(table, argc, argv, target, &error);
  if (outcome == OPTIONS_PARSED)
    return true;
  if (outcome == OPTIONS_HELP) {
    options_print_help(table, stdout);
    *status = COMMAND_OK;
  } else {
    fprintf(stderr, "dsnet %s: %s\n", argv[0], error.text);
    *status = COMMAND_USAGE;
  }
  return false;
}

int command_fail(const char *name, const struct dsnet_error *error) {
  fprintf(stderr, "dsnet %s: %s\n", name, error->text);
  return COMMAND_FAILED;
}

static void print_commands(const char *program, const char *about, const struct command *commands,
                           FILE *out) {
  fprintf(out, "usage: %s COMMAND [options]\n\n%s\n\ncommands:\n", program, about);
  for (; commands->name; commands++)
    fprintf(out, "  %-10s %s\n", commands->name, commands->summary);
  fprintf(out, "\n`%s COMMAND --help` describes each.\n", program);
}

int command_dispatch(const char *program, const char *about, const struct command *commands,
                     int argc, char **argv) {
  if (argc < 2) {
    print_commands(program, about, commands, stderr);
    return COMMAND_USAGE;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
    print_commands(program, about, commands, stdout);
    return COMMAND_OK;
  }
  for (const struct command *command = commands; command->name; command++)
    if (!strcmp(argv[1], command->name))
      return command->run(argc - 1, argv + 1);
  fprintf(stderr, "%s: unknown command \"%s\" (`%s --help` lists them)\n", program, argv[1],
          program);
  return COMMAND_USAGE;
}
