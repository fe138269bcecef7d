// SPDX-License-Identifier: Apache-2.0
// stream/upgrade.c and stream/url.c: the request, every rule of the answer, and addresses.
#include "stream/upgrade.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define KEY      "dGhlIHNhbXBsZSBub25jZQ==" // with the next line the example of RFC 6455, 1.3
#define STATUS   "HTTP/1.1 101 Switching Protocols\r\n"
#define UPGRADE  "Upgrade: websocket\r\n"
#define CONNECT  "Connection: Upgrade\r\n"
#define ACCEPT   "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define PROTOCOL "Sec-WebSocket-Protocol: dsnet.v1\r\n"
#define GOOD     STATUS UPGRADE CONNECT ACCEPT PROTOCOL

// Reads a copy of exactly `size` bytes.
static enum upgrade_status read_head(const char *text, size_t size,
                                     struct upgrade_response *response) {
  char *copy = malloc(size ? size : 1);
  assert_non_null(copy);
  memcpy(copy, text, size);
  enum upgrade_status status = upgrade_response_read(copy, size, KEY, response);
  free(copy);
  return status;
}

static void a_right_answer_is_taken_when_it_is_whole(void **state) {
  (void)state;
  static const char text[] = GOOD "\r\n\x81\x02hi";
  size_t head = sizeof text - 1 - 4;
  struct upgrade_response response;
  for (size_t size = 0; size < head; size++)
    assert_int_equal(read_head(text, size, &response), UPGRADE_MORE);
  for (size_t size = head; size < sizeof text; size++) {
    assert_int_equal(read_head(text, size, &response), UPGRADE_DONE);
    assert_int_equal(response.head_size, head);
  }
}

static void names_and_tokens_may_have_any_case(void **state) {
  (void)state;
  static const char text[] = STATUS "UPGRADE:WebSocket \r\nconnection: keep-alive,\tupgrade\r\n"
                                    "sec-websocket-accept:\ts3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                                    "Server: x\r\n" PROTOCOL "\r\n";
  struct upgrade_response response;
  assert_int_equal(read_head(text, sizeof text - 1, &response), UPGRADE_DONE);
}

static void every_broken_rule_is_refused_by_name(void **state) {
  (void)state;
  static const struct {
    const char *text, *mentions;
    enum upgrade_status status;
  } answers[] = {
      {STATUS CONNECT ACCEPT PROTOCOL, "Upgrade: websocket", UPGRADE_BAD},
      {STATUS "Upgrade: h2c\r\n" CONNECT ACCEPT PROTOCOL, "Upgrade: websocket", UPGRADE_BAD},
      {STATUS UPGRADE ACCEPT PROTOCOL, "Connection: Upgrade", UPGRADE_BAD},
      {STATUS UPGRADE "Connection: upgraded\r\n" ACCEPT PROTOCOL, "Connection", UPGRADE_BAD},
      {STATUS UPGRADE CONNECT PROTOCOL, "Sec-WebSocket-Accept", UPGRADE_BAD},
      {STATUS UPGRADE CONNECT PROTOCOL "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOO=\r\n",
       "Sec-WebSocket-Accept", UPGRADE_BAD},
      {STATUS UPGRADE CONNECT ACCEPT, "does not speak dsnet.v1", UPGRADE_BAD},
      {STATUS UPGRADE CONNECT ACCEPT "Sec-WebSocket-Protocol: chat\r\n", "\"chat\"", UPGRADE_BAD},
      {GOOD "Sec-WebSocket-Extensions: permessage-deflate\r\n", "permessage-deflate", UPGRADE_BAD},
      {GOOD ACCEPT, "repeats", UPGRADE_BAD},
      {GOOD "no colon\r\n", "not HTTP", UPGRADE_BAD},
      {GOOD "Upgrade : websocket\r\n", "not HTTP", UPGRADE_BAD},
      {"HTTP/1.1 1010 Switching\r\n" UPGRADE, "not HTTP", UPGRADE_BAD},
      {"SSH-2.0-OpenSSH\r\n", "not HTTP", UPGRADE_BAD},
      {"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n",
       "503 Service Unavailable, retry after 2", UPGRADE_REFUSED},
      {"\x15\x03\x03", "speaks TLS", UPGRADE_BAD},
      {"HTTP/1.1 401\r\n", "401 (does it want a --token?)", UPGRADE_REFUSED},
      {"HTTP/1.1 200 OK\r\n", "200 OK (is it a dsnetd", UPGRADE_REFUSED},
      {"HTTP/1.1 404 \x1b[2J\r\n", "404 ?[2J", UPGRADE_REFUSED},
  };
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    char text[1024];
    struct upgrade_response response;
    strcpy(text, answers[i].text);
    strcat(text, "\r\n");
    enum upgrade_status status = read_head(text, strlen(text), &response);
    if (status != answers[i].status || !strstr(response.text, answers[i].mentions))
      fail_msg("case %zu: status %d, \"%s\"", i, status, response.text);
  }
}

static void what_cannot_become_http_is_not_waited_for(void **state) {
  (void)state;
  struct upgrade_response response;
  assert_int_equal(upgrade_response_read("SS", 2, KEY, &response), UPGRADE_BAD);
  assert_int_equal(upgrade_response_read("HTTP/2", 6, KEY, &response), UPGRADE_BAD);
  assert_int_equal(upgrade_response_read("HTTP/1.1 ", 9, KEY, &response), UPGRADE_MORE);
}

static double retry_after(const char *value) {
  char text[256];
  struct upgrade_response response;
  snprintf(text, sizeof text, "HTTP/1.1 503 Full\r\nRetry-After: %s\r\n\r\n", value);
  assert_int_equal(read_head(text, strlen(text), &response), UPGRADE_REFUSED);
  return response.retry_after;
}

static void a_retry_after_is_seconds_or_a_date(void **state) {
  (void)state;
  assert_true(retry_after("120") == 120);
  assert_true(retry_after("0") == 0);
  assert_true(retry_after("-5") == 0);
  assert_true(retry_after("soon") == 0);
  assert_true(retry_after("99999999999999999999") == 0);
  assert_true(retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0); // past
  assert_true(retry_after("Fri, 31 Dec 9999 23:59:59 GMT") == 1e9);
  char text[64];
  time_t later = time(NULL) + 100000;
  strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&later));
  double seconds = retry_after(text);
  assert_true(seconds > 90000 && seconds <= 100000);
}

static void a_nul_byte_is_not_http(void **state) {
  (void)state;
  static const char text[] = STATUS UPGRADE "X: \0" CONNECT ACCEPT PROTOCOL "\r\n";
  struct upgrade_response response;
  assert_int_equal(read_head(text, sizeof text - 1, &response), UPGRADE_BAD);
}

static void an_endless_head_is_refused(void **state) {
  (void)state;
  char text[UPGRADE_HEAD_MAX + 100];
  memset(text, 'a', sizeof text);
  memcpy(text, "HTTP/1.1 ", 9);
  struct upgrade_response response;
  assert_int_equal(read_head(text, UPGRADE_HEAD_MAX - 1, &response), UPGRADE_MORE);
  assert_int_equal(read_head(text, UPGRADE_HEAD_MAX, &response), UPGRADE_BAD);
  memcpy(text + UPGRADE_HEAD_MAX, "\r\n\r\n", 4); // an end beyond the limit is none
  assert_int_equal(read_head(text, sizeof text, &response), UPGRADE_BAD);
  assert_non_null(strstr(response.text, "8192"));
}

static void the_request_says_what_rfc_6455_wants(void **state) {
  (void)state;
  struct stream_url url;
  char text[1024];
  assert_int_equal(stream_url_parse(&url, "ws://example.org:81/v1/stream?x=1", NULL), 0);
  size_t size = upgrade_request_write(text, sizeof text, &url, KEY, "secret");
  assert_int_equal(size, strlen(text));
  assert_string_equal(text, "GET /v1/stream?x=1 HTTP/1.1\r\nHost: example.org:81\r\n"
                            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Key: " KEY "\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Protocol: dsnet.v1\r\n"
                            "Authorization: Bearer secret\r\n\r\n");
  for (size_t room = 0; room <= size; room++)
    assert_int_equal(upgrade_request_write(text, room, &url, KEY, "secret"), 0);
  upgrade_request_write(text, sizeof text, &url, KEY, NULL);
  assert_null(strstr(text, "Authorization"));
}

static void addresses_are_taken_apart(void **state) {
  (void)state;
  static const struct {
    const char *text, *host, *port, *authority, *path;
  } urls[] = {
      {"ws://localhost", "localhost", "80", "localhost", "/v1/stream"},
      {"WS://10.0.0.1:8080", "10.0.0.1", "8080", "10.0.0.1:8080", "/v1/stream"},
      {"ws://[::1]:65535/", "::1", "65535", "[::1]:65535", "/"},
      {"ws://[fe80::1]/a?b", "fe80::1", "80", "[fe80::1]", "/a?b"},
  };
  for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
    struct stream_url url;
    assert_int_equal(stream_url_parse(&url, urls[i].text, NULL), 0);
    assert_string_equal(url.host, urls[i].host);
    assert_string_equal(url.port, urls[i].port);
    assert_string_equal(url.authority, urls[i].authority);
    assert_string_equal(url.path, urls[i].path);
  }
}

static void wrong_addresses_are_refused(void **state) {
  (void)state;
  static const char *const urls[] = {
      "",
      "localhost:8080",
      "http://localhost",
      "ws://",
      "ws:///path",
      "ws://:80",
      "ws://a:",
      "ws://a:0",
      "ws://a:65536",
      "ws://a:8o",
      "ws://a:-1",
      "ws://a:000080",
      "ws://u@a",
      "ws://a/#part",
      "ws://[::1",
      "ws://[]:80",
      "ws://[::1]x",
      "ws://a/b c",
      "ws://a/\r\nX: y",
      "ws://a?x",
      "ws://\xc3\xa9",
      "wss://a",
      "https://a",
  };
  for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
    struct stream_url url;
    struct dsnet_error error = {0};
    if (stream_url_parse(&url, urls[i], &error) == 0)
      fail_msg("\"%s\" was taken", urls[i]);
    assert_true(error.text[0]);
  }
  char text[1000] = "ws://";
  memset(text + 5, 'a', 900);
  struct stream_url url;
  assert_int_not_equal(stream_url_parse(&url, text, NULL), 0);
  text[6] = '/';
  assert_int_not_equal(stream_url_parse(&url, text, NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_right_answer_is_taken_when_it_is_whole),
      cmocka_unit_test(names_and_tokens_may_have_any_case),
      cmocka_unit_test(every_broken_rule_is_refused_by_name),
      cmocka_unit_test(what_cannot_become_http_is_not_waited_for),
      cmocka_unit_test(a_retry_after_is_seconds_or_a_date),
      cmocka_unit_test(a_nul_byte_is_not_http),
      cmocka_unit_test(an_endless_head_is_refused),
      cmocka_unit_test(the_request_says_what_rfc_6455_wants),
      cmocka_unit_test(addresses_are_taken_apart),
      cmocka_unit_test(wrong_addresses_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
