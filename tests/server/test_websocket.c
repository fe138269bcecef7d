// SPDX-License-Identifier: Apache-2.0
// The WebSocket layer without a socket: a script of bytes goes in, whole or one byte at a time, and
// what the layer hands over and wants written is recorded.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "websocket.h"

#define MAX_MESSAGE 1000

struct peer {
  struct websocket ws;
  uint8_t input[8192];
  size_t input_size, input_read, piece;
  bool input_ends;
  char seen[65536]; // "T:text|" and "B:size|" of each message
  size_t seen_size;
  bool pause_after_each;
};

static ssize_t peer_read(void *user, uint8_t *bytes, size_t size) {
  struct peer *peer = user;
  size_t left = peer->input_size - peer->input_read;
  if (!left)
    return peer->input_ends ? -1 : 0;
  if (size > left)
    size = left;
  if (size > peer->piece)
    size = peer->piece;
  memcpy(bytes, peer->input + peer->input_read, size);
  peer->input_read += size;
  return (ssize_t)size;
}

static void peer_message(void *user, bool text, const uint8_t *bytes, size_t size) {
  struct peer *peer = user;
  char *at = peer->seen + peer->seen_size;
  size_t room = sizeof peer->seen - peer->seen_size;
  int length = text ? snprintf(at, room, "T:%.*s|", (int)size, (const char *)bytes)
                    : snprintf(at, room, "B:%zu|", size);
  peer->seen_size += (size_t)length;
  if (peer->pause_after_each)
    peer->ws.paused = true;
}

static const struct websocket_callbacks callbacks = {.read = peer_read, .message = peer_message};

static struct websocket_spare spare; // of all peers of a test

static struct peer *peer_new(size_t piece) {
  struct peer *peer = calloc(1, sizeof *peer);
  assert_non_null(peer);
  peer->piece = piece;
  websocket_init(&peer->ws, MAX_MESSAGE, &spare, &callbacks, peer);
  return peer;
}

static void peer_free(struct peer *peer) {
  websocket_deinit(&peer->ws);
  free(peer);
}

// Appends a masked frame with the first byte (FIN, reserved bits, opcode) as given.
static void add_frame(struct peer *peer, uint8_t first, const void *payload, size_t size) {
  static const uint8_t mask[4] = {0x12, 0x34, 0x56, 0x78};
  uint8_t *out = peer->input + peer->input_size;
  size_t length = 2;
  out[0] = first;
  out[1] = (uint8_t)(0x80 | (size < 126 ? size : 126));
  if (size >= 126) {
    out[2] = (uint8_t)(size >> 8);
    out[3] = (uint8_t)size;
    length = 4;
  }
  memcpy(out + length, mask, 4);
  length += 4;
  for (size_t i = 0; i < size; i++)
    out[length + i] = ((const uint8_t *)payload)[i] ^ mask[i % 4];
  peer->input_size += length + size;
}

#define FIN   0x80
#define CONT  0x0
#define TEXT  0x1
#define BIN   0x2
#define CLOSE 0x8
#define PING  0x9
#define PONG  0xA

// All that the layer wants written, taken `step` bytes at a time.
static size_t drain(struct websocket *ws, uint8_t *out, size_t room, size_t step) {
  size_t total = 0;
  struct iovec vectors[4];
  for (int count; (count = websocket_output(ws, vectors, 4));) {
    size_t taken = 0;
    for (int i = 0; i < count && taken < step; i++) {
      size_t part = vectors[i].iov_len < step - taken ? vectors[i].iov_len : step - taken;
      assert_true(total + taken + part <= room);
      memcpy(out + total + taken, vectors[i].iov_base, part);
      taken += part;
    }
    websocket_written(ws, taken);
    total += taken;
  }
  return total;
}

static void assert_broken_with(struct peer *peer, unsigned code) {
  assert_int_equal(peer->ws.violation, code);
  assert_non_null(peer->ws.violated);
  assert_true(peer->ws.stopped);
}

static void messages_arrive_however_the_bytes_are_cut(void **state) {
  (void)state;
  static const size_t pieces[] = {1, 2, 3, 7, 64, 4096};
  for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
    struct peer *peer = peer_new(pieces[i]);
    uint8_t big[900] = {0};
    add_frame(peer, FIN | TEXT, "hello", 5);
    add_frame(peer, FIN | BIN, big, sizeof big);
    add_frame(peer, FIN | TEXT, "", 0);
    add_frame(peer, TEXT, "a\xC3", 2);
    add_frame(peer, FIN | PING, "now", 3);
    add_frame(peer, CONT, "", 0);
    add_frame(peer, FIN | CONT, "\xA4z", 2);
    add_frame(peer, FIN | PONG, "x", 1);
    websocket_receive(&peer->ws);
    assert_string_equal(peer->seen, "T:hello|B:900|T:|T:a\xC3\xA4z|");
    uint8_t out[64];
    assert_int_equal(drain(&peer->ws, out, sizeof out, 1), 5);
    assert_memory_equal(out, "\x8A\x03now", 5);
    peer_free(peer);
  }
}

static void a_paused_connection_keeps_what_it_has_read(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  peer->pause_after_each = true;
  add_frame(peer, FIN | TEXT, "1", 1);
  add_frame(peer, FIN | TEXT, "2", 1);
  websocket_receive(&peer->ws);
  assert_string_equal(peer->seen, "T:1|");
  peer->ws.paused = false;
  websocket_receive(&peer->ws);
  assert_string_equal(peer->seen, "T:1|T:2|");
  peer_free(peer);
}

static void violations_have_the_code_of_the_rfc(void **state) {
  (void)state;
  static const struct {
    uint8_t first;
    const char *payload;
    size_t size;
    unsigned code;
  } cases[] = {
      {FIN | 0x40 | TEXT, "x", 1, 1002},      // RSV1 without an extension
      {FIN | 0x10 | PING, "x", 1, 1002},      // RSV3
      {FIN | 0x3, "x", 1, 1002},              // reserved data frame
      {FIN | 0xB, "x", 1, 1002},              // reserved control frame
      {FIN | CONT, "x", 1, 1002},             // nothing to continue
      {PING, "x", 1, 1002},                   // fragmented ping
      {FIN | TEXT, "\xFF", 1, 1007},          // no UTF-8
      {FIN | TEXT, "\xED\xA0\x80", 3, 1007},  // surrogate
      {FIN | TEXT, "\xC3", 1, 1007},          // cut short
      {TEXT, "\xF5", 1, 1007},                // refused before the end
      {FIN | CLOSE, "\x03", 1, 1002},         // half a code
      {FIN | CLOSE, "\x03\xED", 2, 1002},     // 1005 is never sent
      {FIN | CLOSE, "\x03\xE7", 2, 1002},     // 999
      {FIN | CLOSE, "\x07\xD0", 2, 1002},     // 2000
      {FIN | CLOSE, "\x03\xE8\xFF", 3, 1007}, // reason is no UTF-8
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (size_t piece = 1; piece <= 4096; piece += 4095) {
      struct peer *peer = peer_new(piece);
      add_frame(peer, cases[i].first, cases[i].payload, cases[i].size);
      websocket_receive(&peer->ws);
      assert_broken_with(peer, cases[i].code);
      assert_int_equal(peer->seen_size, 0);
      peer_free(peer);
    }
}

static void frames_that_may_not_be_are_refused_at_their_header(void **state) {
  (void)state;
  static const struct {
    const char *header; // without the mask, of a frame whose payload never comes
    size_t size;
    unsigned code;
  } cases[] = {
      {"\x82\xFE\x03\xE9", 4, 1009},            // one over the limit
      {"\x82\xFF\0\0\x01\0\0\0\0\0", 10, 1009}, // 2^40
      {"\x82\x05", 2, 1002},                    // not masked
      {"\xC2\x85", 2, 1002},                    // RSV1
      {"\x83\x85", 2, 1002},                    // reserved opcode
      {"\x80\x85", 2, 1002},                    // nothing to continue
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (size_t piece = 1; piece <= 4096; piece += 4095) {
      struct peer *peer = peer_new(piece);
      add_frame(peer, FIN | TEXT, "before", 6);
      memcpy(peer->input + peer->input_size, cases[i].header, cases[i].size);
      peer->input_size += cases[i].size - 1;
      websocket_receive(&peer->ws);
      assert_int_equal(peer->ws.violation, 0);
      peer->input_size++;
      websocket_receive(&peer->ws);
      assert_broken_with(peer, cases[i].code);
      assert_string_equal(peer->seen, "T:before|");
      peer_free(peer);
    }
}

// The limit holds for the sum, and what was paused over is only looked at when its turn comes.
static void a_fragment_is_refused_at_its_header_by_what_came_before(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  peer->pause_after_each = true;
  uint8_t part[600] = {0};
  add_frame(peer, FIN | BIN, part, sizeof part);
  add_frame(peer, BIN, part, sizeof part);
  memcpy(peer->input + peer->input_size, "\x80\xFE\x01\x91", 4); // 401 more
  peer->input_size += 4;
  websocket_receive(&peer->ws);
  assert_string_equal(peer->seen, "B:600|");
  assert_int_equal(peer->ws.violation, 0);
  peer->ws.paused = false;
  websocket_receive(&peer->ws);
  assert_broken_with(peer, 1009);
  peer_free(peer);
}

static void a_new_message_inside_another_is_refused(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  add_frame(peer, TEXT, "x", 1);
  add_frame(peer, FIN | TEXT, "y", 1);
  websocket_receive(&peer->ws);
  assert_broken_with(peer, 1002);
  peer_free(peer);
}

static void an_unmasked_frame_is_refused(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  memcpy(peer->input, "\x81\x01x", 3);
  peer->input_size = 3;
  websocket_receive(&peer->ws);
  assert_broken_with(peer, 1002);
  peer_free(peer);
}

static void headers_that_are_not_minimal_or_too_long_are_refused(void **state) {
  (void)state;
  static const uint8_t cases[][18] = {
      {0x82, 0xFE, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9},                   // 5 in 16 bits
      {0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8},    // 5 in 64 bits
      {0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8}, // the top bit
      {0x89, 0xFE, 0, 126, 1, 2, 3, 4, 5, 6, 7, 8, 9},                 // a long ping
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct peer *peer = peer_new(4096);
    memcpy(peer->input, cases[i], sizeof cases[i]);
    peer->input_size = sizeof cases[i];
    websocket_receive(&peer->ws);
    assert_broken_with(peer, 1002);
    peer_free(peer);
  }
}

static void a_message_over_the_limit_fails_before_its_bytes_are_kept(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  // Declares 2^40 bytes and sends one.
  memcpy(peer->input, "\x82\xFF\0\0\1\0\0\0\0\0mask!", 15);
  peer->input_size = 15;
  websocket_receive(&peer->ws);
  assert_broken_with(peer, 1009);
  assert_int_equal(peer->ws.message_capacity, 0);
  peer_free(peer);
}

static void fragments_do_not_evade_the_limit(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  uint8_t part[100] = {0};
  add_frame(peer, BIN, part, sizeof part);
  for (int i = 0; i < 9; i++)
    add_frame(peer, CONT, part, sizeof part);
  websocket_receive(&peer->ws);
  assert_int_equal(peer->ws.violation, 0);
  assert_true(peer->ws.message_capacity <= MAX_MESSAGE);
  add_frame(peer, CONT, part, 1);
  websocket_receive(&peer->ws);
  assert_broken_with(peer, 1009);
  peer_free(peer);
}

static void a_message_of_exactly_the_limit_is_taken(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  uint8_t part[MAX_MESSAGE] = {0};
  add_frame(peer, FIN | BIN, part, sizeof part);
  add_frame(peer, BIN, part, sizeof part - 1);
  add_frame(peer, FIN | CONT, part, 1);
  websocket_receive(&peer->ws);
  assert_string_equal(peer->seen, "B:1000|B:1000|");
  assert_int_equal(peer->ws.message_capacity, 0); // a large buffer is not kept
  peer_free(peer);
}

static void empty_fragments_cost_nothing(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  add_frame(peer, BIN, "", 0);
  for (int i = 0; i < 1000; i++)
    add_frame(peer, CONT, "", 0);
  add_frame(peer, FIN | CONT, "x", 1);
  websocket_receive(&peer->ws);
  assert_string_equal(peer->seen, "B:1|");
  peer_free(peer);
}

static void pings_are_answered_in_order(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  for (int i = 0; i < 20; i++)
    add_frame(peer, FIN | PING, (char[]){'n', (char)i}, 2);
  websocket_receive(&peer->ws);
  uint8_t out[128];
  assert_int_equal(drain(&peer->ws, out, sizeof out, 3), 20 * 4);
  for (int i = 0; i < 20; i++)
    assert_memory_equal(out + 4 * i, ((char[]){'\x8A', 2, 'n', (char)i}), 4);
  peer_free(peer);
}

static void of_more_pings_than_there_is_room_for_the_last_is_answered(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  char payload[WEBSOCKET_CONTROL_MAX] = {0};
  for (int i = 0; i < 51; i++) {
    payload[0] = (char)i;
    add_frame(peer, FIN | PING, payload, sizeof payload);
  }
  websocket_receive(&peer->ws);
  uint8_t out[1024];
  size_t size = drain(&peer->ws, out, sizeof out, 64);
  assert_in_range(size, 2 + sizeof payload, WEBSOCKET_PONGS);
  assert_int_equal(out[size - sizeof payload], 50);
  peer_free(peer);
}

static void control_frames_go_between_messages(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  assert_int_equal(websocket_queue_text(&peer->ws, "first", 5), 0);
  struct iovec vector;
  assert_int_equal(websocket_output(&peer->ws, &vector, 1), 1);
  websocket_written(&peer->ws, 3); // in the middle of it
  assert_int_equal(websocket_queue_text(&peer->ws, "second", 6), 0);
  add_frame(peer, FIN | PING, "p", 1);
  websocket_receive(&peer->ws);
  uint8_t out[64];
  size_t size = drain(&peer->ws, out, sizeof out, 2);
  assert_int_equal(size, 4 + 3 + 8);
  assert_memory_equal(out, "irst", 4);
  // The pong comes after `first` and, as both were asked for at once, before or after `second`.
  bool before = !memcmp(out + 4, "\x8A\x01p\x81\x06second", 11);
  bool after = !memcmp(out + 4, "\x81\x06second\x8A\x01p", 11);
  assert_true(before || after);
  peer_free(peer);
}

static void a_close_waits_for_what_is_queued(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  assert_int_equal(websocket_queue_text(&peer->ws, "last", 4), 0);
  websocket_close(&peer->ws, 1012, "bye");
  assert_int_equal(websocket_queue_text(&peer->ws, "late", 4), 0); // released, not sent
  websocket_close(&peer->ws, 1001, "other");                       // the first wins
  uint8_t out[64];
  assert_int_equal(drain(&peer->ws, out, sizeof out, 1), 13);
  assert_memory_equal(out,
                      "\x81\x04last\x88\x05\x03\xF4"
                      "bye",
                      13);
  assert_true(peer->ws.close_sent);
  peer_free(peer);
}

static void a_failure_drops_what_is_queued_but_ends_the_frame_begun(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  assert_int_equal(websocket_queue_text(&peer->ws, "begun", 5), 0);
  assert_int_equal(websocket_queue_text(&peer->ws, "dropped", 7), 0);
  struct iovec vector;
  assert_int_equal(websocket_output(&peer->ws, &vector, 1), 1);
  websocket_written(&peer->ws, 1);
  websocket_fail(&peer->ws, 1002, "");
  uint8_t out[64];
  assert_int_equal(drain(&peer->ws, out, sizeof out, 64), 6 + 4);
  assert_memory_equal(out,
                      "\x05"
                      "begun\x88\x02\x03\xEA",
                      10);
  peer_free(peer);
}

static void a_close_frame_ends_reading_and_reports_its_code(void **state) {
  (void)state;
  struct peer *peer = peer_new(1);
  add_frame(peer, FIN | CLOSE, "\x0F\xA0why", 5);
  add_frame(peer, FIN | TEXT, "ignored", 7);
  websocket_receive(&peer->ws);
  assert_int_equal(peer->ws.close_received, 4000);
  assert_int_equal(peer->seen_size, 0);
  peer_free(peer);
  peer = peer_new(4096);
  add_frame(peer, FIN | CLOSE, "", 0);
  websocket_receive(&peer->ws);
  assert_int_equal(peer->ws.close_received, WEBSOCKET_NO_STATUS);
  websocket_close(&peer->ws, peer->ws.close_received, "");
  uint8_t out[8];
  assert_int_equal(drain(&peer->ws, out, sizeof out, 8), 2);
  assert_memory_equal(out, "\x88\x00", 2);
  peer_free(peer);
}

static void what_came_before_a_violation_is_still_answered(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  add_frame(peer, FIN | TEXT, "x", 1);
  add_frame(peer, FIN | PING, "p", 1);
  add_frame(peer, FIN | 0x40 | TEXT, "y", 1);
  add_frame(peer, FIN | PING, "q", 1);
  websocket_receive(&peer->ws);
  assert_string_equal(peer->seen, "T:x|");
  assert_broken_with(peer, 1002);
  assert_int_equal(websocket_queue_text(&peer->ws, "x", 1), 0);
  websocket_close(&peer->ws, peer->ws.violation, "");
  uint8_t out[64];
  assert_int_equal(drain(&peer->ws, out, sizeof out, 64), 3 + 3 + 4);
  assert_memory_equal(out, "\x8A\x01p\x81\x01x\x88\x02\x03\xEA", 10);
  peer_free(peer);
}

static void connections_hold_a_context_only_in_mid_frame(void **state) {
  (void)state;
  for (size_t cut = 0;; cut++) {
    struct peer *slow = peer_new(4096), *other = peer_new(4096);
    add_frame(slow, TEXT, "one", 3);
    size_t boundary = slow->input_size;
    add_frame(slow, FIN | CONT, "two", 3);
    size_t size = slow->input_size;
    slow->input_size = cut;
    websocket_receive(&slow->ws);
    assert_int_equal(slow->ws.frames == NULL, cut == 0 || cut == boundary || cut == size);
    add_frame(other, FIN | TEXT, "between", 7);
    websocket_receive(&other->ws);
    assert_string_equal(other->seen, "T:between|");
    slow->input_size = size;
    websocket_receive(&slow->ws);
    assert_string_equal(slow->seen, "T:onetwo|");
    assert_null(slow->ws.frames);
    assert_null(other->ws.frames);
    assert_non_null(spare.frames);
    peer_free(slow);
    peer_free(other);
    if (cut == size)
      break;
  }
  websocket_spare_free(&spare);
  assert_null(spare.frames);
}

static void the_end_of_the_stream_is_seen(void **state) {
  (void)state;
  struct peer *peer = peer_new(4096);
  add_frame(peer, FIN | TEXT, "x", 1);
  peer->input_ends = true;
  websocket_receive(&peer->ws);
  assert_string_equal(peer->seen, "T:x|");
  assert_true(peer->ws.ended);
  peer_free(peer);
}

static void headers_have_the_shortest_length(void **state) {
  (void)state;
  uint8_t room[16];
  assert_int_equal(websocket_binary_header(room + 16, 125), 2);
  assert_memory_equal(room + 14, "\x82\x7D", 2);
  assert_int_equal(websocket_binary_header(room + 16, 126), 4);
  assert_memory_equal(room + 12, "\x82\x7E\x00\x7E", 4);
  assert_int_equal(websocket_binary_header(room + 16, 65535), 4);
  assert_int_equal(websocket_binary_header(room + 16, 82696), 10);
  assert_memory_equal(room + 6, "\x82\x7F\0\0\0\0\0\x01\x43\x08", 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_arrive_however_the_bytes_are_cut),
      cmocka_unit_test(a_paused_connection_keeps_what_it_has_read),
      cmocka_unit_test(violations_have_the_code_of_the_rfc),
      cmocka_unit_test(frames_that_may_not_be_are_refused_at_their_header),
      cmocka_unit_test(a_fragment_is_refused_at_its_header_by_what_came_before),
      cmocka_unit_test(a_new_message_inside_another_is_refused),
      cmocka_unit_test(an_unmasked_frame_is_refused),
      cmocka_unit_test(headers_that_are_not_minimal_or_too_long_are_refused),
      cmocka_unit_test(a_message_over_the_limit_fails_before_its_bytes_are_kept),
      cmocka_unit_test(fragments_do_not_evade_the_limit),
      cmocka_unit_test(a_message_of_exactly_the_limit_is_taken),
      cmocka_unit_test(empty_fragments_cost_nothing),
      cmocka_unit_test(pings_are_answered_in_order),
      cmocka_unit_test(of_more_pings_than_there_is_room_for_the_last_is_answered),
      cmocka_unit_test(control_frames_go_between_messages),
      cmocka_unit_test(a_close_waits_for_what_is_queued),
      cmocka_unit_test(a_failure_drops_what_is_queued_but_ends_the_frame_begun),
      cmocka_unit_test(a_close_frame_ends_reading_and_reports_its_code),
      cmocka_unit_test(what_came_before_a_violation_is_still_answered),
      cmocka_unit_test(connections_hold_a_context_only_in_mid_frame),
      cmocka_unit_test(the_end_of_the_stream_is_seen),
      cmocka_unit_test(headers_have_the_shortest_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
