// SPDX-License-Identifier: Apache-2.0
// Log lines: what clients put into them cannot break a line, and cannot flood the log. UTF-8 is
// checked with them, as the escaping rests on it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "utf8.h"

static void text_from_outside_stays_inside_its_string(void **state) {
  (void)state;
  char out[64];
  log_escape("a\"b\\c\nd\x01", out, sizeof out);
  assert_string_equal(out, "a\\\"b\\\\c\\u000ad\\u0001");
  log_escape("\xC3\xA4", out, sizeof out);
  assert_string_equal(out, "\xC3\xA4");
  log_escape("\xC3(\xFF", out, sizeof out);
  assert_string_equal(out, "?(?");
}

static void a_cut_leaves_whole_characters(void **state) {
  (void)state;
  char out[8];
  assert_int_equal(log_escape("12345\n", out, sizeof out), 5);
  assert_int_equal(log_escape("123456\xE2\x82\xAC", out, sizeof out), 6);
  assert_string_equal(out, "123456");
}

// Runs `write` with standard error going into a file and returns what came.
static size_t capture(void (*write_log)(void), char *out, size_t size) {
  char path[] = "/tmp/dsnet_test_log_XXXXXX";
  int file = mkstemp(path), saved = dup(STDERR_FILENO);
  assert_true(file >= 0 && saved >= 0);
  unlink(path);
  dup2(file, STDERR_FILENO);
  write_log();
  dup2(saved, STDERR_FILENO);
  close(saved);
  ssize_t length = pread(file, out, size - 1, 0);
  close(file);
  assert_true(length >= 0);
  out[length] = 0;
  return (size_t)length;
}

static void write_hostile_line(void) {
  char text[3000];
  memset(text, '"', sizeof text - 1);
  text[sizeof text - 1] = 0;
  log_event(LOG_LEVEL_WARN, "event", "0123456789abcdef0123456789abcdef", "%s", text);
}

static void every_line_is_one_json_object(void **state) {
  (void)state;
  char out[4096];
  assert_true(log_set_level("info"));
  size_t length = capture(write_hostile_line, out, sizeof out);
  assert_true(length <= 1024);
  assert_ptr_equal(strchr(out, '\n'), out + length - 1);
  json_t *line = json_loads(out, 0, NULL);
  assert_non_null(line);
  assert_string_equal(json_string_value(json_object_get(line, "level")), "warn");
  assert_string_equal(json_string_value(json_object_get(line, "event")), "event");
  json_decref(line);
}

static void write_below_the_level(void) {
  log_event(LOG_LEVEL_INFO, "event", NULL, "not seen");
}

static void events_below_the_level_are_not_written(void **state) {
  (void)state;
  char out[64];
  assert_true(log_set_level("warn"));
  assert_int_equal(capture(write_below_the_level, out, sizeof out), 0);
  assert_true(log_set_level("info"));
  assert_false(log_set_level("loud"));
}

static void a_flood_is_counted_instead_of_written(void **state) {
  (void)state;
  struct log_limit limit;
  unsigned long suppressed = 99;
  log_limit_init(&limit, 1000);
  for (int i = 0; i < LOG_BURST; i++)
    assert_true(log_limit_pass(&limit, 1000, &suppressed));
  assert_int_equal(suppressed, 0);
  for (int i = 0; i < 1000; i++)
    assert_false(log_limit_pass(&limit, 1000, &suppressed));
  assert_true(log_limit_pass(&limit, 1000 + 1000 / LOG_RATE, &suppressed));
  assert_int_equal(suppressed, 1000);
  assert_false(log_limit_pass(&limit, 1000 + 1000 / LOG_RATE, &suppressed));
}

static void utf8_is_checked_across_any_cut(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool valid;
  } cases[] = {
      {"", true},
      {"plain", true},
      {"\xC2\x80\xDF\xBF", true},
      {"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF", true},
      {"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", true},
      {"\x80", false},             // continuation alone
      {"\xC0\x80", false},         // overlong
      {"\xC1\xBF", false},         //
      {"\xE0\x9F\xBF", false},     //
      {"\xF0\x8F\xBF\xBF", false}, //
      {"\xED\xA0\x80", false},     // surrogate
      {"\xF4\x90\x80\x80", false}, // beyond U+10FFFF
      {"\xF5\x80\x80\x80", false}, //
      {"\xE2\x82", false},         // cut short
      {"\xE2\x82(", false},        //
      {"\xE0\xA0\x80\x80", false}, // one too many
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const uint8_t *text = (const uint8_t *)cases[i].text;
    size_t size = strlen(cases[i].text);
    assert_int_equal(utf8_valid(text, size), cases[i].valid);
    for (size_t cut = 0; cut <= size; cut++) {
      struct utf8_state utf8 = {0};
      bool valid = utf8_feed(&utf8, text, cut) && utf8_feed(&utf8, text + cut, size - cut) &&
                   utf8_complete(&utf8);
      assert_int_equal(valid, cases[i].valid);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_from_outside_stays_inside_its_string),
      cmocka_unit_test(a_cut_leaves_whole_characters),
      cmocka_unit_test(every_line_is_one_json_object),
      cmocka_unit_test(events_below_the_level_are_not_written),
      cmocka_unit_test(a_flood_is_counted_instead_of_written),
      cmocka_unit_test(utf8_is_checked_across_any_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
