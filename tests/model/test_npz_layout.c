// SPDX-License-Identifier: Apache-2.0
// io/npz_layout.c and io/mdd.c: archives put together from their parts, read by the reader of
// npz.c. NumPy reads them in the tests of downloads.
#include "io/npz_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/mdd.h"
#include "io/npz.h"

static void an_archive_of_its_parts_is_read_back(void **state) {
  (void)state;
  static const float large[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
  const double fps = 60;
  struct npz_layout layout = {0};
  uint8_t tail[NPZ_LAYOUT_TAIL_MAX], archive[8192];
  assert_int_equal(npz_layout_add(&layout, "fps", "<f8", 0, NULL, &fps, NULL), 0);
  assert_int_equal(npz_layout_end(&layout, "latent", "<f4", 2, (const size_t[]){3, 4}, NULL), 0);
  assert_int_equal(layout.array_size, sizeof large);
  uint32_t crc = npz_layout_crc_begin(&layout);
  for (size_t i = 0; i < 3; i++)
    crc = npz_layout_crc(crc, large[i], sizeof large[i]);
  npz_layout_tail(&layout, crc, tail);
  memcpy(archive, layout.prefix, layout.prefix_size);
  memcpy(archive + layout.prefix_size, large, sizeof large);
  memcpy(archive + layout.prefix_size + sizeof large, tail, layout.tail_size);
  struct dsnet_error error = {0};
  struct npz *npz;
  if (npz_open_memory(&npz, archive, layout.prefix_size + sizeof large + layout.tail_size, &error))
    fail_msg("%s", error.text);
  float *values;
  double *rate;
  struct npy_info info;
  assert_int_equal(npz_read_f32(npz, "latent", 12, &values, &info, &error), 0);
  assert_memory_equal(values, large, sizeof large);
  assert_int_equal(info.shape[1], 4);
  assert_int_equal(npz_read_f64(npz, "fps", 1, &rate, NULL, &error), 0);
  assert_true(*rate == 60);
  free(values);
  free(rate);
  npz_close(npz);
}

static void sizes_beyond_32_bits_are_kept(void **state) {
  (void)state;
  struct npz_layout layout = {0};
  uint8_t tail[NPZ_LAYOUT_TAIL_MAX];
  const size_t shape[] = {1000000, 6890, 3};
  assert_int_equal(npz_layout_end(&layout, "displacement", "<f4", 3, shape, NULL), 0);
  assert_int_equal(layout.array_size, UINT64_C(82680000000));
  npz_layout_tail(&layout, 0, tail);
  uint64_t size;
  memcpy(&size, tail + 8, sizeof size); // of the data descriptor
  assert_int_equal(size, layout.array_size + 128);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  static const float values[1024];
  struct npz_layout layout = {0};
  assert_int_equal(npz_layout_add(&layout, "much", "<f4", 1, (const size_t[]){1024}, values, NULL),
                   DSNET_ELIMIT);
  assert_int_equal(
      npz_layout_add(&layout, "a_name_that_is_longer_than_names_are", "<f4", 0, NULL, values, NULL),
      DSNET_ELIMIT);
  assert_int_equal(
      npz_layout_add(&layout, "half", "<f4", 1, (const size_t[]){SIZE_MAX / 2}, values, NULL),
      DSNET_EFORMAT);
}

static void mdd_is_big_endian(void **state) {
  (void)state;
  uint8_t header[MDD_HEADER_SIZE], numbers[8];
  static const float values[] = {1, -2};
  static const uint8_t expected[] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0};
  mdd_header_write(0x01020304, 5, header);
  assert_memory_equal(header, ((const uint8_t[]){0, 0, 0, 5, 1, 2, 3, 4}), sizeof header);
  mdd_floats_write(values, 2, numbers);
  assert_memory_equal(numbers, expected, sizeof expected);
  float own[2] = {1, -2};
  mdd_floats_write(own, 2, (uint8_t *)own);
  assert_memory_equal(own, expected, sizeof expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_archive_of_its_parts_is_read_back),
      cmocka_unit_test(sizes_beyond_32_bits_are_kept),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(mdd_is_big_endian),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
