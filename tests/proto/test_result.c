// SPDX-License-Identifier: Apache-2.0
// stream/result.c: a frame cut in any two or three places gives the same answer.
#include "stream/result.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VERTICES 5
#define SIZE     (FRAME_HEADER_SIZE + 12 * VERTICES)

static void make_frame(uint8_t frame[SIZE], const float values[3 * VERTICES]) {
  struct frame_header header = {FRAME_DISPLACEMENT, FRAME_F32, 0, 77, 2.5};
  frame_header_write(&header, frame);
  memcpy(frame + FRAME_HEADER_SIZE, values, 12 * VERTICES);
}

// Feeds [from, to) in a block of its own. False when the payload is too long.
static bool feed(struct result *result, const uint8_t *frame, size_t from, size_t to,
                 bool *has_header, struct frame_header *header) {
  size_t size = to - from;
  uint8_t *block = malloc(size ? size : 1);
  assert_non_null(block);
  if (size)
    memcpy(block, frame + from, size);
  const uint8_t *bytes = block;
  if (!*has_header)
    *has_header = result_take_header(result, &bytes, &size, header);
  bool taken = result_take_payload(result, bytes, size);
  free(block);
  return taken;
}

static void check_cut(const uint8_t frame[SIZE], size_t a, size_t b, bool finite,
                      float largest[VERTICES]) {
  struct result result = {.vertices = VERTICES, .largest = largest};
  struct frame_header header = {0};
  bool has_header = false;
  result_begin(&result);
  assert_true(feed(&result, frame, 0, a, &has_header, &header));
  assert_true(feed(&result, frame, a, b, &has_header, &header));
  assert_true(result_is_complete(&result) == (b == SIZE));
  assert_true(feed(&result, frame, b, SIZE, &has_header, &header));
  assert_true(has_header && result_is_complete(&result));
  assert_int_equal(header.seq, 77);
  assert_true(result_is_finite(&result) == finite);
  uint8_t more = 0;
  assert_false(result_take_payload(&result, &more, 1));
}

static void every_cut_finds_the_same_largest(void **state) {
  (void)state;
  float values[3 * VERTICES], largest[VERTICES];
  uint8_t frame[SIZE];
  for (int i = 0; i < 3 * VERTICES; i++)
    values[i] = 0.01f * (float)(i - 7);
  make_frame(frame, values);
  for (size_t a = 0; a <= SIZE; a++)
    for (size_t b = a; b <= SIZE; b++) {
      memset(largest, 0, sizeof largest);
      largest[2] = 9;
      check_cut(frame, a, b, true, largest);
      for (int v = 0; v < VERTICES; v++) {
        float x = values[3 * v], y = values[3 * v + 1], z = values[3 * v + 2];
        assert_float_equal(largest[v], v == 2 ? 9 : x * x + y * y + z * z, 1e-7);
      }
    }
}

static void a_bad_number_is_found_wherever_it_stands(void **state) {
  (void)state;
  const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3 * VERTICES; i++)
    for (int k = 0; k < 4; k++) {
      float values[3 * VERTICES] = {3.4e38f, -3.4e38f, 1e-45f};
      uint8_t frame[SIZE];
      make_frame(frame, values);
      check_cut(frame, 20, 41, true, NULL); // huge is finite
      values[i] = bad[k];
      make_frame(frame, values);
      for (size_t a = 0; a <= SIZE; a++)
        check_cut(frame, a, a, false, NULL);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_cut_finds_the_same_largest),
      cmocka_unit_test(a_bad_number_is_found_wherever_it_stands),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
