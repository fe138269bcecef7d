// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "routes.h"

static void addresses_are_found_whole(void **state) {
  (void)state;
  struct request request = {0};
  unsigned allowed;
  assert_non_null(route_find(METHOD_GET, "/livez", &request, &allowed));
  assert_int_equal(allowed, METHOD_GET | METHOD_HEAD);
  assert_non_null(route_find(METHOD_HEAD, "/livez", &request, &allowed));
  assert_null(route_find(METHOD_POST, "/livez", &request, &allowed));
  assert_int_equal(allowed, METHOD_GET | METHOD_HEAD);
  static const char *const nothing[] = {"",          "/livezz", "/live",       "livez",
                                        "/livez/",   "//",      "/v1/models/", "/v1/models/a/b/c/d",
                                        "/v1/model*"};
  for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
    assert_null(route_find(METHOD_GET, nothing[i], &request, &allowed));
    assert_int_equal(allowed, 0);
  }
}

static void a_segment_becomes_a_parameter(void **state) {
  (void)state;
  struct request request = {0};
  unsigned allowed;
  const struct route *route = route_find(METHOD_GET, "/v1/models/walk 2", &request, &allowed);
  assert_non_null(route);
  assert_string_equal(route->path, "/v1/models/*");
  assert_string_equal(request.parameters[0], "walk 2");
  char path[REQUEST_PARAMETER_SIZE + 32] = "/v1/models/";
  size_t start = strlen(path);
  memset(path + start, 'x', REQUEST_PARAMETER_SIZE - 1);
  assert_non_null(route_find(METHOD_GET, path, &request, &allowed));
  path[start + REQUEST_PARAMETER_SIZE - 1] = 'x';
  assert_null(route_find(METHOD_GET, path, &request, &allowed));
}

static void the_stream_leaves_methods_to_the_handshake(void **state) {
  (void)state;
  struct request request = {0};
  unsigned allowed;
  assert_non_null(route_find(METHOD_POST, "/v1/stream", &request, &allowed));
  assert_non_null(route_find(METHOD_NONE, "/v1/stream", &request, &allowed));
  assert_null(route_find(METHOD_OPTIONS, "/v1/stream", &request, &allowed));
  assert_int_equal(allowed, METHOD_GET);
}

static void methods_have_their_names(void **state) {
  (void)state;
  assert_int_equal(route_method("GET"), METHOD_GET);
  assert_int_equal(route_method("DELETE"), METHOD_DELETE);
  assert_int_equal(route_method("get"), METHOD_NONE);
  assert_int_equal(route_method("PUT"), METHOD_NONE);
  char text[ROUTE_ALLOW_SIZE];
  route_allow(METHOD_GET | METHOD_HEAD | METHOD_POST | METHOD_DELETE, text);
  assert_string_equal(text, "GET, HEAD, POST, DELETE, OPTIONS");
  route_allow(0, text);
  assert_string_equal(text, "OPTIONS");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses_are_found_whole),
      cmocka_unit_test(a_segment_becomes_a_parameter),
      cmocka_unit_test(the_stream_leaves_methods_to_the_handshake),
      cmocka_unit_test(methods_have_their_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
