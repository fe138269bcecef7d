// SPDX-License-Identifier: Apache-2.0
// proto/asyncapi.yaml against the code: every error code and every member of a message that the
// codecs have is in the document.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "wire/frame.h"
#include "wire/message.h"

static char document[64 * 1024];

static int load_document(void **state) {
  (void)state;
  FILE *in = fopen(DSNET_SOURCE_DIR "/proto/asyncapi.yaml", "rb");
  if (!in)
    return -1;
  size_t size = fread(document, 1, sizeof document - 1, in);
  fclose(in);
  document[size] = 0;
  return size == sizeof document - 1 ? -1 : 0;
}

// The part of the document from one heading to the next, or to its end.
static void section(const char *from, const char *to, char out[8192]) {
  const char *start = strstr(document, from), *end = NULL;
  if (start)
    end = to ? strstr(start, to) : start + strlen(start);
  if (!start || !end || end - start >= 8192)
    fail_msg("no section from \"%s\"", from);
  memcpy(out, start, (size_t)(end - start));
  out[end - start] = 0;
}

static void expect(const char *text, const char *wanted) {
  if (!strstr(text, wanted))
    fail_msg("asyncapi.yaml lacks \"%s\"", wanted);
}

static void every_error_code_is_described(void **state) {
  (void)state;
  char codes[8192], line[64];
  section("        code:\n          enum:", "        message:", codes);
  size_t listed = 0;
  for (const char *at = codes; (at = strstr(at, "\n            - ")); at++)
    listed++;
  assert_int_equal(listed, WIRE_INTERNAL); // all but OK, and none that is gone
  for (int error = WIRE_OK + 1; error <= WIRE_INTERNAL; error++) {
    const char *code = wire_error_code((enum wire_error)error);
    snprintf(line, sizeof line, "\n    | %s | ", code);
    expect(document, line);
    snprintf(line, sizeof line, "\n            - %s\n", code);
    expect(codes, line);
  }
}

static void check_members(struct message *message, const char *from, const char *to) {
  char text[2048], schema[8192], line[64];
  assert_int_not_equal(message_write(message, text, sizeof text), 0);
  json_t *object = json_loads(text, 0, NULL), *value;
  const char *key;
  assert_non_null(object);
  section(from, to, schema);
  json_object_foreach(object, key, value) {
    snprintf(line, sizeof line, "\n        %s:\n", key);
    expect(schema, line);
  }
  json_decref(object);
}

static void every_member_is_described(void **state) {
  (void)state;
  // In the document's order; each schema ends where the next begins.
  static const enum message_type order[] = {MESSAGE_OPEN,       MESSAGE_OPENED, MESSAGE_SHAPE,
                                            MESSAGE_POSE,       MESSAGE_PING,   MESSAGE_STATS,
                                            MESSAGE_CHECKPOINT, MESSAGE_ERROR};
  static const char *const schemas[] = {"open",  "opened",     "shape", "pose", "ping",
                                        "stats", "checkpoint", "error", NULL};
  for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
    char from[64], to[64];
    struct message message = {.type = order[i]};
    if (order[i] == MESSAGE_OPEN) {
      message_open_init(&message.open);
      strcpy(message.open.resume, "token");
    }
    if (order[i] == MESSAGE_CHECKPOINT)
      strcpy(message.checkpoint.token, "token");
    if (order[i] == MESSAGE_PING)
      message.ping.kind = MESSAGE_ID_NUMBER;
    if (order[i] == MESSAGE_STATS)
      message.stats.has_values = 1;
    if (order[i] == MESSAGE_ERROR)
      message.error.has_seq = 1;
    snprintf(from, sizeof from, "\n    %s:\n      type: object", schemas[i]);
    if (schemas[i + 1])
      snprintf(to, sizeof to, "\n    %s:\n      type: object", schemas[i + 1]);
    check_members(&message, from, schemas[i + 1] ? to : NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_error_code_is_described),
      cmocka_unit_test(every_member_is_described),
  };
  return cmocka_run_group_tests(tests, load_document, NULL);
}
