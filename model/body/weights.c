// SPDX-License-Identifier: Apache-2.0
#include "body/weights.h"

#include <math.h>

// Rounding four weights to float moves their sum by less than this.
#define SUM_ROUNDING 1e-6

static int heaviest(const float row[BODY_JOINTS], uint32_t taken) {
  int best = -1;
  for (int j = 0; j < BODY_JOINTS; j++)
    if (!(taken >> j & 1) && row[j] > 0 && (best < 0 || row[j] > row[best]))
      best = j;
  return best;
}

void weights_select(const float row[BODY_JOINTS], uint8_t joints[BODY_WEIGHTS_MAX],
                    float values[BODY_WEIGHTS_MAX]) {
  uint32_t taken = 0;
  double sum = 0;
  for (int k = 0; k < BODY_WEIGHTS_MAX; k++) {
    int joint = heaviest(row, taken);
    joints[k] = joint >= 0 ? (uint8_t)joint : joints[0];
    values[k] = joint >= 0 ? row[joint] : 0;
    if (joint >= 0)
      taken |= 1u << joint;
    sum += values[k];
  }
  if (heaviest(row, taken) < 0 && fabs(sum - 1) <= SUM_ROUNDING)
    return;
  for (int k = 0; k < BODY_WEIGHTS_MAX; k++)
    values[k] = (float)(values[k] / sum);
}
