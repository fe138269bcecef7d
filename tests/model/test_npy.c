// SPDX-License-Identifier: Apache-2.0
// io/npy: types, orders and headers, on archives that NumPy wrote (data/make_npz.py).
#include "io/npy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const archives[] = {DSNET_TEST_DATA "/npz_types.npz",
                                       DSNET_TEST_DATA "/npz_types_deflated.npz"};
static struct npz *npz;

static int open_archive(void **state) {
  struct dsnet_error error = {0};
  return npz_open(&npz, *state, &error);
}

static int close_archive(void **state) {
  (void)state;
  npz_close(npz);
  return 0;
}

static void every_number_type_and_order_is_converted(void **state) {
  (void)state;
  static const char *const types[] = {"f2", "f4", "f8", "i1", "i2", "i4",
                                      "i8", "u1", "u2", "u4", "u8"};
  static const char *const orders[] = {"little", "big", "little_fortran", "big_fortran"};
  static const double signed_numbers[6] = {0, 1, -2, 3, 100, -128};
  for (size_t t = 0; t < 11; t++)
    for (size_t o = 0; o < (types[t][0] == 'u' ? 2 : 4); o++) {
      char name[64];
      float *f32;
      double *f64;
      int64_t *i64;
      struct npy_info info;
      struct dsnet_error error = {0};
      snprintf(name, sizeof name, "%s_%s", types[t], orders[o]);
      assert_int_equal(npz_read_f32(npz, name, 6, &f32, &info, &error), 0);
      assert_int_equal(npz_read_f64(npz, name, 6, &f64, NULL, &error), 0);
      assert_int_equal(info.kind, types[t][0]);
      assert_int_equal(info.width, types[t][1] - '0');
      assert_true(info.dimensions == 2 && info.shape[0] == 2 && info.shape[1] == 3);
      int code = npz_read_i64(npz, name, 6, &i64, NULL, &error);
      assert_int_equal(code, types[t][0] == 'f' ? DSNET_EUNSUPPORTED : 0);
      for (int i = 0; i < 6; i++) {
        double value = types[t][0] == 'u' ? fabs(signed_numbers[i]) : signed_numbers[i];
        assert_true((double)f32[i] == value && f64[i] == value);
        assert_true(!i64 || (double)i64[i] == value);
      }
      free(f32);
      free(f64);
      free(i64);
    }
}

static void fortran_order_becomes_row_major_in_three_dimensions(void **state) {
  (void)state;
  int64_t *cube;
  struct npy_info info;
  struct dsnet_error error = {0};
  assert_int_equal(npz_read_i64(npz, "cube", 24, &cube, &info, &error), 0);
  assert_true(info.fortran_order && info.dimensions == 3 && info.shape[2] == 4);
  for (int i = 0; i < 24; i++)
    assert_int_equal(cube[i], i);
  free(cube);
}

static void scalars_flags_and_extremes_are_read(void **state) {
  (void)state;
  double *real;
  float *half;
  int64_t *integer;
  struct dsnet_error error = {0};
  assert_int_equal(npz_read_f64(npz, "scalar", 1, &real, NULL, &error), 0);
  assert_true(*real == 120.00004577636719);
  free(real);
  assert_int_equal(npz_read_f64(npz, "int_scalar", 1, &real, NULL, &error), 0);
  assert_true(*real == 60);
  free(real);
  assert_int_equal(npz_read_i64(npz, "flags", 3, &integer, NULL, &error), 0);
  assert_true(integer[0] == 1 && integer[1] == 0 && integer[2] == 1);
  free(integer);
  assert_int_equal(npz_read_i64(npz, "limits", 2, &integer, NULL, &error), 0);
  assert_true(integer[0] == INT64_MIN && integer[1] == INT64_MAX);
  free(integer);
  assert_int_equal(npz_read_f32(npz, "half_edges", 4, &half, NULL, &error), 0);
  assert_true(half[0] == 0x1p-24f && half[2] == 65504 && half[3] == 0 && signbit(half[3]));
  assert_true(fabsf(half[1] - 6.1e-5f) < 6e-8f);
  free(half);
}

static void text_of_every_kind_is_read(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"text", "female"},
                                         {"bytes", "male"},
                                         {"empty_text", ""},
                                         {"big_text", "neutral"},
                                         {"text_array", "m\xc3\xa4\xe5\xa5\xb3\xf0\x9d\x84\x9e"}};
  char text[16];
  struct dsnet_error error = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(npz_read_text(npz, cases[i][0], text, sizeof text, &error), 0);
    assert_string_equal(text, cases[i][1]);
  }
  assert_int_equal(npz_read_text(npz, "text", text, 7, &error), 0);
  assert_int_equal(npz_read_text(npz, "text", text, 6, &error), DSNET_ELIMIT);
  memset(&error, 0, sizeof error);
  assert_int_equal(npz_read_text(npz, "labels", text, sizeof text, &error), DSNET_EFORMAT);
  memset(&error, 0, sizeof error);
  assert_int_equal(npz_read_text(npz, "scalar", text, sizeof text, &error), DSNET_EUNSUPPORTED);
}

static void what_cannot_be_read_is_listed_and_refused_by_name(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int code;
    const char *mentions;
  } cases[] = {
      {"objects", DSNET_EUNSUPPORTED, "objects"}, {"record", DSNET_EUNSUPPORTED, "records"},
      {"complex", DSNET_EUNSUPPORTED, "complex"}, {"date", DSNET_EUNSUPPORTED, "type"},
      {"labels", DSNET_EUNSUPPORTED, "text"},     {"nan", DSNET_EVALUE, "[1,0] is nan"},
      {"huge", DSNET_EVALUE, "[0] is 1e+300"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    float *data;
    struct npy_info info;
    struct dsnet_error error = {0};
    assert_true(npz_has(npz, cases[i].name));
    assert_int_equal(npz_info(npz, cases[i].name, &info, &error), 0);
    int code = npz_read_f32(npz, cases[i].name, 100, &data, NULL, &error);
    if (code != cases[i].code || !strstr(error.text, cases[i].mentions) ||
        !strstr(error.text, cases[i].name))
      fail_msg("%s: %d \"%s\"", cases[i].name, code, error.text);
    assert_null(data);
  }
  int64_t *large;
  struct dsnet_error error = {0};
  assert_int_equal(npz_read_i64(npz, "large", 1, &large, NULL, &error), DSNET_EVALUE);
}

static void all_versions_and_piped_entries_are_read(void **state) {
  (void)state;
  struct npz *piped;
  struct dsnet_error error = {0};
  assert_int_equal(npz_open(&piped, DSNET_TEST_DATA "/npz_piped.npz", &error), 0);
  assert_int_equal(npz_count(piped), 3);
  for (size_t i = 0; i < 3; i++) {
    double *data;
    assert_int_equal(npz_read_f64(piped, npz_name(piped, i), 5, &data, NULL, &error), 0);
    for (int k = 0; k < 5; k++)
      assert_true(data[k] == k);
    free(data);
  }
  npz_close(piped);
}

static void headers_are_parsed_strictly(void **state) {
  (void)state;
#define D "{'descr': "
#define R ", 'fortran_order': False, 'shape': "
  static const struct {
    const char *text;
    bool valid;
  } cases[] = {
      {D "'<f4'" R "(3,), }", true},
      {D "'<f4'" R "()}   \n", true},
      {D "'<f4'" R "(3, 4,)}", true},
      {D "'<f4'" R "(3L, 4L)}", true},
      {"{\"shape\":(3,4),\"fortran_order\":True,\"descr\":\"|u1\"}", true},
      {D "[('a', '<f4'), ('b', '|O', (2,))]" R "(2,), }", true},
      {D "'<f4'" R "(1, 1, 1, 1, 1, 1, 1, 1)}", true},
      {D "'<f4'" R "(1, 1, 1, 1, 1, 1, 1, 1, 1)}", false},
      {D "'<f4'" R "(3)}", false},
      {D "'<f4'" R "(,)}", false},
      {D "'<f4'" R "(3 4)}", false},
      {D "'<f4'" R "(-3,)}", false},
      {D "'<f4'" R "(3.0,)}", false},
      {D "'<f4'" R "[3]}", false},
      {D "'<f4'" R "(3,)} x", false},
      {D "'<f4'" R "(3,)", false},
      {D "'<f4'" R "(3,),, }", false},
      {D "'<f4'" R "(3,) 'x': 1}", false},
      {D "'<f4'" R "(3,), 'shape': (3,)}", false},
      {D "'<f4'" R "(3,), 'more': 1}", false},
      {D "'<f4', 'shape': (3,)}", false},
      {D "'<f4', 'fortran_order': 0, 'shape': (3,)}", false},
      {D "'<\\f4'" R "(3,)}", false},
      {D "'<f4" R "(3,)}", false},
      {D "'f4'" R "(3,)}", false},
      {D "'<f'" R "(3,)}", false},
      {D "'<f4x'" R "(3,)}", false},
      {D "'<x4'" R "(3,)}", false},
      {D "'<U99999999999999999999'" R "(3,)}", false},
      {D "'<U4000000000'" R "(3,)}", false},
      {D "[('a', '<f4'" R "(3,)}", false},
      {D "[('a" R "(3,)}", false},
      {"{}", false},
      {"{", false},
      {"", false},
      {"[1, 2]", false},
      {"import os", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t length = strlen(cases[i].text);
    char *exact = malloc(length + !length); // without a terminator, for the sanitizer
    memcpy(exact, cases[i].text, length);
    struct npy_info info;
    struct dsnet_error error = {0};
    if ((npy_header_parse(exact, length, &info, &error) == 0) != cases[i].valid)
      fail_msg("\"%s\" was %s", cases[i].text, cases[i].valid ? error.text : "taken");
    free(exact);
  }
}

static void a_written_header_is_parsed_back(void **state) {
  (void)state;
  const size_t shape[NPY_DIMENSIONS_MAX] = {SIZE_MAX, 0, SIZE_MAX, SIZE_MAX,
                                            SIZE_MAX, 1, SIZE_MAX, SIZE_MAX};
  for (size_t dimensions = 0; dimensions <= NPY_DIMENSIONS_MAX; dimensions++) {
    char text[NPY_HEADER_TEXT_MAX];
    struct npy_info info;
    struct dsnet_error error = {0};
    size_t length = npy_header_format("<U268435", dimensions, shape, text);
    assert_int_equal(length % 64, 0);
    assert_int_equal(text[length - 1], '\n');
    int code = npy_header_parse(text + 10, length - 10, &info, &error);
    assert_int_equal(code, dimensions == 1 ? DSNET_EFORMAT : 0); // SIZE_MAX strings
    if (code == 0)
      assert_true(info.width == 4 * 268435 && info.dimensions == dimensions);
  }
}

int main(void) {
#define ON(name, archive)                                                                          \
  { #name, name, open_archive, close_archive, (void *)(uintptr_t)archives[archive] }
#define BOTH(name) ON(name, 0), ON(name, 1)
  const struct CMUnitTest tests[] = {
      BOTH(every_number_type_and_order_is_converted),
      BOTH(fortran_order_becomes_row_major_in_three_dimensions),
      BOTH(scalars_flags_and_extremes_are_read),
      BOTH(text_of_every_kind_is_read),
      BOTH(what_cannot_be_read_is_listed_and_refused_by_name),
      cmocka_unit_test(all_versions_and_piped_entries_are_read),
      cmocka_unit_test(headers_are_parsed_strictly),
      cmocka_unit_test(a_written_header_is_parsed_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
