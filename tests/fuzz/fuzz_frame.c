// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pose frame: what is accepted is finite, within the limits, and survives writing
// and reading again.
#include "wire/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct frame_pose pose, back;
  if (frame_pose_read(data, size, &pose) != WIRE_OK)
    return 0;
  for (size_t i = 0; i < FRAME_POSE_JOINTS * 3; i++)
    if (!(fabsf(pose.pose[i]) <= FRAME_ROTATION_MAX))
      abort();
  uint8_t bytes[FRAME_POSE_SIZE_MAX];
  size_t length = frame_pose_write(&pose, bytes);
  if (frame_pose_read(bytes, length, &back) != WIRE_OK)
    abort();
  if (memcmp(pose.pose, back.pose, sizeof pose.pose) != 0 || pose.header.seq != back.header.seq)
    abort();
  return 0;
}
