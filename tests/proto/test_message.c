// SPDX-License-Identifier: Apache-2.0
// wire/message.c and wire/text.c beyond the case folders: round trips, escaping, every truncation,
// buffers of every size, allocations that fail.
#include "wire/message.h"
#include "wire/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

// Parses a copy of exactly `size` bytes, so that a sanitizer sees a read past them.
static enum wire_error parse(const char *text, size_t size, struct message *message,
                             char why[256]) {
  char *copy = malloc(size ? size : 1);
  assert_non_null(copy);
  memcpy(copy, text, size);
  enum wire_error error = message_read(copy, size, message, why, 256);
  free(copy);
  return error;
}

static struct message an_open(void) {
  struct message message;
  memset(&message, 0, sizeof message);
  message.type = MESSAGE_OPEN;
  message_open_init(&message.open);
  strcpy(message.open.model, "quote\" back\\ slash/ é");
  for (int i = 0; i < MESSAGE_BETAS_KEPT; i++)
    message.open.betas[i] = 0.1f * (float)(i - 5);
  message.open.fps = 59.94;
  message.open.up = MESSAGE_UP_Y;
  message.open.output = FRAME_LATENT;
  message.open.encoding = FRAME_I16;
  message.open.delivery = MESSAGE_DELIVERY_LATEST;
  message.open.format = MESSAGE_FORMAT_JSON;
  message.open.glitch = MESSAGE_GLITCH_HOLD;
  message.open.keepalive = 0.5;
  message.open.checkpoint_every = UINT32_MAX;
  memset(message.open.resume, 'A', MESSAGE_TOKEN_MAX - 1);
  return message;
}

static struct message an_opened(void) {
  struct message message;
  memset(&message, 0, sizeof message);
  message.type = MESSAGE_OPENED;
  message.opened = (struct message_opened){.session = "s\"1",
                                           .model = "m",
                                           .vertices = 6890,
                                           .latents = 64,
                                           .fps = 60,
                                           .next_seq = UINT32_MAX,
                                           .trained = 1,
                                           .delay = 1.0 / 60};
  return message;
}

static struct message a_checkpoint(const char *token) {
  struct message message;
  memset(&message, 0, sizeof message);
  message.type = MESSAGE_CHECKPOINT;
  message.checkpoint.seq = UINT32_MAX;
  strcpy(message.checkpoint.token, token);
  return message;
}

static struct message an_error(const char *text) {
  struct message message;
  memset(&message, 0, sizeof message);
  message.type = MESSAGE_ERROR;
  message.error = (struct message_error){.has_seq = 1, .seq = 7, .code = "bad_seq"};
  snprintf(message.error.text, sizeof message.error.text, "%s", text);
  return message;
}

static void round_trip(const struct message *message, struct message *back) {
  char text[MESSAGE_SIZE_MAX + 1], why[256];
  size_t length = message_write(message, text, sizeof text);
  assert_int_not_equal(length, 0);
  assert_int_equal(length, strlen(text));
  memset(back, 0, sizeof *back);
  enum wire_error error = parse(text, length, back, why);
  if (error != WIRE_OK)
    fail_msg("%s: %s", text, why);
  assert_int_equal(back->type, message->type);
}

static void an_open_reads_back_as_written(void **state) {
  (void)state;
  struct message message = an_open(), back;
  round_trip(&message, &back);
  assert_string_equal(back.open.model, message.open.model);
  assert_memory_equal(back.open.betas, message.open.betas, sizeof message.open.betas);
  assert_true(back.open.fps == message.open.fps);
  assert_int_equal(back.open.up, message.open.up);
  assert_int_equal(back.open.output, message.open.output);
  assert_int_equal(back.open.encoding, message.open.encoding);
  assert_int_equal(back.open.delivery, message.open.delivery);
  assert_int_equal(back.open.format, message.open.format);
  assert_int_equal(back.open.glitch, message.open.glitch);
  assert_true(back.open.keepalive == 0.5);
  assert_int_equal(back.open.checkpoint_every, message.open.checkpoint_every);
  assert_string_equal(back.open.resume, message.open.resume);
}

static void the_defaults_read_back_as_defaults(void **state) {
  (void)state;
  struct message message = {.type = MESSAGE_OPEN}, back, defaults;
  message_open_init(&message.open);
  round_trip(&message, &back);
  char why[256];
  assert_int_equal(parse("{\"type\":\"open\"}", 15, &defaults, why), WIRE_OK);
  assert_string_equal(why, "");
  assert_string_equal(back.open.model, defaults.open.model);
  assert_true(back.open.fps == 60 && defaults.open.fps == 60);
  assert_int_equal(back.open.output, defaults.open.output);
  assert_string_equal(back.open.resume, "");
}

static void an_opened_reads_back_as_written(void **state) {
  (void)state;
  struct message message = an_opened(), back;
  round_trip(&message, &back);
  assert_string_equal(back.opened.session, "s\"1");
  assert_string_equal(back.opened.model, "m");
  assert_int_equal(back.opened.vertices, 6890);
  assert_int_equal(back.opened.latents, 64);
  assert_true(back.opened.fps == 60);
  assert_int_equal(back.opened.next_seq, UINT32_MAX);
  assert_int_equal(back.opened.trained, 1);
  assert_true(back.opened.delay == 1.0 / 60);
}

static void small_messages_read_back_as_written(void **state) {
  (void)state;
  struct message message = {.type = MESSAGE_SHAPE}, back;
  message.shape.betas[9] = -1.5f;
  round_trip(&message, &back);
  assert_memory_equal(back.shape.betas, message.shape.betas, sizeof message.shape.betas);
  message = (struct message){.type = MESSAGE_RESET};
  round_trip(&message, &back);
  message = (struct message){.type = MESSAGE_KEEPALIVE};
  round_trip(&message, &back);
  message = (struct message){.type = MESSAGE_PING};
  round_trip(&message, &back);
  assert_int_equal(back.ping.kind, MESSAGE_ID_NONE);
  message.ping = (struct message_ping){.kind = MESSAGE_ID_NUMBER, .number = INT64_MIN};
  round_trip(&message, &back);
  assert_true(back.ping.kind == MESSAGE_ID_NUMBER && back.ping.number == INT64_MIN);
  message = (struct message){.type = MESSAGE_PONG};
  message.ping = (struct message_ping){.kind = MESSAGE_ID_TEXT, .text = "\"é"};
  round_trip(&message, &back);
  assert_string_equal(back.ping.text, "\"é");
  message = (struct message){.type = MESSAGE_STATS};
  round_trip(&message, &back);
  assert_int_equal(back.stats.has_values, 0);
  message.stats = (struct message_stats){1, 2, 3, 4, 5, 6, 7.5, 8.25};
  round_trip(&message, &back);
  assert_memory_equal(&back.stats, &message.stats, sizeof back.stats);
  message = (struct message){.type = MESSAGE_POSE};
  message.pose.frame.header.seq = 9;
  message.pose.frame.pose[65] = 0.1f;
  message.pose.frame.trans[2] = -3;
  round_trip(&message, &back);
  assert_int_equal(back.pose.frame.header.seq, 9);
  assert_memory_equal(back.pose.frame.pose, message.pose.frame.pose, sizeof back.pose.frame.pose);
  assert_true(back.pose.frame.trans[2] == -3);
}

// Against base64 decoded here, digit by digit.
static size_t base64_read(const char *text, uint8_t *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t size = 0;
  uint32_t bits = 0;
  for (size_t i = 0; text[i] && text[i] != '='; i++) {
    const char *digit = strchr(digits, text[i]);
    assert_non_null(digit);
    bits = bits << 6 | (uint32_t)(digit - digits);
    if (i % 4)
      out[size++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
  }
  assert_int_equal(strlen(text) % 4, 0);
  return size;
}

static void a_result_is_json_whose_data_is_the_payload(void **state) {
  (void)state;
  const struct frame_header header = {
      .kind = FRAME_VERTICES, .encoding = FRAME_I16, .seq = UINT32_MAX, .timestamp = -1.0 / 3e300};
  uint8_t payload[64], back[64];
  for (size_t i = 0; i < sizeof payload; i++)
    payload[i] = (uint8_t)(i * 37 + 200);
  for (size_t size = 0; size <= sizeof payload; size++) {
    char *text = malloc(result_text_size(size));
    size_t length = result_text_write(&header, payload, size, text);
    assert_true(length <= result_text_size(size));
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "type")), "result");
    assert_string_equal(json_string_value(json_object_get(object, "kind")), "vertices");
    assert_string_equal(json_string_value(json_object_get(object, "encoding")), "i16");
    assert_true(json_integer_value(json_object_get(object, "seq")) == UINT32_MAX);
    assert_true(json_real_value(json_object_get(object, "timestamp")) == header.timestamp);
    assert_int_equal(base64_read(json_string_value(json_object_get(object, "data")), back), size);
    assert_memory_equal(back, payload, size);
    json_decref(object);
    free(text);
  }
}

static void a_checkpoint_reads_back_as_written(void **state) {
  (void)state;
  struct message message = a_checkpoint("AAEC_-"), back;
  round_trip(&message, &back);
  assert_int_equal(back.checkpoint.seq, UINT32_MAX);
  assert_string_equal(back.checkpoint.token, "AAEC_-");
  memset(message.checkpoint.token, 'A', MESSAGE_TOKEN_MAX - 1);
  round_trip(&message, &back);
  assert_string_equal(back.checkpoint.token, message.checkpoint.token);
  message = a_checkpoint(""); // a request
  round_trip(&message, &back);
  assert_int_equal(back.checkpoint.seq, 0);
  assert_string_equal(back.checkpoint.token, "");
}

static void an_error_of_any_text_is_valid_json(void **state) {
  (void)state;
  static const struct {
    const char *text, *reads;
  } texts[] = {
      {"plain", "plain"},
      {"\"\\/\b\f\n\r\t\x01\x1f\x7f", "\"\\/????????"},
      {"é舞🙂", "é舞🙂"},
      {"cut \xc3", "cut ?"},
      {"\xff\xfe\x80 \xc0\xaf \xed\xa0\x80 \xf5\x80\x80\x80", "??? ?? ??? ????"},
      {"</script>", "</script>"},
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct message message = an_error(texts[i].text), back;
    round_trip(&message, &back);
    assert_string_equal(back.error.text, texts[i].reads);
    assert_string_equal(back.error.code, "bad_seq");
    assert_int_equal(back.error.has_seq, 1);
    assert_int_equal(back.error.seq, 7);
    message.error.has_seq = 0;
    round_trip(&message, &back);
    assert_int_equal(back.error.has_seq, 0);
  }
}

static void every_truncation_is_refused(void **state) {
  (void)state;
  struct message messages[] = {an_open(), an_opened(), a_checkpoint("AAEC"), an_error("\"é\"")};
  strcpy(messages[0].open.resume, "AAEC");
  for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
    char text[2048], why[256];
    struct message back;
    size_t length = message_write(&messages[i], text, sizeof text);
    assert_int_not_equal(length, 0);
    for (size_t cut = 0; cut < length; cut++) {
      assert_int_equal(parse(text, cut, &back, why), WIRE_BAD_JSON);
      assert_true(why[0]);
    }
  }
}

static void a_buffer_too_small_gets_nothing(void **state) {
  (void)state;
  struct message messages[] = {an_opened(), a_checkpoint("AAEC"), an_error("text")};
  for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
    char text[512];
    size_t length = message_write(&messages[i], text, sizeof text);
    assert_int_not_equal(length, 0);
    for (size_t size = 0; size <= length + 1; size++) {
      char *out = malloc(size ? size : 1);
      assert_non_null(out);
      assert_int_equal(message_write(&messages[i], out, size), size == length + 1 ? length : 0);
      free(out);
    }
  }
}

static void what_json_cannot_hold_is_not_written(void **state) {
  (void)state;
  char text[MESSAGE_SIZE_MAX + 1];
  struct message message = an_open();
  message.open.betas[3] = NAN;
  assert_int_equal(message_write(&message, text, sizeof text), 0);
  message = an_open();
  message.open.fps = INFINITY;
  assert_int_equal(message_write(&message, text, sizeof text), 0);
  message = an_opened();
  strcpy(message.opened.model, "\xff");
  assert_int_equal(message_write(&message, text, sizeof text), 0);
  message = an_open();
  message.open.output = FRAME_POSE;
  assert_int_equal(message_write(&message, text, sizeof text), 0);
  message.type = (enum message_type)99;
  assert_int_equal(message_write(&message, text, sizeof text), 0);
}

static void a_refusal_names_the_member(void **state) {
  (void)state;
  static const struct {
    const char *text, *mentions;
  } refusals[] = {
      {"{\"type\":\"open\",\"fps\":0}", "fps"},
      {"{\"type\":\"open\",\"fps\":60,\"fps\":60}", "fps"},
      {"{\"type\":\"open\",\"betas\":[0,0,\"x\"]}", "betas[2]"},
      {"{\"type\":\"open\",\"up\":\"sideways\"}", "sideways"},
      {"{\"type\":\"open\",\"checkpoint_every\":-1}", "checkpoint_every"},
      {"{\"type\":\"open\",\"resume\":\"\"}", "resume"},
      {"{\"type\":\"opened\",\"session\":\"s\"}", "model"},
      {"{\"type\":\"error\",\"code\":\"c\"}", "message"},
      {"{\"type\":\"checkpoint\",\"seq\":1}", "token"},
      {"{\"type\":\"checkpoint\",\"token\":\"A\"}", "seq"},
      {"{\"type\":\"\\u001b[2J\"}", "?[2J"},
  };
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    struct message message;
    char why[256];
    assert_int_not_equal(parse(refusals[i].text, strlen(refusals[i].text), &message, why), WIRE_OK);
    if (!strstr(why, refusals[i].mentions))
      fail_msg("\"%s\" does not mention \"%s\"", why, refusals[i].mentions);
  }
}

static void the_reason_is_optional_and_fits_its_buffer(void **state) {
  (void)state;
  struct message message;
  const char text[] = "{\"type\":\"open\",\"up\":\"ééééééééé\"}";
  assert_int_equal(message_read(text, strlen(text), &message, NULL, 0), WIRE_BAD_MEMBER);
  for (size_t size = 1; size < 40; size++) {
    char *why = malloc(size), clean[64];
    assert_non_null(why);
    assert_int_equal(message_read(text, strlen(text), &message, why, size), WIRE_BAD_MEMBER);
    assert_true(strlen(why) < size);
    text_copy_line(clean, sizeof clean, why);
    assert_string_equal(clean, why); // cut at a character's boundary
    free(why);
  }
}

static long allocations_left;

static void *scarce_malloc(size_t size) {
  return allocations_left-- > 0 ? malloc(size) : NULL;
}

// Every allocation of Jansson's fails in turn: the answer is a refusal, and nothing leaks (the
// sanitizers watch).
static void each_failing_allocation_is_an_answer(void **state) {
  (void)state;
  struct message message = an_open(), back;
  strcpy(message.open.resume, "AAEC");
  char text[2048], out[2048], why[256];
  size_t length = message_write(&message, text, sizeof text);
  json_set_alloc_funcs(scarce_malloc, free);
  int reads = 0, writes = 0;
  for (long allowed = 0; allowed < 1000 && (!reads || !writes); allowed++) {
    allocations_left = allowed;
    if (!writes && message_write(&message, out, sizeof out) == length)
      writes = 1;
    allocations_left = allowed;
    if (!reads && message_read(text, length, &back, why, sizeof why) == WIRE_OK)
      reads = 1;
  }
  json_set_alloc_funcs(malloc, free);
  assert_true(reads && writes);
  assert_string_equal(out, text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_open_reads_back_as_written),
      cmocka_unit_test(the_defaults_read_back_as_defaults),
      cmocka_unit_test(an_opened_reads_back_as_written),
      cmocka_unit_test(small_messages_read_back_as_written),
      cmocka_unit_test(a_result_is_json_whose_data_is_the_payload),
      cmocka_unit_test(a_checkpoint_reads_back_as_written),
      cmocka_unit_test(an_error_of_any_text_is_valid_json),
      cmocka_unit_test(every_truncation_is_refused),
      cmocka_unit_test(a_buffer_too_small_gets_nothing),
      cmocka_unit_test(what_json_cannot_hold_is_not_written),
      cmocka_unit_test(a_refusal_names_the_member),
      cmocka_unit_test(the_reason_is_optional_and_fits_its_buffer),
      cmocka_unit_test(each_failing_allocation_is_an_answer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
