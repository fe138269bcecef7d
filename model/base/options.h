// SPDX-License-Identifier: Apache-2.0
// Settings as one table. From a table of options come strict parsing of the command line and the
// environment into a struct, the --help text, and the Markdown table of the README, so that none of
// them can drift from the others. Used by dsnet, dsnet-stream and dsnetd.
#ifndef DSNET_BASE_OPTIONS_H
#define DSNET_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

#define OPTION_LIST_MAX 64

enum option_type {
  OPTION_FLAG, // bool; given or not; in the environment 1/0, true/false, yes/no
  OPTION_INT,  // long long, within min..max
  OPTION_REAL, // double, finite, within min..max
  OPTION_TEXT, // const char *, NULL when neither given nor defaulted
  OPTION_LIST, // struct option_list; repeatable on the command line, comma-separated in the
               // environment
};

struct option_list {
  const char *items[OPTION_LIST_MAX];
  size_t count;
  char *storage; // what items from the environment point into; free() it when the list is done with
};

struct option {
  const char *name;        // without the dashes: "max-batch"
  const char *argument;    // how help names the value: "N", "FILE"; NULL for a flag
  const char *environment; // variable read when the command line does not give it, or NULL
  enum option_type type;
  size_t offset;        // of the member in the target struct, by offsetof
  const char *fallback; // the default as text, or NULL: flag off, number 0, text NULL, empty list
  double min, max;      // inclusive bounds of a number; both 0 means any
  const char *choices;  // "a|b|c" for a text that must be one of these, or NULL
  char letter;          // a one-letter form ('o' for -o), or 0
  const char *help;     // one sentence without the default and bounds, which are printed from above
};

struct option_table {
  const char *usage; // "dsnet predict CLIP -o FILE [options]"
  const char *about; // a paragraph for --help
  const struct option *options;
  size_t count;
  size_t positionals_offset;               // of a struct option_list in the target
  size_t positionals_min, positionals_max; // max 0: none are taken, the offset is not used
};

enum option_outcome {
  OPTIONS_PARSED,
  OPTIONS_HELP, // --help or -h was given; nothing else was checked
};

// Fills `target` from defaults, then the environment, then argv[1..]. Strings point into argv, the
// environment, the table or a list's storage. Strict: an unknown option, a value outside its
// bounds, trailing characters, a missing value or a surplus word is DSNET_EUSAGE (or DSNET_EVALUE)
// with a text that names the option and says what is allowed. "--" ends the options. Returns an
// option_outcome or a negative code.
int options_parse(const struct option_table *table, int argc, char *const *argv, void *target,
                  struct dsnet_error *error);

// The --help text.
void options_print_help(const struct option_table *table, FILE *out);

// The table in GitHub Markdown: flag, environment, default, range, meaning.
void options_print_markdown(const struct option_table *table, FILE *out);

// The effective values, one "name = value" line each (--print-config).
void options_print_values(const struct option_table *table, const void *target, FILE *out);

#endif
