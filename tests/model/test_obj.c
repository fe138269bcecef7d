// SPDX-License-Identifier: Apache-2.0
// io/obj.c: what is written reads back to the bit, and a failure leaves the file as it was.
#include "io/obj.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const float vertices[4][3] = {
    {0.1f, -1e-30f, 3}, {1.0f / 3, 1e30f, -0.0f}, {16777216, 1.1754944e-38f, 2}, {1, 2, 3}};
static const uint32_t faces[2][3] = {{0, 1, 2}, {3, 2, 1}};

static void what_is_written_reads_back_to_the_bit(void **state) {
  (void)state;
  char path[] = "/tmp/dsnet_obj_XXXXXX";
  close(mkstemp(path));
  assert_int_equal(obj_write(path, vertices[0], 4, faces[0], 2, NULL), 0);
  FILE *file = fopen(path, "r");
  char text[8][32];
  for (int i = 0; i < 4; i++) {
    float read[3];
    assert_int_equal(fscanf(file, " v %31s %31s %31s", text[0], text[1], text[2]), 3);
    for (int k = 0; k < 3; k++)
      read[k] = strtof(text[k], NULL);
    assert_memory_equal(read, vertices[i], sizeof read);
  }
  for (int i = 0; i < 2; i++) {
    uint32_t read[3];
    assert_int_equal(
        fscanf(file, " f %" SCNu32 " %" SCNu32 " %" SCNu32, &read[0], &read[1], &read[2]), 3);
    for (int k = 0; k < 3; k++)
      assert_int_equal(read[k], faces[i][k] + 1);
  }
  assert_int_equal(fscanf(file, "%31s", text[0]), EOF);
  fclose(file);
  unlink(path);
}

static void a_folder_that_is_not_there_is_an_error_by_name(void **state) {
  (void)state;
  struct dsnet_error error = {0};
  assert_int_equal(obj_write("/tmp/dsnet_no_folder/a.obj", vertices[0], 4, faces[0], 2, &error),
                   DSNET_EIO);
  assert_non_null(strstr(error.text, "dsnet_no_folder"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_reads_back_to_the_bit),
      cmocka_unit_test(a_folder_that_is_not_there_is_an_error_by_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
