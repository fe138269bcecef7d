// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool bounded(const struct option *option) {
  return option->min != 0 || option->max != 0;
}

static void *member(const struct option *option, void *target) {
  return (char *)target + option->offset;
}

static const void *const_member(const struct option *option, const void *target) {
  return (const char *)target + option->offset;
}

// "1 to 64" for messages and help; empty when the option has no bounds.
static const char *bounds_text(const struct option *option, char *buffer, size_t size) {
  buffer[0] = 0;
  if (bounded(option))
    snprintf(buffer, size, "%.10g to %.10g", option->min, option->max);
  return buffer;
}

static bool is_choice(const char *choices, const char *value) {
  size_t length = strlen(value);
  for (const char *at = choices; *at;) {
    size_t span = strcspn(at, "|");
    if (span == length && !memcmp(at, value, span))
      return true;
    at += span + (at[span] == '|');
  }
  return false;
}

static int check_bounds(const struct option *option, const char *source, const char *text,
                        double value, struct dsnet_error *error) {
  char range[64];
  if (bounded(option) && (value < option->min || value > option->max))
    return dsnet_error_set(error, DSNET_EVALUE, "%s: %s is outside %s", source, text,
                           bounds_text(option, range, sizeof range));
  return 0;
}

static int set_int(const struct option *option, const char *source, const char *text, void *target,
                   struct dsnet_error *error) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end || errno || isspace((unsigned char)text[0]))
    return dsnet_error_set(error, DSNET_EVALUE, "%s: \"%s\" is not a whole number", source, text);
  *(long long *)member(option, target) = value;
  return check_bounds(option, source, text, (double)value, error);
}

static int set_real(const struct option *option, const char *source, const char *text, void *target,
                    struct dsnet_error *error) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  if (end == text || *end || errno || !isfinite(value) || isspace((unsigned char)text[0]))
    return dsnet_error_set(error, DSNET_EVALUE, "%s: \"%s\" is not a finite number", source, text);
  *(double *)member(option, target) = value;
  return check_bounds(option, source, text, value, error);
}

static int set_flag(const struct option *option, const char *source, const char *text, void *target,
                    struct dsnet_error *error) {
  static const char *const words[2][3] = {{"0", "false", "no"}, {"1", "true", "yes"}};
  for (int value = 0; value < 2; value++)
    for (int i = 0; i < 3; i++)
      if (!strcasecmp(text, words[value][i])) {
        *(bool *)member(option, target) = value;
        return 0;
      }
  return dsnet_error_set(error, DSNET_EVALUE, "%s: \"%s\" is not true or false", source, text);
}

static int append(struct option_list *list, const char *source, const char *item,
                  struct dsnet_error *error) {
  if (list->count == OPTION_LIST_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "%s: given more than %d times", source,
                           OPTION_LIST_MAX);
  list->items[list->count++] = item;
  return 0;
}

static int set_value(const struct option *option, const char *source, const char *text,
                     void *target, struct dsnet_error *error) {
  switch (option->type) {
  case OPTION_FLAG:
    return set_flag(option, source, text, target, error);
  case OPTION_INT:
    return set_int(option, source, text, target, error);
  case OPTION_REAL:
    return set_real(option, source, text, target, error);
  case OPTION_TEXT:
    if (option->choices && !is_choice(option->choices, text))
      return dsnet_error_set(error, DSNET_EVALUE, "%s: \"%s\" is not one of %s", source, text,
                             option->choices);
    *(const char **)member(option, target) = text;
    return 0;
  case OPTION_LIST:
    return append(member(option, target), source, text, error);
  }
  return 0;
}

static void clear_value(const struct option *option, void *target) {
  static const size_t sizes[] = {[OPTION_FLAG] = sizeof(bool),
                                 [OPTION_INT] = sizeof(long long),
                                 [OPTION_REAL] = sizeof(double),
                                 [OPTION_TEXT] = sizeof(const char *),
                                 [OPTION_LIST] = sizeof(struct option_list)};
  memset(member(option, target), 0, sizes[option->type]);
}

// Back to nothing given, after `clear_value` has been called once.
static void reset_value(const struct option *option, void *target) {
  if (option->type == OPTION_LIST)
    free(((struct option_list *)member(option, target))->storage);
  clear_value(option, target);
}

static int set_environment_list(const struct option *option, const char *text, void *target,
                                struct dsnet_error *error) {
  reset_value(option, target);
  struct option_list *list = member(option, target);
  char *rest = list->storage = strdup(text);
  if (!rest)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = 0;
  for (char *item; result == 0 && (item = strsep(&rest, ","));)
    if (*item)
      result = append(list, option->environment, item, error);
  return result;
}

static int read_environment(const struct option_table *table, void *target,
                            struct dsnet_error *error) {
  for (size_t i = 0; i < table->count; i++) {
    const struct option *option = &table->options[i];
    const char *text = option->environment ? getenv(option->environment) : NULL;
    if (!text || !*text)
      continue;
    int result = option->type == OPTION_LIST
                     ? set_environment_list(option, text, target, error)
                     : set_value(option, option->environment, text, target, error);
    if (result < 0)
      return result;
  }
  return 0;
}

static const struct option *find_long(const struct option_table *table, const char *name,
                                      size_t length) {
  for (size_t i = 0; i < table->count; i++)
    if (strlen(table->options[i].name) == length && !memcmp(table->options[i].name, name, length))
      return &table->options[i];
  return NULL;
}

static const struct option *find_letter(const struct option_table *table, char letter) {
  for (size_t i = 0; i < table->count; i++)
    if (table->options[i].letter == letter)
      return &table->options[i];
  return NULL;
}

// The option that `word` names, and in *value the text after "=" if it is there.
static const struct option *find_option(const struct option_table *table, const char *word,
                                        const char **value) {
  *value = NULL;
  if (word[1] != '-')
    return word[2] ? NULL : find_letter(table, word[1]);
  size_t length = strcspn(word + 2, "=");
  if (word[2 + length] == '=')
    *value = word + 2 + length + 1;
  return find_long(table, word + 2, length);
}

static bool wants_help(int argc, char *const *argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
      return true;
  return false;
}

static int parse_option(const struct option_table *table, int argc, char *const *argv, int *at,
                        bool *given, void *target, struct dsnet_error *error) {
  const char *word = argv[*at], *value;
  const struct option *option = find_option(table, word, &value);
  if (!option)
    return dsnet_error_set(error, DSNET_EUSAGE, "unknown option %s (--help lists them)", word);
  char source[64];
  snprintf(source, sizeof source, "--%s", option->name);
  size_t index = (size_t)(option - table->options);
  if (!given[index] || option->type == OPTION_FLAG)
    reset_value(option, target); // the command line replaces the default and the environment
  else if (option->type != OPTION_LIST)
    return dsnet_error_set(error, DSNET_EUSAGE, "%s: given twice", source);
  given[index] = true;
  if (option->type == OPTION_FLAG)
    return set_value(option, source, value ? value : "1", target, error);
  if (!value) {
    if (*at + 1 >= argc)
      return dsnet_error_set(error, DSNET_EUSAGE, "%s: needs a value (%s)", source,
                             option->argument);
    value = argv[++*at];
  }
  return set_value(option, source, value, target, error);
}

static int parse_words(const struct option_table *table, int argc, char *const *argv, bool *given,
                       void *target, struct dsnet_error *error) {
  struct option_list *positionals =
      table->positionals_max ? (void *)((char *)target + table->positionals_offset) : NULL;
  bool options_ended = false;
  for (int at = 1; at < argc; at++) {
    const char *word = argv[at];
    int result;
    if (!options_ended && !strcmp(word, "--")) {
      options_ended = true;
      continue;
    }
    if (!options_ended && word[0] == '-' && word[1])
      result = parse_option(table, argc, argv, &at, given, target, error);
    else if (!positionals || positionals->count >= table->positionals_max)
      result = dsnet_error_set(error, DSNET_EUSAGE, "unexpected argument \"%s\" (usage: %s)", word,
                               table->usage);
    else
      result = append(positionals, "arguments", word, error);
    if (result < 0)
      return result;
  }
  if (positionals && positionals->count < table->positionals_min)
    return dsnet_error_set(error, DSNET_EUSAGE, "an argument is missing (usage: %s)", table->usage);
  return 0;
}

int options_parse(const struct option_table *table, int argc, char *const *argv, void *target,
                  struct dsnet_error *error) {
  if (wants_help(argc, argv))
    return OPTIONS_HELP;
  bool *given = calloc(table->count + 1, sizeof *given);
  if (!given)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = 0;
  for (size_t i = 0; result == 0 && i < table->count; i++) {
    const struct option *option = &table->options[i];
    clear_value(option, target);
    if (option->fallback)
      result = set_value(option, option->name, option->fallback, target, error);
  }
  if (table->positionals_max)
    memset((char *)target + table->positionals_offset, 0, sizeof(struct option_list));
  if (result == 0)
    result = read_environment(table, target, error);
  if (result == 0)
    result = parse_words(table, argc, argv, given, target, error);
  free(given);
  return result < 0 ? result : OPTIONS_PARSED;
}

void options_print_help(const struct option_table *table, FILE *out) {
  fprintf(out, "usage: %s\n\n%s\n", table->usage, table->about);
  if (table->count)
    fputs("\noptions:\n", out);
  for (size_t i = 0; i < table->count; i++) {
    const struct option *option = &table->options[i];
    char left[64], range[64];
    snprintf(left, sizeof left, "%c%c%s--%s%s%s", option->letter ? '-' : ' ',
             option->letter ? option->letter : ' ', option->letter ? ", " : "  ", option->name,
             option->argument ? " " : "", option->argument ? option->argument : "");
    fprintf(out, "  %-26s %s", left, option->help);
    if (option->choices)
      fprintf(out, " (%s)", option->choices);
    if (bounded(option))
      fprintf(out, " (%s)", bounds_text(option, range, sizeof range));
    if (option->fallback)
      fprintf(out, " [%s]", option->fallback);
    if (option->environment)
      fprintf(out, " {%s}", option->environment);
    fputc('\n', out);
  }
  fprintf(out, "  %-26s %s\n", "-h, --help", "Print this text.");
}

void options_print_markdown(const struct option_table *table, FILE *out) {
  fputs("| option | environment | default | range | meaning |\n|---|---|---|---|---|\n", out);
  for (size_t i = 0; i < table->count; i++) {
    const struct option *option = &table->options[i];
    char range[64];
    fprintf(out, "| `--%s%s%s` | %s%s%s | %s | ", option->name, option->argument ? " " : "",
            option->argument ? option->argument : "", option->environment ? "`" : "",
            option->environment ? option->environment : "", option->environment ? "`" : "",
            option->fallback ? option->fallback : "");
    for (const char *c = option->choices; c && *c; c++)
      fputs(*c == '|' ? ", " : (char[]){*c, 0}, out);
    fprintf(out, "%s | %s |\n", bounds_text(option, range, sizeof range), option->help);
  }
}

void options_print_values(const struct option_table *table, const void *target, FILE *out) {
  for (size_t i = 0; i < table->count; i++) {
    const struct option *option = &table->options[i];
    const void *value = const_member(option, target);
    fprintf(out, "%s = ", option->name);
    switch (option->type) {
    case OPTION_FLAG:
      fputs(*(const bool *)value ? "true" : "false", out);
      break;
    case OPTION_INT:
      fprintf(out, "%lld", *(const long long *)value);
      break;
    case OPTION_REAL:
      fprintf(out, "%.10g", *(const double *)value);
      break;
    case OPTION_TEXT:
      fputs(*(const char *const *)value ? *(const char *const *)value : "", out);
      break;
    case OPTION_LIST: {
      const struct option_list *list = value;
      for (size_t k = 0; k < list->count; k++)
        fprintf(out, "%s%s", k ? "," : "", list->items[k]);
      break;
    }
    }
    fputc('\n', out);
  }
}
