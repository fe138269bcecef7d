// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "answer.h"

static json_t *parse(const struct answer *answer) {
  json_t *document = json_loadb(answer->body, answer->size, 0, NULL);
  assert_non_null(document);
  return document;
}

static void every_kind_of_problem_is_a_document_of_its_own(void **state) {
  (void)state;
  for (enum problem i = 0; i < PROBLEM_COUNT; i++) {
    struct answer answer = {0};
    answer_problem(&answer, i, "frame %d", 7);
    assert_int_equal(answer.status, problem_status(i));
    assert_string_equal(answer.type, "application/problem+json");
    json_t *document = parse(&answer);
    assert_string_equal(json_string_value(json_object_get(document, "type")), problem_type(i));
    assert_string_equal(json_string_value(json_object_get(document, "detail")), "frame 7");
    assert_int_equal(json_integer_value(json_object_get(document, "status")), answer.status);
    json_decref(document);
    answer_deinit(&answer);
    for (enum problem j = 0; j < i; j++)
      assert_string_not_equal(problem_type(i), problem_type(j));
    assert_in_range(problem_status(i), 400, 599);
  }
}

static void a_detail_that_is_cut_inside_a_character_still_makes_a_problem(void **state) {
  (void)state;
  for (size_t shift = 0; shift < 2; shift++) {
    char text[1024];
    memset(text, 'x', sizeof text);
    for (size_t i = shift; i + 2 < sizeof text; i += 2)
      memcpy(text + i, "\xc3\xa9", 2);
    text[sizeof text - 1] = 0;
    struct answer answer = {0};
    answer_problem(&answer, PROBLEM_BAD_REQUEST, "%s", text);
    json_decref(parse(&answer));
    assert_int_equal(answer.status, 400);
    answer_deinit(&answer);
  }
}

static void header_values_are_kept_until_there_is_no_room(void **state) {
  (void)state;
  struct answer answer = {0};
  answer_empty(&answer, 204);
  char value[] = "one";
  answer_header(&answer, "A", value);
  memcpy(value, "two", 3);
  answer_header(&answer, "B", value);
  assert_string_equal(answer_header_value(&answer, 0), "one");
  assert_string_equal(answer_header_value(&answer, 1), "two");
  char large[ANSWER_TEXT_MAX];
  memset(large, 'x', sizeof large - 1);
  large[sizeof large - 1] = 0;
  answer_header(&answer, "C", large);
  assert_int_equal(answer.status, 500);
  assert_int_equal(answer.header_count, 0);
}

static void count_close(void *user) {
  ++*(int *)user;
}

static void a_source_is_closed_once(void **state) {
  (void)state;
  int closed = 0;
  struct answer answer = {0};
  const struct answer_source source = {.close = count_close, .user = &closed};
  answer_stream(&answer, "application/octet-stream", 10, "\"x\"", &source, 4096);
  assert_int_equal(answer.status, 200);
  assert_string_equal(answer.etag, "\"x\"");
  answer_deinit(&answer);
  answer_deinit(&answer);
  assert_int_equal(closed, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_of_problem_is_a_document_of_its_own),
      cmocka_unit_test(a_detail_that_is_cut_inside_a_character_still_makes_a_problem),
      cmocka_unit_test(header_values_are_kept_until_there_is_no_room),
      cmocka_unit_test(a_source_is_closed_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
