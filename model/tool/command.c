// SPDX-License-Identifier: Apache-2.0
#include "command.h"

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
