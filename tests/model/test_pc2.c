// SPDX-License-Identifier: Apache-2.0
// io/pc2.c against the format's description, byte by byte.
#include "io/pc2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void the_header_is_32_bytes_of_the_documented_fields(void **state) {
  (void)state;
  static const uint8_t expected[PC2_HEADER_SIZE] = {'P',  'O',  'I',  'N',  'T', 'C',
                                                    'A',  'C',  'H',  'E',  '2', 0, // signature
                                                    1,    0,    0,    0,            // version
                                                    0xea, 0x1a, 0,    0,            // 6890 points
                                                    0,    0,    0,    0,    // start frame 0.0f
                                                    0,    0,    0x80, 0x3f, // sample rate 1.0f
                                                    0x01, 0x02, 0,    0};   // 513 samples
  uint8_t header[PC2_HEADER_SIZE];
  pc2_header_write(6890, 513, header);
  assert_memory_equal(header, expected, sizeof expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_header_is_32_bytes_of_the_documented_fields),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
