// SPDX-License-Identifier: Apache-2.0
// io/safetensors: what is read, what is refused and how it is named, and writing.
#include "io/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/half.h"

// A file in memory: a header and `data` bytes of zeros. The block has exactly the file's size, so
// that a sanitizer sees a read past its end.
static uint8_t *make_file(const char *header, size_t data, size_t *size) {
  uint64_t length = strlen(header);
  *size = sizeof length + length + data;
  uint8_t *bytes = calloc(1, *size);
  assert_non_null(bytes);
  memcpy(bytes, &length, sizeof length);
  memcpy(bytes + sizeof length, header, length);
  return bytes;
}

static int open_text(const char *header, size_t data, struct dsnet_error *error) {
  struct safetensors *file = NULL;
  size_t size;
  uint8_t *bytes = make_file(header, data, &size);
  memset(error, 0, sizeof *error);
  int code = safetensors_open_memory(&file, bytes, size, error);
  if (!code)
    safetensors_close(file);
  free(bytes);
  return code;
}

static void every_type_is_read(void **state) {
  (void)state;
  static const char header[] =
      "{\"__metadata__\":{\"k\":\"v\"},"
      "\"half\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]},"
      "\"brain\":{\"dtype\":\"BF16\",\"shape\":[1,1],\"data_offsets\":[6,8]},"
      "\"single\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[8,16]},"
      "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[16,20],\"more\":1},"
      "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[20,20]},"
      "\"whole\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[20,28]},"
      "\"new\":{\"dtype\":\"Q7\",\"shape\":[5],\"data_offsets\":[28,31]}}   ";
  struct dsnet_error error = {0};
  struct safetensors *file;
  size_t size;
  uint8_t *bytes = make_file(header, 31, &size), *data = bytes + size - 31;
  float out[3];
  half_encode((const float[]){1, -0.5f, 65504}, data, 3);
  memcpy(data + 6, "\xc0\xbf", 2); // the upper half of -1.5f
  memcpy(data + 8, (const float[]){7, -8}, 8);
  memcpy(data + 16, (const float[]){9}, 4);
  assert_int_equal(safetensors_open_memory(&file, bytes, size, &error), 0);
  assert_int_equal(safetensors_count(file), 7);
  assert_string_equal(safetensors_metadata(file, "k"), "v");
  assert_null(safetensors_metadata(file, "other"));
  assert_null(safetensors_find(file, "__metadata__"));

  assert_int_equal(safetensors_read_f32(file, "half", 1, (size_t[]){3}, out, &error), 0);
  assert_true(out[0] == 1 && out[1] == -0.5f && out[2] == 65504);
  assert_int_equal(safetensors_read_f32(file, "brain", 2, (size_t[]){1, 1}, out, &error), 0);
  assert_true(out[0] == -1.5f);
  assert_int_equal(safetensors_read_f32(file, "single", 2, (size_t[]){2, 1}, out, &error), 0);
  assert_true(out[0] == 7 && out[1] == -8);
  assert_int_equal(safetensors_read_f32(file, "scalar", 0, NULL, out, &error), 0);
  assert_true(out[0] == 9);
  assert_int_equal(safetensors_read_f32(file, "none", 2, (size_t[]){0, 7}, out, &error), 0);
  assert_int_equal(safetensors_find(file, "new")->type, SAFETENSORS_OTHER);
  assert_int_equal(error.code, DSNET_OK);
  safetensors_close(file);
  free(bytes);
}

static void what_cannot_be_read_is_named(void **state) {
  (void)state;
  static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                               "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[16,20]}}";
  static const struct {
    const char *name;
    size_t dimensions, shape[3];
    int code;
    const char *mentions;
  } cases[] = {
      {"b", 2, {2, 2}, DSNET_EMISSING, "\"b\" is missing"},
      {"a", 1, {4}, DSNET_EMISMATCH, "[2, 2], not [4]"},
      {"a", 2, {2, 3}, DSNET_EMISMATCH, "\"a\""},
      {"a", 3, {2, 2, 1}, DSNET_EMISMATCH, "[2, 2, 1]"},
      {"i", 1, {1}, DSNET_EUNSUPPORTED, "I32"},
      {"a", 2, {2, 2}, DSNET_EVALUE, "value 3"},
  };
  struct safetensors *file;
  size_t size;
  uint8_t *bytes = make_file(header, 20, &size);
  memcpy(bytes + size - 8, (const float[]){INFINITY}, 4);
  assert_int_equal(safetensors_open_memory(&file, bytes, size, NULL), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct dsnet_error error = {0};
    float out[6];
    int code =
        safetensors_read_f32(file, cases[i].name, cases[i].dimensions, cases[i].shape, out, &error);
    if (code != cases[i].code || !strstr(error.text, cases[i].mentions))
      fail_msg("case %zu: code %d, \"%s\"", i, code, error.text);
  }
  safetensors_close(file);
  free(bytes);
}

#define TENSOR(name, type, shape, begin, end)                                                      \
  "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void hostile_headers_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t data;
    int code;
    const char *mentions;
  } cases[] = {
      {"", 0, DSNET_EFORMAT, "begin"},
      {"[]", 0, DSNET_EFORMAT, "begin"},
      {" {}", 0, DSNET_EFORMAT, "begin"},
      {"{", 0, DSNET_EFORMAT, "not JSON"},
      {"{}x", 0, DSNET_EFORMAT, "not JSON"},
      {"{\"a\":1}", 0, DSNET_EFORMAT, "\"a\""},
      {"{\"a\":{}}", 0, DSNET_EFORMAT, "no dtype"},
      {"{\"a\":{\"dtype\":3}}", 0, DSNET_EFORMAT, "no dtype"},
      {"{\"a\":{\"dtype\":\"F32\"}}", 0, DSNET_EFORMAT, "no shape"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, DSNET_EFORMAT, "no data offsets"},
      {"{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("a", "F32", "[1]", "4", "8") "}", 8,
       DSNET_EFORMAT, "duplicate"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\"}}", 0, DSNET_EFORMAT, "duplicate"},
      {"{" TENSOR("a", "F32", "[-1]", "0", "4") "}", 4, DSNET_EFORMAT, "whole numbers"},
      {"{" TENSOR("a", "F32", "[1.0]", "0", "4") "}", 4, DSNET_EFORMAT, "whole numbers"},
      {"{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, DSNET_ELIMIT, "dimensions"},
      {"{" TENSOR("a", "F32", "[4294967296,4294967296]", "0", "0") "}", 0, DSNET_ELIMIT,
       "overflows"},
      {"{" TENSOR("a", "F32", "[4611686018427387904]", "0", "0") "}", 0, DSNET_EFORMAT,
       "do not hold"},
      {"{" TENSOR("a", "F32", "[99999999999999999999]", "0", "4") "}", 4, DSNET_EFORMAT,
       "not JSON"},
      {"{" TENSOR("a", "F32", "[2]", "0", "4") "}", 4, DSNET_EFORMAT, "do not hold"},
      {"{" TENSOR("a", "F16", "[2]", "0", "8") "}", 8, DSNET_EFORMAT, "do not hold"},
      {"{" TENSOR("a", "I8", "[2]", "0", "3") "}", 3, DSNET_EFORMAT, "do not hold"},
      {"{" TENSOR("a", "F32", "[1]", "4", "0") "}", 4, DSNET_EFORMAT, "not within"},
      {"{" TENSOR("a", "F32", "[2]", "0", "8") "}", 4, DSNET_EFORMAT, "not within"},
      {"{" TENSOR("a", "F32", "[1]", "-4", "0") "}", 4, DSNET_EFORMAT, "no data offsets"},
      {"{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("b", "F32", "[1]", "2", "6") "}", 6,
       DSNET_EFORMAT, "\"b\": overlaps"},
      {"{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("b", "F32", "[1]", "0", "4") "}", 4,
       DSNET_EFORMAT, "overlaps"},
      {"{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("b", "F32", "[1]", "6", "10") "}", 10,
       DSNET_EFORMAT, "\"b\": leaves a gap"},
      {"{" TENSOR("a", "F32", "[1]", "2", "6") "}", 6, DSNET_EFORMAT, "gap"},
      {"{" TENSOR("a", "F32", "[1]", "0", "4") "}", 5, DSNET_EFORMAT, "belong to no tensor"},
      {"{\"__metadata__\":[]}", 0, DSNET_EFORMAT, "__metadata__"},
      {"{\"__metadata__\":{\"k\":1}}", 0, DSNET_EFORMAT, "\"k\" is not text"},
      {"{\"\\u0000\":{}}", 0, DSNET_EFORMAT, "not JSON"},
      {"{\"a\xff\":{}}", 0, DSNET_EFORMAT, "not JSON"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct dsnet_error error;
    int code = open_text(cases[i].header, cases[i].data, &error);
    if (code != cases[i].code || !strstr(error.text, cases[i].mentions))
      fail_msg("case %zu: code %d, \"%s\"", i, code, error.text);
  }
}

static void deep_nesting_is_refused(void **state) {
  (void)state;
  enum { DEPTH = 100000 };
  struct dsnet_error error;
  char *header = malloc(2 * DEPTH + 8);
  assert_non_null(header);
  int used = sprintf(header, "{\"a\":");
  memset(header + used, '[', DEPTH);
  memset(header + used + DEPTH, ']', DEPTH);
  strcpy(header + used + 2 * DEPTH, "}");
  assert_int_equal(open_text(header, 0, &error), DSNET_EFORMAT);
  assert_non_null(strstr(error.text, "depth"));
  free(header);
}

static void too_many_tensors_are_refused(void **state) {
  (void)state;
  struct dsnet_error error;
  size_t capacity = (SAFETENSORS_TENSORS_MAX + 1) * 72 + 3, used = 1;
  char *header = malloc(capacity);
  assert_non_null(header);
  header[0] = '{';
  for (int i = 0; i <= SAFETENSORS_TENSORS_MAX; i++)
    used += (size_t)snprintf(header + used, capacity - used,
                             "%s\"%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
                             i ? "," : "", i);
  strcpy(header + used, "}");
  assert_int_equal(open_text(header, 0, &error), DSNET_ELIMIT);
  free(header);
}

static void claimed_header_lengths_are_checked(void **state) {
  (void)state;
  static const struct {
    uint64_t claimed;
    size_t size;
    int code;
  } cases[] = {
      {2, 9, DSNET_EFORMAT},
      {UINT64_MAX, 64, DSNET_EFORMAT},
      {UINT64_MAX - 7, 64, DSNET_EFORMAT},
      {SAFETENSORS_HEADER_MAX + 1, SAFETENSORS_HEADER_MAX + 100, DSNET_ELIMIT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct dsnet_error error = {0};
    struct safetensors *file;
    uint8_t *bytes = calloc(1, cases[i].size);
    assert_non_null(bytes);
    memset(bytes, '{', cases[i].size);
    memcpy(bytes, &cases[i].claimed, 8);
    assert_int_equal(safetensors_open_memory(&file, bytes, cases[i].size, &error), cases[i].code);
    free(bytes);
  }
}

static void every_truncation_is_refused(void **state) {
  (void)state;
  size_t size;
  uint8_t *bytes = make_file("{" TENSOR("a", "F32", "[3]", "0", "12") "}", 12, &size);
  for (size_t cut = 0; cut < size; cut++) {
    struct dsnet_error error = {0};
    struct safetensors *file;
    uint8_t *part = malloc(cut ? cut : 1);
    assert_non_null(part);
    memcpy(part, bytes, cut);
    assert_int_equal(safetensors_open_memory(&file, part, cut, &error), DSNET_EFORMAT);
    free(part);
  }
  free(bytes);
}

// A folder of its own for what a test writes.
static int make_folder(void **state) {
  char *folder = strdup("/tmp/dsnet-safetensors-XXXXXX");
  *state = folder;
  return folder && mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
  unlink("model.safetensors");
  int failed = chdir("/") || rmdir(*state);
  free(*state);
  return failed;
}

static const float written[] = {1, -2, 0.333333343f, 6e-8f, 65504, -0.f};
static const struct safetensors_array arrays[] = {
    {.name = "z \"quoted\"", .dimensions = 2, .shape = {2, 2}, .data = written},
    {.name = "a", .dimensions = 0, .data = written + 4},
    {.name = "m", .dimensions = 1, .shape = {6}, .data = written},
    {.name = "empty", .dimensions = 2, .shape = {3, 0}, .data = written},
};
static const struct safetensors_text texts[] = {{"key", "{\"a\":1}\n"}, {"empty", ""}};

static void what_is_written_is_read_back(void **state) {
  (void)state;
  for (int half = 0; half < 2; half++) {
    struct dsnet_error error = {0};
    struct safetensors *file;
    float out[6];
    assert_int_equal(safetensors_write("model.safetensors",
                                       half ? SAFETENSORS_F16 : SAFETENSORS_F32, arrays, 4, texts,
                                       2, &error),
                     0);
    assert_int_equal(safetensors_open(&file, "model.safetensors", &error), 0);
    assert_int_equal(safetensors_count(file), 4);
    assert_string_equal(safetensors_at(file, 0)->name, "z \"quoted\"");
    assert_string_equal(safetensors_metadata(file, "key"), texts[0].value);
    assert_string_equal(safetensors_metadata(file, "empty"), "");
    for (size_t i = 0; i < 4; i++) {
      const struct safetensors_tensor *tensor = safetensors_find(file, arrays[i].name);
      assert_non_null(tensor);
      assert_int_equal(tensor->type, half ? SAFETENSORS_F16 : SAFETENSORS_F32);
      assert_int_equal(safetensors_read_f32(file, arrays[i].name, arrays[i].dimensions,
                                            arrays[i].shape, out, &error),
                       0);
      for (size_t v = 0; v < tensor->count; v++) {
        float value = arrays[i].data[v];
        assert_true(out[v] == (half ? half_to_float(half_from_float(value)) : value));
      }
    }
    safetensors_close(file);
  }
}

static void the_header_is_padded_to_eight_bytes(void **state) {
  (void)state;
  uint64_t length;
  char text[1024] = {0};
  assert_int_equal(
      safetensors_write("model.safetensors", SAFETENSORS_F32, arrays + 1, 1, NULL, 0, NULL), 0);
  FILE *file = fopen("model.safetensors", "rb");
  assert_non_null(file);
  assert_int_equal(fread(&length, sizeof length, 1, file), 1);
  assert_int_equal(length % 8, 0);
  assert_int_equal(fread(text, 1, length, file), length);
  fclose(file);
  text[strcspn(text, " ")] = 0;
  assert_string_equal(text, "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}");
}

static void values_that_do_not_fit_are_not_written(void **state) {
  (void)state;
  const float large[] = {1, 65520}, infinite[] = {1, INFINITY};
  struct safetensors_array array = {.name = "w", .dimensions = 1, .shape = {2}, .data = large};
  struct dsnet_error error = {0};
  assert_int_equal(
      safetensors_write("model.safetensors", SAFETENSORS_F16, &array, 1, NULL, 0, &error),
      DSNET_EVALUE);
  assert_non_null(strstr(error.text, "\"w\": value 1"));
  array.data = infinite;
  assert_int_equal(
      safetensors_write("model.safetensors", SAFETENSORS_F32, &array, 1, NULL, 0, NULL),
      DSNET_EVALUE);
  assert_int_equal(access("model.safetensors", F_OK), -1);
}

static void files_that_cannot_be_opened_are_named(void **state) {
  (void)state;
  struct dsnet_error error = {0};
  struct safetensors *file;
  assert_int_equal(safetensors_open(&file, "nowhere.safetensors", &error), DSNET_EIO);
  assert_non_null(strstr(error.text, "nowhere.safetensors"));
  memset(&error, 0, sizeof error);
  FILE *out = fopen("model.safetensors", "wb");
  assert_non_null(out);
  fputs("{}", out);
  fclose(out);
  assert_int_equal(safetensors_open(&file, "model.safetensors", &error), DSNET_EFORMAT);
  assert_non_null(strstr(error.text, "model.safetensors: "));
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_is_read),
      cmocka_unit_test(what_cannot_be_read_is_named),
      cmocka_unit_test(hostile_headers_are_refused),
      cmocka_unit_test(deep_nesting_is_refused),
      cmocka_unit_test(too_many_tensors_are_refused),
      cmocka_unit_test(claimed_header_lengths_are_checked),
      cmocka_unit_test(every_truncation_is_refused),
      IN_FOLDER(what_is_written_is_read_back),
      IN_FOLDER(the_header_is_padded_to_eight_bytes),
      IN_FOLDER(values_that_do_not_fit_are_not_written),
      IN_FOLDER(files_that_cannot_be_opened_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
