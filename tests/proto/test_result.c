// SPDX-License-Identifier: Apache-2.0
// stream/result.c: a frame cut in any two places decodes to the same numbers, in each encoding.
#include "stream/result.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/half.h"

#define VERTICES   5
#define NUMBERS    (3 * VERTICES)
#define FRAME_SIZE (FRAME_HEADER_SIZE + 4 * NUMBERS)

static const float scale = 0.25f;

// Values that every encoding has exactly.
static float value(int i) {
  return scale * (float)(i - 7);
}

static size_t make_frame(uint8_t frame[FRAME_SIZE], enum frame_encoding encoding) {
  struct frame_header header = {FRAME_DISPLACEMENT, (uint8_t)encoding, 0, 77, 2.5};
  frame_header_write(&header, frame);
  uint8_t *payload = frame + FRAME_HEADER_SIZE;
  if (encoding == FRAME_I16)
    memcpy(payload, &scale, 4);
  for (int i = 0; i < NUMBERS; i++) {
    if (encoding == FRAME_F32)
      memcpy(payload + 4 * i, &(float){value(i)}, 4);
    else if (encoding == FRAME_F16)
      memcpy(payload + 2 * i, &(uint16_t){half_from_float(value(i))}, 2);
    else
      memcpy(payload + 4 + 2 * i, &(int16_t){(int16_t)(i - 7)}, 2);
  }
  return frame_result_size(FRAME_DISPLACEMENT, encoding, VERTICES, 1);
}

// Feeds [from, to) in a block of its own. False when the payload is too long.
static bool feed(struct result *result, const uint8_t *frame, size_t from, size_t to,
                 bool *has_header, struct frame_header *header) {
  size_t size = to - from;
  uint8_t *block = malloc(size ? size : 1);
  assert_non_null(block);
  memcpy(block, frame + from, size);
  const uint8_t *bytes = block;
  if (!*has_header)
    *has_header = result_take_header(result, &bytes, &size, header);
  bool taken = result_take_payload(result, bytes, size);
  free(block);
  return taken;
}

// Returns what result_decode does.
static bool decode_cut(struct result *result, const uint8_t *frame, size_t a, size_t b, size_t size,
                       float values[NUMBERS]) {
  struct frame_header header = {0};
  bool has_header = false;
  result_begin(result);
  assert_true(feed(result, frame, 0, a, &has_header, &header));
  assert_true(feed(result, frame, a, b, &has_header, &header));
  assert_true(result_is_complete(result) == (b == size));
  assert_true(feed(result, frame, b, size, &has_header, &header));
  assert_true(has_header && result_is_complete(result));
  assert_int_equal(header.seq, 77);
  uint8_t more = 0;
  assert_false(result_take_payload(result, &more, 1));
  return result_decode(result, values);
}

static void every_cut_decodes_to_the_same_numbers(void **state) {
  (void)state;
  for (enum frame_encoding encoding = FRAME_F32; encoding <= FRAME_I16; encoding++) {
    uint8_t frame[FRAME_SIZE];
    struct result result;
    size_t size = make_frame(frame, encoding);
    assert_int_equal(result_init(&result, FRAME_DISPLACEMENT, encoding, VERTICES, 1), 0);
    assert_int_equal(result.numbers, NUMBERS);
    for (size_t a = 0; a <= size; a++)
      for (size_t b = a; b <= size; b++) {
        float values[NUMBERS] = {0};
        assert_true(decode_cut(&result, frame, a, b, size, values));
        for (int i = 0; i < NUMBERS; i++)
          assert_true(values[i] == value(i));
      }
    result_deinit(&result);
  }
}

static void a_bad_number_is_found_wherever_it_stands(void **state) {
  (void)state;
  const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
  uint8_t frame[FRAME_SIZE];
  float values[NUMBERS];
  struct result result;
  assert_int_equal(result_init(&result, FRAME_DISPLACEMENT, FRAME_F32, VERTICES, 1), 0);
  for (size_t i = 0; i < NUMBERS; i++)
    for (int k = 0; k < 4; k++) {
      size_t size = make_frame(frame, FRAME_F32);
      memcpy(frame + FRAME_HEADER_SIZE + 4 * i, &(float){3.4e38f}, 4); // huge is finite
      assert_true(decode_cut(&result, frame, 20, 41, size, values));
      memcpy(frame + FRAME_HEADER_SIZE + 4 * i, &bad[k], 4);
      assert_false(decode_cut(&result, frame, 20, 41, size, values));
    }
  result_deinit(&result);
}

static void a_bad_scale_is_found(void **state) {
  (void)state;
  const float bad[] = {NAN, INFINITY, 3e38f};
  uint8_t frame[FRAME_SIZE];
  float values[NUMBERS];
  struct result result;
  size_t size = make_frame(frame, FRAME_I16);
  assert_int_equal(result_init(&result, FRAME_DISPLACEMENT, FRAME_I16, VERTICES, 1), 0);
  for (int k = 0; k < 3; k++) {
    memcpy(frame + FRAME_HEADER_SIZE, &bad[k], 4);
    assert_false(decode_cut(&result, frame, 18, 30, size, values));
  }
  result_deinit(&result);
}

static void latents_have_their_own_count(void **state) {
  (void)state;
  struct result result;
  assert_int_equal(result_init(&result, FRAME_LATENT, FRAME_F16, VERTICES, 9), 0);
  assert_int_equal(result.numbers, 9);
  result_deinit(&result);
  assert_int_not_equal(result_init(&result, FRAME_POSE, FRAME_F32, VERTICES, 9), 0);
}

static void the_largest_is_kept_for_each_vertex(void **state) {
  (void)state;
  float values[NUMBERS], largest[VERTICES] = {[2] = 900};
  for (int i = 0; i < NUMBERS; i++)
    values[i] = value(i);
  result_note_largest(values, VERTICES, largest);
  for (int v = 0; v < VERTICES; v++) {
    float x = value(3 * v), y = value(3 * v + 1), z = value(3 * v + 2);
    assert_true(largest[v] == (v == 2 ? 900 : x * x + y * y + z * z));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_cut_decodes_to_the_same_numbers),
      cmocka_unit_test(a_bad_number_is_found_wherever_it_stands),
      cmocka_unit_test(a_bad_scale_is_found),
      cmocka_unit_test(latents_have_their_own_count),
      cmocka_unit_test(the_largest_is_kept_for_each_vertex),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
