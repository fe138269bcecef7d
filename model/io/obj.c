// SPDX-License-Identifier: Apache-2.0
#include "io/obj.h"

#include <inttypes.h>
#include <stdio.h>

#include "io/file.h"

#define LINE_MAX_BYTES 128 // more than any line here has

int obj_write(const char *path, const float *vertices, size_t count, const uint32_t *faces,
              size_t face_count, struct dsnet_error *error) {
  struct file_writer *file;
  int result = file_writer_open(&file, path, error);
  if (result < 0)
    return result;
  char line[LINE_MAX_BYTES];
  for (size_t i = 0; result == 0 && i < count; i++) {
    const float *v = vertices + 3 * i;
    int size =
        snprintf(line, sizeof line, "v %.9g %.9g %.9g\n", (double)v[0], (double)v[1], (double)v[2]);
    result = file_writer_append(file, line, (size_t)size, error);
  }
  for (size_t i = 0; result == 0 && i < face_count; i++) {
    const uint32_t *f = faces + 3 * i;
    int size = snprintf(line, sizeof line, "f %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                        (uint64_t)f[0] + 1, (uint64_t)f[1] + 1, (uint64_t)f[2] + 1);
    result = file_writer_append(file, line, (size_t)size, error);
  }
  if (result == 0)
    return file_writer_commit(file, error);
  file_writer_abort(file);
  return result;
}
