// SPDX-License-Identifier: Apache-2.0
// stream/websocket.c: masking against RFC 6455's example, and the parser fed in pieces of every
// size: what it makes of a byte stream must not depend on how it was cut.
#include "stream/websocket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// What a stream parses to, as text: "T(hello)" a text message, "B(...)" binary, "9(..)" a control
// frame, "!rule" the end.
struct log {
  char text[4096];
  size_t used;
  bool in_message;
};

static void put(struct log *log, const void *bytes, size_t size) {
  assert_true(log->used + size < sizeof log->text);
  memcpy(log->text + log->used, bytes, size);
  log->used += size;
  log->text[log->used] = 0;
}

static void put_event(struct log *log, const struct websocket_event *event) {
  char head[8];
  if (event->type == WEBSOCKET_EVENT_BAD) {
    put(log, "!", 1);
    put(log, event->text, strlen(event->text));
  } else if (event->type == WEBSOCKET_EVENT_CONTROL) {
    put(log, head, (size_t)snprintf(head, sizeof head, "%d(", event->opcode));
    put(log, event->bytes, event->size);
    put(log, ")", 1);
  } else if (event->type == WEBSOCKET_EVENT_DATA) {
    if (!log->in_message)
      put(log, event->opcode == WEBSOCKET_TEXT ? "T(" : "B(", 2);
    put(log, event->bytes, event->size);
    log->in_message = !event->end;
    if (event->end)
      put(log, ")", 1);
  }
}

// Feeds the stream in pieces of `piece` bytes, each in a block of its own.
static void parse(const uint8_t *stream, size_t size, size_t piece, uint64_t limit,
                  struct log *log) {
  struct websocket websocket = {.message_max = limit};
  memset(log, 0, sizeof *log);
  for (size_t at = 0; at < size;) {
    size_t left = size - at < piece ? size - at : piece;
    uint8_t *block = malloc(left), *bytes = block;
    assert_non_null(block);
    memcpy(block, stream + at, left);
    at += left;
    while (left) {
      struct websocket_event event;
      size_t used = websocket_read(&websocket, bytes, left, &event);
      assert_true(used <= left);
      put_event(log, &event);
      if (event.type == WEBSOCKET_EVENT_BAD) {
        free(block);
        return;
      }
      bytes += used;
      left -= used;
    }
    free(block);
  }
}

static void expect(const uint8_t *stream, size_t size, const char *wanted) {
  for (size_t piece = 1; piece <= size; piece++) {
    struct log log;
    parse(stream, size, piece, 1000, &log);
    if (strcmp(log.text, wanted) != 0)
      fail_msg("in pieces of %zu: \"%s\" instead of \"%s\"", piece, log.text, wanted);
  }
}

#define EXPECT(bytes, wanted) expect((const uint8_t *)(bytes), sizeof(bytes) - 1, wanted)

static void masking_is_that_of_rfc_6455(void **state) {
  (void)state;
  static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
  static const uint8_t wanted[] = {0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d,
                                   0x7f, 0x9f, 0x4d, 0x51, 0x58};
  uint8_t out[5 + WEBSOCKET_HEADER_MAX];
  size_t size = websocket_frame_write(out, WEBSOCKET_TEXT, (const uint8_t *)"Hello", 5, mask);
  assert_int_equal(size, sizeof wanted);
  assert_memory_equal(out, wanted, sizeof wanted);
}

static void written_lengths_have_their_shortest_form(void **state) {
  (void)state;
  static const struct {
    size_t size, header;
  } forms[] = {{0, 6}, {125, 6}, {126, 8}, {65535, 8}, {65536, 14}};
  static const uint8_t mask[4] = {1, 2, 3, 4};
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    uint8_t *payload = calloc(1, forms[i].size + 1), *out = malloc(forms[i].size + 14);
    assert_true(payload && out);
    size_t size = websocket_frame_write(out, WEBSOCKET_BINARY, payload, forms[i].size, mask);
    assert_int_equal(size, forms[i].size + forms[i].header);
    assert_int_equal(out[0], 0x82);
    assert_true(out[1] & 0x80);
    for (size_t k = 0; k < forms[i].size; k++)
      assert_int_equal(out[forms[i].header + k], mask[k % 4]);
    free(payload);
    free(out);
  }
}

static void messages_come_out_however_they_are_cut(void **state) {
  (void)state;
  EXPECT("\x81\x05Hello", "T(Hello)");
  EXPECT("\x82\x00\x81\x00", "B()T()");
  EXPECT("\x01\x03Hel\x80\x02lo", "T(Hello)");
  EXPECT("\x02\x00\x00\x00\x00\x01x\x80\x00\x81\x01y", "B(x)T(y)");
  EXPECT("\x89\x00\x8a\x02hi\x81\x01z", "9()10(hi)T(z)");
  EXPECT("\x88\x02\x03\xe8", "8(\x03\xe8)");
}

static void control_frames_stand_between_fragments(void **state) {
  (void)state;
  struct log log;
  static const char stream[] = "\x01\x03Hel\x89\x02hi\x80\x02lo";
  for (size_t piece = 1; piece < sizeof stream; piece++) {
    parse((const uint8_t *)stream, sizeof stream - 1, piece, 1000, &log);
    assert_string_equal(log.text, "T(Hel9(hi)lo)");
  }
}

static void long_messages_pass_in_every_form_of_length(void **state) {
  (void)state;
  uint8_t stream[10 + 70000];
  memset(stream, 'x', sizeof stream);
  static const size_t sizes[] = {126, 65535, 65536, 70000};
  for (size_t i = 0; i < 4; i++) {
    size_t size = sizes[i], header = size < 65536 ? 4 : 10;
    memset(stream, 0, header);
    stream[0] = 0x82;
    stream[1] = size < 65536 ? 126 : 127;
    for (size_t k = 0; k < 4 && k < header - 2; k++)
      stream[header - 1 - k] = (uint8_t)(size >> 8 * k);
    struct websocket websocket = {.message_max = 70000};
    size_t got = 0;
    bool end = false;
    for (size_t at = 0; at < header + size;) {
      struct websocket_event event;
      size_t left = header + size - at;
      at += websocket_read(&websocket, stream + at, left < 1000 ? left : 1000, &event);
      assert_int_not_equal(event.type, WEBSOCKET_EVENT_BAD);
      got += event.size;
      end |= event.end;
    }
    assert_int_equal(got, size);
    assert_true(end);
  }
}

// A message of two fragments with a ping between them, of which only the headers are read.
static void a_payload_can_be_passed_without_a_look(void **state) {
  (void)state;
  static const uint8_t first[] = {0x02, 0x05, 'a'}, ping[] = {0x89, 0x00}, second[] = {0x80, 0x03};
  struct websocket websocket = {.message_max = 8};
  struct websocket_event event;
  assert_int_equal(websocket_payload_left(&websocket), 0);
  assert_int_equal(websocket_read(&websocket, first, sizeof first, &event), sizeof first);
  assert_int_equal(event.size, 1);
  assert_int_equal(websocket_payload_left(&websocket), 4);
  for (uint64_t left = 4; left; left -= 2) {
    websocket_pass(&websocket, 2, &event);
    assert_int_equal(event.type, WEBSOCKET_EVENT_DATA);
    assert_int_equal(event.size, 2);
    assert_null(event.bytes);
    assert_false(event.end);
    assert_int_equal(websocket_payload_left(&websocket), left - 2);
  }
  websocket_read(&websocket, ping, sizeof ping, &event);
  assert_int_equal(event.type, WEBSOCKET_EVENT_CONTROL);
  assert_int_equal(websocket_payload_left(&websocket), 0);
  websocket_read(&websocket, second, sizeof second, &event);
  assert_int_equal(websocket_payload_left(&websocket), 3);
  websocket_pass(&websocket, 3, &event);
  assert_true(event.end);
  assert_int_equal(event.opcode, WEBSOCKET_BINARY);
  // The parser is where a read would have left it.
  websocket_read(&websocket, (const uint8_t *)"\x81\x01x", 3, &event);
  assert_true(event.end && event.opcode == WEBSOCKET_TEXT);
}

static void a_control_payload_is_not_passed(void **state) {
  (void)state;
  static const uint8_t part[] = {0x89, 0x04, 'p'};
  struct websocket websocket = {.message_max = 8};
  struct websocket_event event;
  websocket_read(&websocket, part, sizeof part, &event);
  assert_int_equal(websocket_payload_left(&websocket), 0);
}

static void broken_rules_are_named(void **state) {
  (void)state;
  EXPECT("\xc1\x01x", "!a reserved bit is set");
  EXPECT("\x81\x81\x01\x02\x03\x04x", "!a server's frame is masked");
  EXPECT("\x83\x00", "!an opcode is unknown");
  EXPECT("\x8b\x00", "!an opcode is unknown");
  EXPECT("\x80\x01x", "!a continuation has no message");
  EXPECT("\x01\x01x\x81\x01y", "T(x!a message starts inside another");
  EXPECT("\x09\x00", "!a control frame is fragmented");
  EXPECT("\x89\x7e\x00\x7e", "!a control frame is longer than 125 bytes");
  EXPECT("\x82\x7e\x00\x7d", "!a length is not in its shortest form");
  EXPECT("\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", "!a length is not in its shortest form");
  EXPECT("\x82\x7f\x80\x00\x00\x00\x00\x01\x00\x00", "!a length is not in its shortest form");
}

static void a_message_over_the_limit_is_refused_at_its_header(void **state) {
  (void)state;
  EXPECT("\x82\x7e\x03\xe9", "!a message is longer than the session allows");
  EXPECT("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff",
         "!a message is longer than the session allows");
  // Nor does it help to cut it into fragments.
  uint8_t stream[2000];
  size_t size = 0;
  for (int i = 0; i < 11; i++) {
    stream[size++] = i ? 0 : 2;
    stream[size++] = 100;
    memset(stream + size, 'x', 100);
    size += 100;
  }
  struct log log;
  parse(stream, size, 7, 1000, &log);
  assert_non_null(strstr(log.text, "!a message is longer"));
  assert_int_equal(log.used, 2 + 1000 + strlen("!a message is longer than the session allows"));
}

static void nothing_is_read_after_a_broken_rule(void **state) {
  (void)state;
  struct websocket websocket = {.message_max = 10};
  struct websocket_event event;
  websocket_read(&websocket, (const uint8_t *)"\x83\x00", 2, &event);
  assert_int_equal(event.type, WEBSOCKET_EVENT_BAD);
  assert_int_equal(event.close_code, 1002);
  websocket_read(&websocket, (const uint8_t *)"\x81\x00", 2, &event);
  assert_int_equal(event.type, WEBSOCKET_EVENT_BAD);
}

static void close_codes_are_checked(void **state) {
  (void)state;
  assert_int_equal(websocket_close_code((const uint8_t *)"", 0), 1005);
  assert_int_equal(websocket_close_code((const uint8_t *)"\x03", 1), 0);
  assert_int_equal(websocket_close_code((const uint8_t *)"\x03\xe8ok", 4), 1000);
  static const uint16_t bad[] = {0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65535};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    uint8_t payload[2] = {(uint8_t)(bad[i] >> 8), (uint8_t)bad[i]};
    assert_int_equal(websocket_close_code(payload, 2), 0);
  }
  assert_string_equal(websocket_close_text(1012), "service restart");
  assert_string_equal(websocket_close_text(4000), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(masking_is_that_of_rfc_6455),
      cmocka_unit_test(written_lengths_have_their_shortest_form),
      cmocka_unit_test(messages_come_out_however_they_are_cut),
      cmocka_unit_test(control_frames_stand_between_fragments),
      cmocka_unit_test(long_messages_pass_in_every_form_of_length),
      cmocka_unit_test(a_payload_can_be_passed_without_a_look),
      cmocka_unit_test(a_control_payload_is_not_passed),
      cmocka_unit_test(broken_rules_are_named),
      cmocka_unit_test(a_message_over_the_limit_is_refused_at_its_header),
      cmocka_unit_test(nothing_is_read_after_a_broken_rule),
      cmocka_unit_test(close_codes_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
