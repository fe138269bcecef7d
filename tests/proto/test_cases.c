// SPDX-License-Identifier: Apache-2.0
// Runs every case under tests/proto/cases through the codecs and compares all decoded fields. The
// cases are written by make_cases.py, which shares no code with the codecs.
#include "wire/frame.h"
#include "wire/message.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#define CASES DSNET_SOURCE_DIR "/tests/proto/cases"

static char current[256]; // the case being run, for messages

// A malloc'd copy of exactly the file's bytes, so that a sanitizer sees a read past them; NULL when
// there is no such file.
static uint8_t *load(const char *file, size_t *size) {
  char path[1024];
  snprintf(path, sizeof path, CASES "/%s/%s", current, file);
  FILE *in = fopen(path, "rb");
  if (!in)
    return NULL;
  static uint8_t buffer[1 << 17];
  *size = fread(buffer, 1, sizeof buffer, in);
  fclose(in);
  uint8_t *bytes = malloc(*size ? *size : 1);
  assert_non_null(bytes);
  return memcpy(bytes, buffer, *size);
}

static json_t *field(json_t *expect, const char *key) {
  json_t *value = json_object_get(expect, key);
  if (!value)
    fail_msg("%s: expect.json has no \"%s\"", current, key);
  return value;
}

static void check_number(json_t *expect, const char *key, double actual) {
  double wanted = json_number_value(field(expect, key));
  if (actual != wanted)
    fail_msg("%s: %s is %.17g, not %.17g", current, key, actual, wanted);
}

static void check_text(json_t *expect, const char *key, const char *actual) {
  const char *wanted = json_string_value(field(expect, key));
  if (!wanted || strcmp(actual, wanted) != 0)
    fail_msg("%s: %s is \"%s\", not \"%s\"", current, key, actual, wanted ? wanted : "(none)");
}

static void check_floats(json_t *expect, const char *key, const float *actual, size_t count) {
  json_t *array = field(expect, key);
  assert_int_equal(json_array_size(array), count);
  for (size_t i = 0; i < count; i++) {
    float wanted = (float)json_number_value(json_array_get(array, i));
    if (memcmp(&actual[i], &wanted, sizeof wanted) != 0)
      fail_msg("%s: %s[%zu] is %.9g, not %.9g", current, key, i, actual[i], wanted);
  }
}

// True when the case goes on to its fields.
static bool check_error(json_t *expect, enum wire_error error, const char *why) {
  check_text(expect, "error", wire_error_code(error));
  if (error != WIRE_OK && why && !why[0])
    fail_msg("%s: the refusal has no text", current);
  return error == WIRE_OK;
}

static void run_frame(json_t *expect, const uint8_t *bytes, size_t size) {
  struct frame_pose pose;
  if (!check_error(expect, frame_pose_read(bytes, size, &pose), NULL))
    return;
  check_number(expect, "kind", pose.header.kind);
  check_number(expect, "encoding", pose.header.encoding);
  check_number(expect, "count", pose.header.count);
  check_number(expect, "seq", pose.header.seq);
  check_number(expect, "timestamp", pose.header.timestamp);
  check_floats(expect, "pose", pose.pose, FRAME_POSE_JOINTS * 3);
  check_floats(expect, "trans", pose.trans, 3);
}

static void check_open(json_t *expect, const struct message_open *open) {
  static const char *const outputs[] = {"", "", "displacement", "vertices", "latent"};
  static const char *const encodings[] = {"f32", "f16", "i16"};
  check_text(expect, "type", "open");
  check_text(expect, "model", open->model);
  check_floats(expect, "betas", open->betas, MESSAGE_BETAS_KEPT);
  check_number(expect, "fps", open->fps);
  check_text(expect, "up", open->up == MESSAGE_UP_Y ? "y" : "z");
  check_text(expect, "output", outputs[open->output]);
  check_text(expect, "encoding", encodings[open->encoding]);
  check_text(expect, "delivery", open->delivery == MESSAGE_DELIVERY_LATEST ? "latest" : "all");
  check_text(expect, "format", open->format == MESSAGE_FORMAT_JSON ? "json" : "binary");
  check_text(expect, "glitch", open->glitch == MESSAGE_GLITCH_HOLD ? "hold" : "pass");
  check_number(expect, "keepalive", open->keepalive);
  check_number(expect, "checkpoint_every", open->checkpoint_every);
  check_text(expect, "resume", open->resume);
}

static void check_opened(json_t *expect, const struct message_opened *opened) {
  check_text(expect, "type", "opened");
  check_text(expect, "session", opened->session);
  check_text(expect, "model", opened->model);
  check_number(expect, "vertices", opened->vertices);
  check_number(expect, "latents", opened->latents);
  check_number(expect, "fps", opened->fps);
  check_number(expect, "next_seq", opened->next_seq);
  assert_int_equal(opened->trained, json_is_true(field(expect, "trained")));
  check_number(expect, "delay", opened->delay);
}

static void check_pose(json_t *expect, const struct frame_pose *pose) {
  check_text(expect, "type", "pose");
  check_number(expect, "seq", pose->header.seq);
  check_number(expect, "timestamp", pose->header.timestamp);
  check_floats(expect, "pose", pose->pose, FRAME_POSE_JOINTS * 3);
  check_floats(expect, "trans", pose->trans, 3);
}

static void check_ping(json_t *expect, const char *type, const struct message_ping *ping) {
  check_text(expect, "type", type);
  json_t *id = json_object_get(expect, "id");
  assert_int_equal(ping->kind, !id                   ? MESSAGE_ID_NONE
                               : json_is_integer(id) ? MESSAGE_ID_NUMBER
                                                     : MESSAGE_ID_TEXT);
  if (ping->kind == MESSAGE_ID_NUMBER)
    assert_int_equal(ping->number, json_integer_value(id));
  if (ping->kind == MESSAGE_ID_TEXT)
    check_text(expect, "id", ping->text);
}

static void check_stats(json_t *expect, const struct message_stats *stats) {
  check_text(expect, "type", "stats");
  assert_int_equal(stats->has_values, json_object_get(expect, "frames_in") != NULL);
  if (!stats->has_values)
    return;
  check_number(expect, "frames_in", (double)stats->frames_in);
  check_number(expect, "frames_out", (double)stats->frames_out);
  check_number(expect, "skipped", (double)stats->skipped);
  check_number(expect, "held", (double)stats->held);
  check_number(expect, "gaps", (double)stats->gaps);
  check_number(expect, "latency_p50_ms", stats->latency_p50_ms);
  check_number(expect, "latency_p99_ms", stats->latency_p99_ms);
}

static void check_checkpoint(json_t *expect, const struct message_checkpoint *checkpoint) {
  check_text(expect, "type", "checkpoint");
  check_number(expect, "seq", checkpoint->seq);
  check_text(expect, "token", checkpoint->token);
}

static void check_error_message(json_t *expect, const struct message_error *error) {
  check_text(expect, "type", "error");
  check_text(expect, "code", error->code);
  check_text(expect, "message", error->text);
  assert_int_equal(error->has_seq, json_object_get(expect, "seq") != NULL);
  if (error->has_seq)
    check_number(expect, "seq", error->seq);
}

static void run_message(json_t *expect, const uint8_t *bytes, size_t size) {
  struct message message;
  char why[256];
  enum wire_error error = message_read((const char *)bytes, size, &message, why, sizeof why);
  if (!check_error(expect, error, why))
    return;
  switch (message.type) {
  case MESSAGE_OPEN:
    check_open(expect, &message.open);
    break;
  case MESSAGE_OPENED:
    check_opened(expect, &message.opened);
    break;
  case MESSAGE_SHAPE:
    check_text(expect, "type", "shape");
    check_floats(expect, "betas", message.shape.betas, MESSAGE_BETAS_KEPT);
    break;
  case MESSAGE_RESET:
    check_text(expect, "type", "reset");
    break;
  case MESSAGE_KEEPALIVE:
    check_text(expect, "type", "keepalive");
    break;
  case MESSAGE_POSE:
    check_pose(expect, &message.pose.frame);
    break;
  case MESSAGE_PING:
    check_ping(expect, "ping", &message.ping);
    break;
  case MESSAGE_PONG:
    check_ping(expect, "pong", &message.ping);
    break;
  case MESSAGE_STATS:
    check_stats(expect, &message.stats);
    break;
  case MESSAGE_CHECKPOINT:
    check_checkpoint(expect, &message.checkpoint);
    break;
  case MESSAGE_ERROR:
    check_error_message(expect, &message.error);
    break;
  }
}

static void run_case(void) {
  size_t size;
  uint8_t *bytes = load("expect.json", &size);
  json_t *expect = bytes ? json_loadb((const char *)bytes, size, 0, NULL) : NULL;
  free(bytes);
  if (!expect)
    fail_msg("%s: has no valid expect.json", current);
  if ((bytes = load("input.bin", &size)))
    run_frame(expect, bytes, size);
  else if ((bytes = load("input.json", &size)))
    run_message(expect, bytes, size);
  else
    fail_msg("%s: has no input.bin or input.json", current);
  free(bytes);
  json_decref(expect);
}

static void every_case_decodes_as_expected(void **state) {
  (void)state;
  DIR *folder = opendir(CASES);
  assert_non_null(folder);
  size_t count = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (entry->d_name[0] == '.')
      continue;
    snprintf(current, sizeof current, "%s", entry->d_name);
    run_case();
    count++;
  }
  closedir(folder);
  assert_true(count >= 100); // an empty or half-copied folder is no success
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_decodes_as_expected)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
