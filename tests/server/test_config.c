// SPDX-License-Identifier: Apache-2.0
// The option table as dsnetd uses it: defaults, strictness, and the rules that span two options.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#define PARSE(config, error, ...)                                                                  \
  config_parse(config, (int)(sizeof((char *[]){"dsnetd", __VA_ARGS__}) / sizeof(char *)),          \
               (char *[]){"dsnetd", __VA_ARGS__}, error)

static void defaults_serve_the_loopback_address(void **state) {
  (void)state;
  struct config config;
  struct dsnet_error error = {0};
  char *argv[] = {"dsnetd"};
  assert_int_equal(config_parse(&config, 1, argv, &error), OPTIONS_PARSED);
  assert_string_equal(config.listen, "127.0.0.1");
  assert_int_equal(config.port, 8080);
  assert_int_equal(config.models.count, 0);
  assert_true(config_connections(&config) >= config.max_sessions + CONFIG_SPARE_CONNECTIONS);
  config_free(&config);
}

static void models_repeat_on_the_command_line(void **state) {
  (void)state;
  struct config config;
  struct dsnet_error error = {0};
  assert_int_equal(PARSE(&config, &error, "--model", "a=x", "--model=b=y=z"), OPTIONS_PARSED);
  assert_int_equal(config.models.count, 2);
  assert_string_equal(config.models.items[1], "b=y=z");
  config_free(&config);
}

static void the_environment_lists_models_and_keys_by_commas(void **state) {
  (void)state;
  struct config config;
  struct dsnet_error error = {0};
  setenv("DSNET_MODELS", "a=x,b=y", 1);
  setenv("DSNET_STATE_KEY_FILES", "new.key,old.key", 1);
  setenv("DSNET_PORT", "0", 1);
  char *argv[] = {"dsnetd"};
  assert_int_equal(config_parse(&config, 1, argv, &error), OPTIONS_PARSED);
  assert_int_equal(config.models.count, 2);
  assert_int_equal(config.port, 0);
  assert_int_equal(config.state_key_files.count, 2);
  assert_string_equal(config.state_key_files.items[0], "new.key");
  config_free(&config);
  unsetenv("DSNET_MODELS");
  unsetenv("DSNET_STATE_KEY_FILES");
  unsetenv("DSNET_PORT");
}

static void a_wrong_setting_is_an_error_that_names_it(void **state) {
  (void)state;
  struct config config;
  char *const bad[][2] = {
      {"--port", "65536"},         {"--port", "80x"},           {"--max-batch", "0"},
      {"--model", "justaname"},    {"--model", "=file"},        {"--model", "name="},
      {"--idle-timeout", "nan"},   {"--log-level", "loud"},     {"--max-message", "10"},
      {"--max-connections", "-1"}, {"--frames-in-flight", "0"}, {"--drain-grace", "10"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct dsnet_error error = {0};
    assert_true(PARSE(&config, &error, bad[i][0], bad[i][1]) < 0);
    assert_non_null(strstr(error.text, bad[i][0]));
    config_free(&config);
  }
}

static void every_setting_has_a_variable_of_its_own(void **state) {
  (void)state;
  for (size_t i = 0; i < config_options.count; i++) {
    const struct option *option = &config_options.options[i];
    if (option->type == OPTION_FLAG)
      continue;
    assert_non_null(option->environment);
    assert_memory_equal(option->environment, "DSNET_", 6);
    for (size_t k = 0; k < i; k++)
      if (config_options.options[k].environment)
        assert_string_not_equal(option->environment, config_options.options[k].environment);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults_serve_the_loopback_address),
      cmocka_unit_test(models_repeat_on_the_command_line),
      cmocka_unit_test(the_environment_lists_models_and_keys_by_commas),
      cmocka_unit_test(a_wrong_setting_is_an_error_that_names_it),
      cmocka_unit_test(every_setting_has_a_variable_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
