// SPDX-License-Identifier: Apache-2.0
// Any bytes as an inference request: the first two say how much of the rest is JSON.
#include "infer/request.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct infer_request request;
  char why[INFER_TEXT_SIZE];
  if (size < 2)
    return 0;
  size_t json_size = (size_t)data[0] << 8 | data[1];
  if (infer_request_read(&request, (const char *)data + 2, size - 2, json_size, 16, why) !=
      INFER_READ)
    return 0;
  if (!request.frames || request.frames > 16 || !request.output_count)
    abort();
  for (size_t i = 0; i < request.frames * INFER_POSE; i++)
    if (!isfinite(request.pose[i]))
      abort();
  infer_request_free(&request);
  return 0;
}
