// SPDX-License-Identifier: Apache-2.0
// stream/display.c: what a terminal and what a log gets to see, and when.
#include "stream/display.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000ull

static struct display display;
static struct stream_summary summary;
static char *text;
static size_t text_size;

static void start(enum display_mode mode, bool unicode) {
  FILE *out = open_memstream(&text, &text_size);
  assert_non_null(out);
  display = (struct display){.options = {.mode = mode, .unicode = unicode, .out = out}};
  summary = (struct stream_summary){.wanted = 1000, .fps = 60};
}

static int stop(void **state) {
  (void)state;
  fclose(display.options.out);
  free(text);
  return 0;
}

static size_t count(const char *part) {
  size_t found = 0;
  fflush(display.options.out);
  for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
    found++;
  return found;
}

static void run_for(unsigned tenths) {
  for (uint64_t tick = 10; tick <= 10 + tenths; tick++) {
    display_record(&display, tick * 1000000);
    summary.received += 6;
    display_update(&display, &summary, tick * SECOND / 10);
  }
}

static void a_log_gets_a_plain_line_now_and_then(void **state) {
  (void)state;
  start(DISPLAY_LINES, true);
  run_for(250);
  display_end(&display);
  assert_int_equal(count("\n"), 2);
  assert_int_equal(count("dsnet-stream: 606 of 1000 frames, 60.6/s, p50"), 1);
  assert_int_equal(count("skipped 0, reconnects 0\n"), 2);
  assert_int_equal(count("\r"), 0);
  assert_int_equal(count("\x1b"), 0);
}

static void a_terminal_gets_one_line_that_is_rewritten(void **state) {
  (void)state;
  start(DISPLAY_TERMINAL, true);
  summary.skipped = 7;
  summary.reconnects = 2;
  run_for(9); // 1.0 to 1.9 s
  assert_int_equal(count("\r\x1b[K"), 3);
  assert_int_equal(count("\n"), 0);
  assert_int_equal(count("skipped 7, reconnects 2"), 3);
  assert_int_equal(count(" \u2581\u2581"), 3);
  assert_true(count("\u2588") >= 3);
  display_end(&display);
  fflush(display.options.out);
  assert_string_equal(text + text_size - 4, "\r\x1b[K");
}

static void a_terminal_without_utf_8_gets_ascii(void **state) {
  (void)state;
  start(DISPLAY_TERMINAL, false);
  run_for(9);
  fflush(display.options.out);
  for (size_t i = 0; i < text_size; i++)
    assert_true((unsigned char)text[i] < 0x80);
  assert_true(count("#") >= 3);
}

static void notes_are_lines_and_not_too_many(void **state) {
  (void)state;
  start(DISPLAY_TERMINAL, true);
  for (int i = 0; i < 10; i++)
    display_note(&display, SECOND + (uint64_t)i, "session %d is lost", i);
  assert_int_equal(count("\r\x1b[Kdsnet-stream: session 0 is lost\n"), 1);
  assert_int_equal(count("\n"), 1);
  display_note(&display, 2 * SECOND, "again");
  assert_int_equal(count("dsnet-stream: again (and 9 more such lines)\n"), 1);
}

static void silence_is_silent(void **state) {
  (void)state;
  start(DISPLAY_OFF, true);
  run_for(250);
  display_note(&display, SECOND, "lost");
  display_end(&display);
  fflush(display.options.out);
  assert_int_equal(text_size, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, stop)
  const struct CMUnitTest tests[] = {
      TEST(a_log_gets_a_plain_line_now_and_then),
      TEST(a_terminal_gets_one_line_that_is_rewritten),
      TEST(a_terminal_without_utf_8_gets_ascii),
      TEST(notes_are_lines_and_not_too_many),
      TEST(silence_is_silent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
