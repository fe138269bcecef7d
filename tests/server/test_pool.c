// SPDX-License-Identifier: Apache-2.0
// Result buffers: what is reserved can be taken, buffers are reused, and the surplus is given up.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pool.h"

static void a_payload_is_aligned_and_has_room_before_it(void **state) {
  (void)state;
  struct pool pool;
  pool_init(&pool, 1003, 0);
  assert_true(pool_reserve(&pool));
  struct result *result = pool_take(&pool);
  assert_int_equal((uintptr_t)result->payload % MEMORY_ALIGNMENT, 0);
  assert_int_equal(result->payload_size, 1003);
  for (size_t i = 0; i < RESULT_HEADROOM; i++) // AddressSanitizer watches the block's ends
    result->payload[-(ptrdiff_t)i - 1] = 1;
  result->payload[1002] = 1;
  pool_give(&pool, result);
  pool_deinit(&pool);
}

static void the_last_buffer_given_is_the_next_taken(void **state) {
  (void)state;
  struct pool pool;
  pool_init(&pool, 64, 8);
  struct result *results[3];
  for (int i = 0; i < 3; i++)
    assert_true(pool_reserve(&pool));
  for (int i = 0; i < 3; i++)
    results[i] = pool_take(&pool);
  for (int i = 0; i < 3; i++)
    pool_give(&pool, results[i]);
  assert_true(pool_reserve(&pool));
  assert_ptr_equal(pool_take(&pool), results[2]);
  assert_int_equal(pool.total, 3); // reserving again made none
  pool_give(&pool, results[2]);
  pool_deinit(&pool);
}

// Reserves, takes and gives back `count` buffers.
static void use(struct pool *pool, size_t count) {
  struct result *results[100];
  for (size_t i = 0; i < count; i++)
    assert_true(pool_reserve(pool));
  for (size_t i = 0; i < count; i++)
    results[i] = pool_take(pool);
  for (size_t i = 0; i < count; i++)
    pool_give(pool, results[i]);
}

static void buffers_go_when_they_were_not_needed_for_a_while(void **state) {
  (void)state;
  struct pool pool;
  pool_init(&pool, 64, 4);
  use(&pool, 100);
  assert_int_equal(pool.reserved, 0);
  pool_trim(&pool); // they were needed since the last time
  assert_int_equal(pool.total, 100);
  use(&pool, 30);
  pool_trim(&pool);
  assert_int_equal(pool.total, 30);
  pool_trim(&pool);
  assert_int_equal(pool.total, 4);
  pool_deinit(&pool);
}

static void buffers_in_use_survive_a_trim(void **state) {
  (void)state;
  struct pool pool;
  pool_init(&pool, 64, 0);
  assert_true(pool_reserve(&pool));
  assert_true(pool_reserve(&pool));
  struct result *result = pool_take(&pool);
  pool_trim(&pool);
  pool_trim(&pool);
  assert_int_equal(pool.total, 2); // the other one is promised
  pool_give(&pool, result);
  pool_unreserve(&pool);
  pool_trim(&pool);
  pool_trim(&pool);
  assert_int_equal(pool.total, 0);
  pool_deinit(&pool);
}

static void a_reservation_can_be_given_back_unused(void **state) {
  (void)state;
  struct pool pool;
  pool_init(&pool, 64, 0);
  assert_true(pool_reserve(&pool));
  pool_unreserve(&pool);
  assert_int_equal(pool.reserved, 0);
  pool_deinit(&pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_payload_is_aligned_and_has_room_before_it),
      cmocka_unit_test(the_last_buffer_given_is_the_next_taken),
      cmocka_unit_test(buffers_go_when_they_were_not_needed_for_a_while),
      cmocka_unit_test(buffers_in_use_survive_a_trim),
      cmocka_unit_test(a_reservation_can_be_given_back_unused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
