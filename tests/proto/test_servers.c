// SPDX-License-Identifier: Apache-2.0
// stream/servers.c: whose turn it is, and looking hosts up while sessions use them.
#include "stream/servers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uv_loop_t loop;
static struct servers servers;
static struct stream_url urls[3];

static int resolve(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++)
    if (stream_url_parse(&urls[i], "ws://127.0.0.1:8080", NULL) != 0)
      return -1;
  memset(&servers, 0, sizeof servers);
  return uv_loop_init(&loop) || servers_resolve(&servers, &loop, urls, 3, NULL);
}

static int close_loop(void **state) {
  (void)state;
  return uv_loop_close(&loop);
}

static void servers_take_turns(void **state) {
  (void)state;
  assert_int_equal(servers_next(&servers, 0, 100), 1);
  assert_int_equal(servers_next(&servers, 1, 100), 2);
  assert_int_equal(servers_next(&servers, 2, 100), 0);
}

static void one_that_asked_to_wait_is_left_out_until_then(void **state) {
  (void)state;
  servers.list[1].not_before = 200;
  assert_int_equal(servers_next(&servers, 0, 100), 2);
  assert_int_equal(servers_next(&servers, 0, 200), 1);
}

static void when_all_asked_to_wait_the_first_that_may_be_asked_is_next(void **state) {
  (void)state;
  servers.list[0].not_before = 300;
  servers.list[1].not_before = 200;
  servers.list[2].not_before = 400;
  for (size_t index = 0; index < 3; index++)
    assert_int_equal(servers_next(&servers, index, 100), 1);
}

static void a_lone_server_is_always_next(void **state) {
  (void)state;
  servers.count = 1;
  assert_int_equal(servers_next(&servers, 0, 100), 0);
  servers.list[0].not_before = 200;
  assert_int_equal(servers_next(&servers, 0, 100), 0);
}

static void addresses_are_looked_up_anew(void **state) {
  (void)state;
  struct sockaddr_storage before = servers.list[0].addresses[0];
  memset(servers.list[0].addresses, 0, sizeof servers.list[0].addresses);
  servers_look_up(&servers, 0, &loop);
  servers_look_up(&servers, 0, &loop); // is awaited already
  assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
  assert_false(servers.list[0].looking_up);
  assert_int_equal(servers.list[0].address_count, 1);
  assert_memory_equal(&servers.list[0].addresses[0], &before, sizeof(struct sockaddr_in));
}

static void a_host_that_is_no_longer_known_keeps_its_addresses(void **state) {
  (void)state;
  struct sockaddr_storage before = servers.list[0].addresses[0];
  strcpy(urls[0].host, "no.such.host.invalid");
  servers_look_up(&servers, 0, &loop);
  assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
  assert_int_equal(servers.list[0].address_count, 1);
  assert_memory_equal(&servers.list[0].addresses[0], &before, sizeof before);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, resolve, close_loop)
  const struct CMUnitTest tests[] = {
      TEST(servers_take_turns),
      TEST(one_that_asked_to_wait_is_left_out_until_then),
      TEST(when_all_asked_to_wait_the_first_that_may_be_asked_is_next),
      TEST(a_lone_server_is_always_next),
      TEST(addresses_are_looked_up_anew),
      TEST(a_host_that_is_no_longer_known_keeps_its_addresses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
