// SPDX-License-Identifier: Apache-2.0
// multipart.c with every body in one piece, byte by byte, and cut at every place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "multipart.h"

#define TYPE "multipart/form-data; boundary=XX"

struct content {
  char data[512];
  size_t size;
};

static int collect(void *user, const char *data, size_t size) {
  struct content *content = user;
  assert_true(content->size + size <= sizeof content->data);
  memcpy(content->data + content->size, data, size);
  content->size += size;
  return 0;
}

// Feeds a body in pieces of `first` bytes, then the rest in pieces of `step`.
static int feed(const char *type, const char *body, size_t size, size_t first, size_t step,
                struct content *content) {
  struct multipart multipart;
  content->size = 0;
  int result = multipart_init(&multipart, type, "clip", NULL);
  for (size_t at = 0; result == 0 && at < size;) {
    size_t piece = at ? step : first;
    piece = piece < size - at ? piece : size - at;
    result = multipart_take(&multipart, body + at, piece, collect, content, NULL);
    at += piece;
  }
  return result == 0 ? multipart_finish(&multipart, NULL) : result;
}

static void check(const char *body, size_t size, const char *expected, size_t expected_size) {
  for (size_t first = 1; first <= size; first++)
    for (size_t step = 1; step <= size; step += first == 1 ? 1 : size) {
      struct content content;
      assert_int_equal(feed(TYPE, body, size, first, step, &content), 0);
      assert_int_equal(content.size, expected_size);
      assert_memory_equal(content.data, expected, expected_size);
    }
}

#define CHECK(body, expected) check(body, sizeof(body) - 1, expected, sizeof(expected) - 1)

static void the_wanted_part_is_found(void **state) {
  (void)state;
  CHECK("--XX\r\nContent-Disposition: form-data; name=\"clip\"\r\n\r\nabc\r\n--XX--\r\n", "abc");
  CHECK("preamble\r\n--XX \t\r\ncontent-disposition: form-data; filename=\"x\"; name=clip\r\n"
        "Content-Type: application/zip\r\n\r\n\r\n--XX--epilogue\r\n--XX\r\n",
        "");
  CHECK("--XX\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nno\r\n"
        "--XX\r\n\r\nheadless\r\n"
        "--XX\r\nContent-Disposition: form-data; name=\"clip\"\r\n\r\nyes\r\n--XX--",
        "yes");
}

static void content_may_look_like_a_delimiter(void **state) {
  (void)state;
  CHECK("--XX\r\nContent-Disposition: form-data; name=\"clip\"\r\n\r\n"
        "\r\n--X\r\r\n-\r\n\r\n--Y--XX\r\0\n\r\n--XX--",
        "\r\n--X\r\r\n-\r\n\r\n--Y--XX\r\0\n");
}

static void what_is_no_such_form_is_refused(void **state) {
  (void)state;
  static const char *const bodies[] = {
      "",
      "abc",
      "--XX--",
      "--XX\r\n",
      "--XXY\r\n",
      "--XX\r\nContent-Disposition: form-data; name=\"clip\"\r\n\r\nabc",
      "--XX\r\nContent-Disposition: form-data; name=\"clip\"\r\n\r\nabc\r\n--XX",
      "--XX\r\nContent-Disposition: form-data; name=\"clips\"\r\n\r\nabc\r\n--XX--",
      ("--XX\r\nContent-Disposition: form-data; name=\"clip\"\r\n\r\na\r\n"
       "--XX\r\nContent-Disposition: form-data; name=\"clip\"\r\n\r\nb\r\n--XX--"),
  };
  struct content content;
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
    assert_int_equal(feed(TYPE, bodies[i], strlen(bodies[i]), 1, 7, &content), DSNET_EFORMAT);
}

static void heads_have_a_limit(void **state) {
  (void)state;
  char body[MULTIPART_HEAD_MAX + 64] = "--XX\r\nX: ";
  memset(body + strlen(body), 'a', MULTIPART_HEAD_MAX);
  struct content content;
  assert_int_equal(feed(TYPE, body, strlen(body), 100, 100, &content), DSNET_EFORMAT);
}

static void boundaries_are_read_as_the_field_has_them(void **state) {
  (void)state;
  static const char body[] =
      "--a b\r\nContent-Disposition: form-data; name=\"clip\"\r\n\r\nz\r\n--a b--";
  struct content content;
  assert_int_equal(feed("multipart/form-data; charset=x; Boundary=\"a b\"", body, sizeof body - 1,
                        5, 5, &content),
                   0);
  char longest[128] = "multipart/form-data; boundary=";
  size_t start = strlen(longest);
  struct multipart multipart;
  memset(longest + start, 'b', MULTIPART_BOUNDARY_MAX);
  assert_int_equal(multipart_init(&multipart, longest, "clip", NULL), 0);
  longest[start + MULTIPART_BOUNDARY_MAX] = 'b';
  static const char *const bad[] = {
      "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"a",
      "multipart/form-data; boundary=\"a\r\nb\""};
  assert_int_equal(multipart_init(&multipart, longest, "clip", NULL), DSNET_EFORMAT);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(multipart_init(&multipart, bad[i], "clip", NULL), DSNET_EFORMAT);
}

static int refuse(void *user, const char *data, size_t size) {
  (void)user;
  (void)data;
  (void)size;
  return -77;
}

static void a_sink_may_stop_it(void **state) {
  (void)state;
  static const char body[] = "--XX\r\nContent-Disposition: form-data; name=\"clip\"\r\n\r\nabc";
  struct multipart multipart;
  assert_int_equal(multipart_init(&multipart, TYPE, "clip", NULL), 0);
  assert_int_equal(multipart_take(&multipart, body, sizeof body - 1, refuse, NULL, NULL), -77);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_wanted_part_is_found),
      cmocka_unit_test(content_may_look_like_a_delimiter),
      cmocka_unit_test(what_is_no_such_form_is_refused),
      cmocka_unit_test(heads_have_a_limit),
      cmocka_unit_test(boundaries_are_read_as_the_field_has_them),
      cmocka_unit_test(a_sink_may_stop_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
