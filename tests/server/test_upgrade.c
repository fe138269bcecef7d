// SPDX-License-Identifier: Apache-2.0
// The server's decision on a WebSocket handshake: one good request, and every way to spoil it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "upgrade.h"

struct line {
  const char *name, *value;
};

#define GOOD_LINES                                                                                 \
  {"Host", "x"}, {"Upgrade", "websocket"}, {"Connection", "Upgrade"},                              \
      {"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}, {        \
    "Sec-WebSocket-Protocol", "dsnet.v1"                                                           \
  }

static struct upgrade_answer decide(const struct line *lines, size_t count, const char *method,
                                    const char *version, const struct option_list *origins) {
  static const struct option_list any = {0};
  struct upgrade_request request = {0};
  struct upgrade_answer answer;
  for (size_t i = 0; i < count; i++)
    upgrade_header(&request, lines[i].name, lines[i].value);
  upgrade_decide(&request, method, version, origins ? origins : &any, &answer);
  return answer;
}

static void a_correct_handshake_is_accepted(void **state) {
  (void)state;
  const struct line lines[] = {GOOD_LINES};
  struct upgrade_answer answer = decide(lines, 6, "GET", "HTTP/1.1", NULL);
  assert_int_equal(answer.status, 101);
  assert_string_equal(answer.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void names_tokens_and_lists_are_read_as_http_has_them(void **state) {
  (void)state;
  const struct line lines[] = {
      {"host", ""},
      {"upgrade", "foo, WebSocket"},
      {"CONNECTION", "keep-alive"},
      {"connection", " ,keep-alive ,\tupgrade "},
      {"sec-websocket-version", "13"},
      {"Sec-Websocket-KEY", "dGhlIHNhbXBsZSBub25jZQ=="},
      {"Sec-WebSocket-Protocol", "other, dsnet.v2"},
      {"Sec-WebSocket-Protocol", "dsnet.v1 ,more"},
  };
  assert_int_equal(decide(lines, 8, "GET", "HTTP/1.1", NULL).status, 101);
}

// Replaces (or, with NULL, leaves out) one line of the good request.
static struct upgrade_answer decide_with(const char *name, const char *value) {
  struct line lines[] = {GOOD_LINES};
  size_t count = 0;
  for (size_t i = 0; i < 6; i++) {
    struct line line = lines[i];
    if (!strcmp(line.name, name))
      line.value = value;
    if (line.value)
      lines[count++] = line;
  }
  return decide(lines, count, "GET", "HTTP/1.1", NULL);
}

static void each_missing_or_wrong_header_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *value;
    unsigned status;
  } cases[] = {
      {"Host", NULL, 400},
      {"Upgrade", NULL, 426},
      {"Upgrade", "h2c", 400},
      {"Upgrade", "websockets", 400},
      {"Connection", NULL, 400},
      {"Connection", "keep-alive", 400},
      {"Connection", "not-upgrade", 400},
      {"Sec-WebSocket-Version", NULL, 426},
      {"Sec-WebSocket-Version", "8", 426},
      {"Sec-WebSocket-Version", "013", 426},
      {"Sec-WebSocket-Version", "13, 8", 426},
      {"Sec-WebSocket-Key", NULL, 400},
      {"Sec-WebSocket-Key", "", 400},
      {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ", 400},
      {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==x", 400},
      {"Sec-WebSocket-Protocol", NULL, 400},
      {"Sec-WebSocket-Protocol", "dsnet.v2", 400},
      {"Sec-WebSocket-Protocol", "DSNET.V1", 400},
      {"Sec-WebSocket-Protocol", "dsnet.v11", 400},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct upgrade_answer answer = decide_with(cases[i].name, cases[i].value);
    assert_int_equal(answer.status, cases[i].status);
    assert_non_null(answer.reason);
  }
}

static void a_repeated_host_key_or_version_is_refused(void **state) {
  (void)state;
  const struct line hosts[] = {GOOD_LINES, {"Host", "x"}};
  assert_int_equal(decide(hosts, 7, "GET", "HTTP/1.1", NULL).status, 400);
  const struct line keys[] = {GOOD_LINES, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
  assert_int_equal(decide(keys, 7, "GET", "HTTP/1.1", NULL).status, 400);
  const struct line versions[] = {GOOD_LINES, {"Sec-WebSocket-Version", "13"}};
  assert_int_equal(decide(versions, 7, "GET", "HTTP/1.1", NULL).status, 426);
}

static void method_and_version_must_fit(void **state) {
  (void)state;
  const struct line lines[] = {GOOD_LINES};
  assert_int_equal(decide(lines, 6, "POST", "HTTP/1.1", NULL).status, 405);
  assert_int_equal(decide(lines, 6, "HEAD", "HTTP/1.1", NULL).status, 405);
  assert_int_equal(decide(lines, 6, "GET", "HTTP/1.0", NULL).status, 400);
}

static void only_allowed_origins_pass_when_some_are_named(void **state) {
  (void)state;
  const struct option_list allowed = {.items = {"https://a.example", "https://b.example"},
                                      .count = 2};
  const struct line none[] = {GOOD_LINES};
  const struct line good[] = {GOOD_LINES, {"Origin", "https://b.example"}};
  const struct line bad[] = {GOOD_LINES, {"Origin", "https://b.example.evil"}};
  const struct line two[] = {GOOD_LINES, {"Origin", "https://a.example"}, {"Origin", "https://x"}};
  assert_int_equal(decide(none, 6, "GET", "HTTP/1.1", &allowed).status, 101);
  assert_int_equal(decide(good, 7, "GET", "HTTP/1.1", &allowed).status, 101);
  assert_int_equal(decide(bad, 7, "GET", "HTTP/1.1", &allowed).status, 403);
  assert_int_equal(decide(two, 8, "GET", "HTTP/1.1", &allowed).status, 403);
  assert_int_equal(decide(bad, 7, "GET", "HTTP/1.1", NULL).status, 101);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_correct_handshake_is_accepted),
      cmocka_unit_test(names_tokens_and_lists_are_read_as_http_has_them),
      cmocka_unit_test(each_missing_or_wrong_header_is_refused),
      cmocka_unit_test(a_repeated_host_key_or_version_is_refused),
      cmocka_unit_test(method_and_version_must_fit),
      cmocka_unit_test(only_allowed_origins_pass_when_some_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
