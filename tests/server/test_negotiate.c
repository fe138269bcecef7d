// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "negotiate.h"

static void accept_fields_are_weighed_as_the_standard_says(void **state) {
  (void)state;
  static const struct {
    const char *accept, *type;
    bool taken;
  } cases[] = {
      {NULL, "application/json", true},
      {"", "application/json", true},
      {"*/*", "application/json", true},
      {"application/json", "application/json", true},
      {"Application/JSON", "application/json", true},
      {"application/*", "application/json", true},
      {"text/html, application/xhtml+xml, */*;q=0.8", "application/json", true},
      {"application/json;q=0", "application/json", false},
      {"*/*, application/json;q=0", "application/json", false},
      {"*/*;q=0, application/json; q=0.001", "application/json", true},
      {"application/*;q=0, */*", "application/json", false},
      {"text/html", "application/json", false},
      {"text/*", "text/plain; charset=utf-8", true},
      {"text/plain;version=0.0.4;q=0.5", "text/plain; version=0.0.4; charset=utf-8", true},
      {"application/jso", "application/json", false},
      {"application", "application/json", false},
      {",, ,", "application/json", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (negotiate_accepts(cases[i].accept, cases[i].type) != cases[i].taken)
      fail_msg("%s for %s", cases[i].accept, cases[i].type);
}

static void content_types_are_compared_without_their_parameters(void **state) {
  (void)state;
  static const char types[] = "application/json multipart/form-data";
  assert_true(negotiate_is_type("application/json", types));
  assert_true(negotiate_is_type("Multipart/Form-Data; boundary=x", types));
  assert_true(negotiate_is_type("application/json ;charset=utf-8", types));
  assert_false(negotiate_is_type("application/jsonx", types));
  assert_false(negotiate_is_type("application/json multipart/form-data", types));
  assert_false(negotiate_is_type("", types));
}

static void entity_tags_are_found_in_lists(void **state) {
  (void)state;
  assert_false(negotiate_matches(NULL, "\"a\""));
  assert_true(negotiate_matches("*", "\"a\""));
  assert_true(negotiate_matches("\"a\"", "\"a\""));
  assert_true(negotiate_matches("\"b\" , W/\"a\"", "\"a\""));
  assert_false(negotiate_matches("\"b\",\"aa\"", "\"a\""));
  assert_false(negotiate_matches("a", "\"a\""));
}

static void ranges_are_cut_to_the_document_or_ignored(void **state) {
  (void)state;
  static const struct {
    const char *range, *if_range;
    uint64_t size;
    enum negotiate_part part;
    uint64_t first, last;
  } cases[] = {
      {NULL, NULL, 100, NEGOTIATE_WHOLE, 0, 0},
      {"bytes=0-0", NULL, 100, NEGOTIATE_PART, 0, 0},
      {"bytes=10-19", NULL, 100, NEGOTIATE_PART, 10, 19},
      {"Bytes=10-", NULL, 100, NEGOTIATE_PART, 10, 99},
      {"bytes=-10", NULL, 100, NEGOTIATE_PART, 90, 99},
      {"bytes=-1000", NULL, 100, NEGOTIATE_PART, 0, 99},
      {"bytes=90-1000", NULL, 100, NEGOTIATE_PART, 90, 99},
      {"bytes=100-", NULL, 100, NEGOTIATE_NO_PART, 0, 0},
      {"bytes=-0", NULL, 100, NEGOTIATE_NO_PART, 0, 0},
      {"bytes=0-", NULL, 0, NEGOTIATE_NO_PART, 0, 0},
      {"bytes=5-4", NULL, 100, NEGOTIATE_WHOLE, 0, 0},
      {"bytes=0-1,5-6", NULL, 100, NEGOTIATE_WHOLE, 0, 0},
      {"bytes=a-b", NULL, 100, NEGOTIATE_WHOLE, 0, 0},
      {"bytes=-", NULL, 100, NEGOTIATE_WHOLE, 0, 0},
      {"bytes=", NULL, 100, NEGOTIATE_WHOLE, 0, 0},
      {"bytes=1", NULL, 100, NEGOTIATE_WHOLE, 0, 0},
      {"bytes=99999999999999999999-", NULL, 100, NEGOTIATE_WHOLE, 0, 0},
      {"frames=0-1", NULL, 100, NEGOTIATE_WHOLE, 0, 0},
      {"bytes=0-1", "\"tag\"", 100, NEGOTIATE_PART, 0, 1},
      {"bytes=0-1", "\"other\"", 100, NEGOTIATE_WHOLE, 0, 0},
      {"bytes=0-1", "W/\"tag\"", 100, NEGOTIATE_WHOLE, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t first = 0, last = 0;
    enum negotiate_part part =
        negotiate_range(cases[i].range, cases[i].if_range, "\"tag\"", cases[i].size, &first, &last);
    if (part != cases[i].part || first != cases[i].first || last != cases[i].last)
      fail_msg("%s", cases[i].range);
  }
}

static void browsers_and_programs_are_told_apart(void **state) {
  (void)state;
  static const char html[] = "text/html", json[] = "application/json";
  assert_true(negotiate_prefers("text/html,application/xml;q=0.9,*/*;q=0.8", html, json));
  assert_true(negotiate_prefers("text/*, application/json;q=0.9", html, json));
  assert_false(negotiate_prefers(NULL, html, json));
  assert_false(negotiate_prefers("", html, json));
  assert_false(negotiate_prefers("*/*", html, json));
  assert_false(negotiate_prefers("application/json", html, json));
  assert_false(negotiate_prefers("text/html;q=0.5, application/json", html, json));
}

static void gzip_is_taken_when_it_is_named_or_all_are(void **state) {
  (void)state;
  assert_true(negotiate_takes_gzip("gzip"));
  assert_true(negotiate_takes_gzip("br, GZIP;q=0.1"));
  assert_true(negotiate_takes_gzip("*"));
  assert_false(negotiate_takes_gzip(NULL));
  assert_false(negotiate_takes_gzip(""));
  assert_false(negotiate_takes_gzip("identity, br"));
  assert_false(negotiate_takes_gzip("gzip;q=0, *"));
  assert_false(negotiate_takes_gzip("gzipped"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accept_fields_are_weighed_as_the_standard_says),
      cmocka_unit_test(content_types_are_compared_without_their_parameters),
      cmocka_unit_test(entity_tags_are_found_in_lists),
      cmocka_unit_test(browsers_and_programs_are_told_apart),
      cmocka_unit_test(gzip_is_taken_when_it_is_named_or_all_are),
      cmocka_unit_test(ranges_are_cut_to_the_document_or_ignored),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
