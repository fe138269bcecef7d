// SPDX-License-Identifier: Apache-2.0
// base/options.c: defaults, environment, command line, and the answer to each wrong form.
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct settings {
  bool quiet;
  long long port;
  double rate;
  const char *mode;
  struct option_list models, words;
};

static const struct option options[] = {
    {.name = "quiet",
     .letter = 'q',
     .type = OPTION_FLAG,
     .offset = offsetof(struct settings, quiet),
     .environment = "DSNET_TEST_QUIET",
     .help = "Say nothing."},
    {.name = "port",
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, port),
     .environment = "DSNET_TEST_PORT",
     .fallback = "8080",
     .min = 0,
     .max = 65535,
     .help = "Port."},
    {.name = "rate",
     .argument = "R",
     .letter = 'r',
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, rate),
     .fallback = "1.5",
     .help = "Rate."},
    {.name = "mode",
     .argument = "M",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, mode),
     .choices = "all|latest",
     .fallback = "all",
     .help = "Mode."},
    {.name = "model",
     .argument = "FILE",
     .type = OPTION_LIST,
     .offset = offsetof(struct settings, models),
     .environment = "DSNET_TEST_MODELS",
     .help = "Model."},
};

static const struct option_table table = {
    .usage = "test FILE [options]",
    .about = "About.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .positionals_offset = offsetof(struct settings, words),
    .positionals_min = 1,
    .positionals_max = 2,
};

static int parse(struct settings *settings, struct dsnet_error *error, const char *const *words) {
  char *argv[16] = {(char *)"test"};
  int argc = 1;
  for (; words[argc - 1]; argc++)
    argv[argc] = (char *)words[argc - 1];
  memset(error, 0, sizeof *error);
  return options_parse(&table, argc, argv, settings, error);
}

#define PARSE(settings, error, ...) parse(settings, error, (const char *const[]){__VA_ARGS__, NULL})

static int clear_environment(void **state) {
  (void)state;
  unsetenv("DSNET_TEST_QUIET");
  unsetenv("DSNET_TEST_PORT");
  unsetenv("DSNET_TEST_MODELS");
  return 0;
}

static void defaults_fill_what_is_not_given(void **state) {
  (void)state;
  struct settings s;
  struct dsnet_error e;
  assert_int_equal(PARSE(&s, &e, "clip"), OPTIONS_PARSED);
  assert_false(s.quiet);
  assert_int_equal(s.port, 8080);
  assert_true(s.rate == 1.5);
  assert_string_equal(s.mode, "all");
  assert_int_equal(s.models.count, 0);
  assert_string_equal(s.words.items[0], "clip");
}

static void every_form_of_an_option_is_read(void **state) {
  (void)state;
  struct settings s;
  struct dsnet_error e;
  assert_int_equal(PARSE(&s, &e, "-q", "--port=0", "-r", "-2e3", "--mode", "latest", "--model", "a",
                         "--model=b", "--", "-x", "y"),
                   OPTIONS_PARSED);
  assert_true(s.quiet);
  assert_int_equal(s.port, 0);
  assert_true(s.rate == -2000);
  assert_string_equal(s.mode, "latest");
  assert_int_equal(s.models.count, 2);
  assert_string_equal(s.models.items[1], "b");
  assert_string_equal(s.words.items[0], "-x");
}

static void command_line_wins_over_environment(void **state) {
  (void)state;
  struct settings s;
  struct dsnet_error e;
  setenv("DSNET_TEST_PORT", "90", 1);
  setenv("DSNET_TEST_QUIET", "yes", 1);
  setenv("DSNET_TEST_MODELS", "x,,y", 1);
  assert_int_equal(PARSE(&s, &e, "clip"), OPTIONS_PARSED);
  assert_true(s.quiet);
  assert_int_equal(s.port, 90);
  assert_int_equal(s.models.count, 2);
  assert_string_equal(s.models.items[1], "y");
  free(s.models.storage);
  assert_int_equal(PARSE(&s, &e, "clip", "--port", "91", "--model", "z"), OPTIONS_PARSED);
  assert_int_equal(s.port, 91);
  assert_int_equal(s.models.count, 1);
  setenv("DSNET_TEST_PORT", "eighty", 1);
  assert_int_equal(PARSE(&s, &e, "clip"), DSNET_EVALUE);
  assert_non_null(strstr(e.text, "DSNET_TEST_PORT"));
}

static void wrong_forms_are_refused_by_name(void **state) {
  (void)state;
  static const struct {
    const char *words[4];
    int code;
    const char *mentions;
  } cases[] = {
      {{NULL}, DSNET_EUSAGE, "missing"},
      {{"a", "b", "c", NULL}, DSNET_EUSAGE, "\"c\""},
      {{"a", "--wrong", NULL}, DSNET_EUSAGE, "--wrong"},
      {{"a", "-z", NULL}, DSNET_EUSAGE, "-z"},
      {{"a", "-qq", NULL}, DSNET_EUSAGE, "-qq"},
      {{"a", "--port", NULL}, DSNET_EUSAGE, "--port"},
      {{"a", "--port=1x", NULL}, DSNET_EVALUE, "1x"},
      {{"a", "--port=", NULL}, DSNET_EVALUE, "--port"},
      {{"a", "--port= 1", NULL}, DSNET_EVALUE, "--port"},
      {{"a", "--port=65536", NULL}, DSNET_EVALUE, "0 to 65535"},
      {{"a", "--port=99999999999999999999", NULL}, DSNET_EVALUE, "--port"},
      {{"a", "--rate=nan", NULL}, DSNET_EVALUE, "--rate"},
      {{"a", "--rate=inf", NULL}, DSNET_EVALUE, "--rate"},
      {{"a", "--mode=al", NULL}, DSNET_EVALUE, "all|latest"},
      {{"a", "--port=1", "--port=2", NULL}, DSNET_EUSAGE, "twice"},
      {{"a", "--quiet=maybe", NULL}, DSNET_EVALUE, "--quiet"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct settings s;
    struct dsnet_error e;
    int code = parse(&s, &e, cases[i].words);
    if (code != cases[i].code || !strstr(e.text, cases[i].mentions))
      fail_msg("case %zu: code %d, text \"%s\"", i, code, e.text);
  }
}

static void help_names_every_option(void **state) {
  (void)state;
  struct settings s;
  struct dsnet_error e;
  assert_int_equal(PARSE(&s, &e, "--bad", "--help"), OPTIONS_HELP);
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  options_print_help(&table, out);
  options_print_markdown(&table, out);
  fclose(out);
  for (size_t i = 0; i < table.count; i++)
    assert_non_null(strstr(text, options[i].name));
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(defaults_fill_what_is_not_given, clear_environment),
      cmocka_unit_test_setup(every_form_of_an_option_is_read, clear_environment),
      cmocka_unit_test_setup_teardown(command_line_wins_over_environment, clear_environment,
                                      clear_environment),
      cmocka_unit_test_setup(wrong_forms_are_refused_by_name, clear_environment),
      cmocka_unit_test_setup(help_names_every_option, clear_environment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
