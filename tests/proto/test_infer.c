// SPDX-License-Identifier: Apache-2.0
// infer/request.c and infer/response.c: what is read, every truncation of a request, and that a
// response reads back as it was written.
#include "infer/request.h"
#include "infer/response.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FRAMES 3

static char why[INFER_TEXT_SIZE];

// Reads a copy of exactly `size` bytes, so that a sanitizer sees a read past them.
static enum infer_read read_copy(struct infer_request *request, const char *body, size_t size,
                                 size_t json_size) {
  char *copy = malloc(size ? size : 1);
  assert_non_null(copy);
  memcpy(copy, body, size);
  enum infer_read outcome = infer_request_read(request, copy, size, json_size, FRAMES, why);
  free(copy);
  return outcome;
}

// A request with binary pose, and the rest as JSON. Returns its size; `*json_size` is that of JSON.
static size_t write_request(char *body, size_t room, size_t *json_size) {
  int length =
      snprintf(body, room,
               "{\"id\":\"x\",\"parameters\":{\"sequence_id\":7,\"sequence_start\":true},"
               "\"inputs\":[{\"name\":\"pose\",\"datatype\":\"FP32\",\"shape\":[%d,66],"
               "\"parameters\":{\"binary_data_size\":%d}},"
               "{\"name\":\"trans\",\"datatype\":\"FP32\",\"shape\":[%d,3],\"data\":[[1,2,3],[4,5,"
               "6],[7,8,9]]},"
               "{\"name\":\"betas\",\"datatype\":\"FP32\",\"shape\":[12],"
               "\"data\":[0.5,1,2,3,4,5,6,7,8,9,10,11]},"
               "{\"name\":\"fps\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[30]}],"
               "\"outputs\":[{\"name\":\"latent\",\"parameters\":{\"binary_data\":true}}]}",
               FRAMES, FRAMES * INFER_POSE * 4, FRAMES);
  *json_size = (size_t)length;
  for (int i = 0; i < FRAMES * INFER_POSE; i++)
    memcpy(body + length + 4 * i, &(float){(float)i / 100}, 4);
  return *json_size + FRAMES * INFER_POSE * sizeof(float);
}

static void a_request_is_read_whole(void **state) {
  (void)state;
  char body[4096];
  size_t json_size, size = write_request(body, sizeof body, &json_size);
  struct infer_request request;
  assert_int_equal(read_copy(&request, body, size, json_size), INFER_READ);
  assert_string_equal(request.id, "x");
  assert_string_equal(request.sequence, "#7");
  assert_true(request.start);
  assert_false(request.end);
  assert_int_equal(request.frames, FRAMES);
  for (int i = 0; i < FRAMES * INFER_POSE; i++)
    assert_true(request.pose[i] == (float)i / 100);
  for (int i = 0; i < FRAMES * 3; i++)
    assert_true(request.trans[i] == (float)(i + 1));
  assert_true(request.has_betas && request.betas[0] == 0.5f && request.betas[9] == 9);
  assert_true(request.fps == 30);
  assert_int_equal(request.output_count, 1);
  assert_int_equal(request.outputs[0].kind, INFER_LATENT);
  assert_true(request.outputs[0].binary);
  infer_request_free(&request);
}

static void no_part_of_a_request_is_one(void **state) {
  (void)state;
  char body[4096];
  size_t json_size, size = write_request(body, sizeof body, &json_size);
  struct infer_request request;
  for (size_t cut = 0; cut < json_size; cut++)
    assert_int_equal(read_copy(&request, body, cut, cut), INFER_MALFORMED);
  for (size_t cut = json_size; cut < size; cut++) {
    assert_int_equal(read_copy(&request, body, cut, json_size), INFER_MALFORMED);
    assert_non_null(strstr(why, "pose"));
  }
  assert_int_equal(read_copy(&request, body, size, size + 1), INFER_MALFORMED);
}

static void names_and_numbers_of_sequences_differ(void **state) {
  (void)state;
  static const struct {
    const char *id, *expected;
  } cases[] = {{"7", "#7"},
               {"\"7\"", "$7"},
               {"0", ""},
               {"\"\"", ""},
               {"-5", "#-5"},
               {"9223372036854775807", "#9223372036854775807"},
               {"9223372036854775808", "#9223372036854775808"},
               {"18446744073709551615 ", "#18446744073709551615"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char body[512];
    float pose[INFER_POSE] = {0};
    int length = snprintf(body, sizeof body,
                          "{\"parameters\":{\"sequence_id\":%s},\"inputs\":[{\"name\":\"pose\","
                          "\"datatype\":\"FP32\",\"shape\":[1,66],\"parameters\":"
                          "{\"binary_data_size\":264}},{\"name\":\"trans\",\"datatype\":\"FP32\","
                          "\"shape\":[1,3],\"data\":[0,0,0]}]}",
                          cases[i].id);
    char whole[1024];
    memcpy(whole, body, (size_t)length);
    memcpy(whole + length, pose, sizeof pose);
    struct infer_request request;
    assert_int_equal(read_copy(&request, whole, (size_t)length + sizeof pose, (size_t)length),
                     INFER_READ);
    assert_string_equal(request.sequence, cases[i].expected);
    assert_int_equal(request.output_count, INFER_OUTPUT_KINDS);
    infer_request_free(&request);
  }
}

static void numbers_over_64_bits_are_refused(void **state) {
  (void)state;
  static const char *const cases[] = {
      "{\"parameters\":{\"sequence_id\":18446744073709551616}}",
      "{\"parameters\":{\"sequence_id\":184467440737095516150}}",
      "{\"parameters\":{\"sequence_id\":-9223372036854775809}}",
      "{\"parameters\":{\"sequence_id\":9223372036854775808.5}}",
      "{\"parameters\":{\"sequence_id\":true}}",
      "{\"other\":9223372036854775808,\"parameters\":{\"sequence_id\":7}}",
      "{\"a\\\"sequence_id\":9223372036854775808}",
      "{\"inputs\":[9223372036854775808],\"a\":\"sequence_id\"",
  };
  struct infer_request request;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(read_copy(&request, cases[i], strlen(cases[i]), strlen(cases[i])),
                     INFER_MALFORMED);
    assert_true(strstr(why, "malformed") || strstr(why, "sequence_id"));
  }
}

static void a_response_reads_back(void **state) {
  (void)state;
  const float latent[] = {1.17549435e-38f, -3.40282347e+38f, 0.1f, -0.0f, 1e-45f, 16777216};
  const float displacement[12] = {-1.17549435e-38f, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const struct infer_output outputs[] = {{INFER_LATENT, false}, {INFER_DISPLACEMENT, true}};
  const struct infer_response response = {.model = "a \"model\"",
                                          .id = "\x01\xC3\xBC",
                                          .frames = 2,
                                          .vertices = 2,
                                          .latents = 3,
                                          .outputs = outputs,
                                          .output_count = 2,
                                          .values = {displacement, latent}};
  size_t size, json_size;
  char *body = infer_response_write(&response, &size, &json_size);
  assert_non_null(body);
  assert_true(size <= infer_response_bound(&response));
  json_t *document = json_loadb(body, json_size, 0, NULL);
  assert_non_null(document);
  assert_string_equal(json_string_value(json_object_get(document, "model_name")), response.model);
  assert_string_equal(json_string_value(json_object_get(document, "id")), response.id);
  const json_t *first = json_array_get(json_object_get(document, "outputs"), 0);
  const json_t *data = json_object_get(first, "data");
  assert_int_equal(json_array_size(data), 6);
  for (size_t i = 0; i < 6; i++)
    assert_true((float)json_number_value(json_array_get(data, i)) == latent[i]);
  assert_int_equal(size - json_size, sizeof displacement);
  assert_memory_equal(body + json_size, displacement, sizeof displacement);
  json_decref(document);
  free(body);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_request_is_read_whole),
      cmocka_unit_test(no_part_of_a_request_is_one),
      cmocka_unit_test(names_and_numbers_of_sequences_differ),
      cmocka_unit_test(numbers_over_64_bits_are_refused),
      cmocka_unit_test(a_response_reads_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
