// SPDX-License-Identifier: Apache-2.0
// wire/frame.c: round trips, every truncation, every position of a bad value, every header byte.
#include "wire/frame.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SIZE_OF(joints) (FRAME_HEADER_SIZE + ((size_t)(joints) + 1) * 12)

static void put_float(uint8_t *frame, size_t index, float value) {
  memcpy(frame + FRAME_HEADER_SIZE + 4 * index, &value, sizeof value); // little-endian machines
}

// A valid frame of any joint count, in a block of exactly its size.
static uint8_t *make_frame(uint16_t joints) {
  uint8_t *frame = calloc(1, SIZE_OF(joints));
  assert_non_null(frame);
  struct frame_header header = {FRAME_POSE, FRAME_F32, joints, 5, 0.5};
  frame_header_write(&header, frame);
  for (size_t i = 0; i < 3 * ((size_t)joints + 1); i++)
    put_float(frame, i, 0.01f * (float)i);
  return frame;
}

static void header_bytes_stand_where_the_protocol_says(void **state) {
  (void)state;
  static const uint8_t bytes[FRAME_HEADER_SIZE] = {0x02, 0x01, 0x34, 0x12, 0x78, 0x56, 0x34, 0x92,
                                                   0,    0,    0,    0,    0,    0,    0xf0, 0xbf};
  struct frame_header header;
  frame_header_read(bytes, &header);
  assert_int_equal(header.kind, FRAME_DISPLACEMENT);
  assert_int_equal(header.encoding, FRAME_F16);
  assert_int_equal(header.count, 0x1234);
  assert_int_equal(header.seq, 0x92345678);
  assert_true(header.timestamp == -1.0);
  uint8_t written[FRAME_HEADER_SIZE];
  frame_header_write(&header, written);
  assert_memory_equal(written, bytes, sizeof bytes);
}

static void a_written_pose_reads_back_bit_for_bit(void **state) {
  (void)state;
  struct frame_pose pose = {.header = {.seq = 4294967295u, .timestamp = 1234.5678}}, back;
  for (size_t i = 0; i < FRAME_POSE_JOINTS * 3; i++)
    pose.pose[i] = sinf((float)i) * 3;
  pose.trans[0] = -99999.5f, pose.trans[1] = 1e-40f, pose.trans[2] = -0.0f;
  uint8_t bytes[FRAME_POSE_SIZE_MAX];
  size_t size = frame_pose_write(&pose, bytes);
  assert_int_equal(size, FRAME_HEADER_SIZE + 276);
  assert_int_equal(frame_pose_read(bytes, size, &back), WIRE_OK);
  assert_int_equal(back.header.kind, FRAME_POSE);
  assert_int_equal(back.header.count, FRAME_POSE_JOINTS);
  assert_int_equal(back.header.seq, pose.header.seq);
  assert_true(back.header.timestamp == pose.header.timestamp);
  assert_memory_equal(back.pose, pose.pose, sizeof pose.pose);
  assert_memory_equal(back.trans, pose.trans, sizeof pose.trans);
}

static void every_truncation_is_refused(void **state) {
  (void)state;
  for (uint16_t joints = FRAME_JOINTS_MIN; joints <= FRAME_JOINTS_MAX; joints += 33) {
    uint8_t *frame = make_frame(joints);
    struct frame_pose pose;
    for (size_t size = 0; size < SIZE_OF(joints); size++) {
      uint8_t *cut = malloc(size ? size : 1); // exact, so that reading past it is seen
      assert_non_null(cut);
      memcpy(cut, frame, size);
      assert_int_equal(frame_pose_read(cut, size, &pose), WIRE_BAD_SIZE);
      free(cut);
    }
    assert_int_equal(frame_pose_read(frame, SIZE_OF(joints), &pose), WIRE_OK);
    free(frame);
  }
}

static void only_22_to_55_joints_are_read(void **state) {
  (void)state;
  for (uint16_t joints = 0; joints < 300; joints++) {
    uint8_t *frame = make_frame(joints);
    struct frame_pose pose;
    enum wire_error expected = joints >= 22 && joints <= 55 ? WIRE_OK : WIRE_BAD_COUNT;
    assert_int_equal(frame_pose_read(frame, SIZE_OF(joints), &pose), expected);
    assert_int_equal(pose.header.count, joints);
    free(frame);
  }
}

static void a_bad_number_is_refused_wherever_it_stands(void **state) {
  (void)state;
  static const struct {
    float value;
    enum wire_error in_pose, in_trans;
  } bad[] = {
      {NAN, WIRE_NOT_FINITE, WIRE_NOT_FINITE},
      {-NAN, WIRE_NOT_FINITE, WIRE_NOT_FINITE},
      {INFINITY, WIRE_NOT_FINITE, WIRE_NOT_FINITE},
      {-INFINITY, WIRE_NOT_FINITE, WIRE_NOT_FINITE},
      {63.0f, WIRE_OUT_OF_RANGE, WIRE_OK},
      {-3e38f, WIRE_OUT_OF_RANGE, WIRE_OUT_OF_RANGE},
      {1.00001e5f, WIRE_OUT_OF_RANGE, WIRE_OUT_OF_RANGE},
  };
  for (uint16_t joints = FRAME_JOINTS_MIN; joints <= FRAME_JOINTS_MAX; joints += 33)
    for (size_t i = 0; i < 3 * ((size_t)joints + 1); i++)
      for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
        uint8_t *frame = make_frame(joints);
        struct frame_pose pose;
        put_float(frame, i, bad[b].value);
        enum wire_error expected = i < 3 * (size_t)joints ? bad[b].in_pose : bad[b].in_trans;
        assert_int_equal(frame_pose_read(frame, SIZE_OF(joints), &pose), expected);
        free(frame);
      }
}

static void a_timestamp_must_be_finite(void **state) {
  (void)state;
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  for (size_t i = 0; i < 3; i++) {
    uint8_t *frame = make_frame(22);
    struct frame_pose pose;
    struct frame_header header = {FRAME_POSE, FRAME_F32, 22, 3, bad[i]};
    frame_header_write(&header, frame);
    assert_int_equal(frame_pose_read(frame, SIZE_OF(22), &pose), WIRE_NOT_FINITE);
    assert_int_equal(pose.header.seq, 3);
    free(frame);
  }
}

static void kinds_and_encodings_other_than_an_f32_pose_are_refused(void **state) {
  (void)state;
  for (int value = 0; value < 256; value++) {
    uint8_t *frame = make_frame(22);
    struct frame_pose pose;
    frame[0] = (uint8_t)value;
    assert_int_equal(frame_pose_read(frame, SIZE_OF(22), &pose),
                     value == FRAME_POSE ? WIRE_OK : WIRE_BAD_KIND);
    frame[0] = FRAME_POSE;
    frame[1] = (uint8_t)value;
    assert_int_equal(frame_pose_read(frame, SIZE_OF(22), &pose),
                     value == FRAME_F32 ? WIRE_OK : WIRE_BAD_ENCODING);
    free(frame);
  }
}

static void result_sizes_follow_kind_and_encoding(void **state) {
  (void)state;
  assert_int_equal(frame_result_size(FRAME_DISPLACEMENT, FRAME_F32, 6890, 64), 16 + 82680);
  assert_int_equal(frame_result_size(FRAME_VERTICES, FRAME_F16, 6890, 64), 16 + 41340);
  assert_int_equal(frame_result_size(FRAME_LATENT, FRAME_F32, 6890, 64), 16 + 256);
  assert_int_equal(frame_result_size(FRAME_LATENT, FRAME_I16, 6890, 64), 16 + 4 + 128);
  assert_int_equal(frame_result_size(FRAME_POSE, FRAME_F32, 6890, 64), 0);
  assert_int_equal(frame_result_size(FRAME_VERTICES, (enum frame_encoding)3, 6890, 64), 0);
}

static void every_error_has_a_name_and_a_text(void **state) {
  (void)state;
  for (int error = WIRE_OK; error <= WIRE_INTERNAL; error++) {
    assert_true(strlen(wire_error_code((enum wire_error)error)) > 0);
    assert_true(strlen(wire_error_text((enum wire_error)error)) > 0);
  }
  assert_string_equal(wire_error_code(WIRE_BAD_SEQ), "bad_seq");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(header_bytes_stand_where_the_protocol_says),
      cmocka_unit_test(a_written_pose_reads_back_bit_for_bit),
      cmocka_unit_test(every_truncation_is_refused),
      cmocka_unit_test(only_22_to_55_joints_are_read),
      cmocka_unit_test(a_bad_number_is_refused_wherever_it_stands),
      cmocka_unit_test(a_timestamp_must_be_finite),
      cmocka_unit_test(kinds_and_encodings_other_than_an_f32_pose_are_refused),
      cmocka_unit_test(result_sizes_follow_kind_and_encoding),
      cmocka_unit_test(every_error_has_a_name_and_a_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
