// SPDX-License-Identifier: Apache-2.0
#include "train/adam.h"

#include <math.h>

void adam_init(struct adam *adam, size_t count, float *m, float *v) {
  *adam =
      (struct adam){.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .count = count, .m = m, .v = v};
}

void adam_update(struct adam *adam, double rate, const float *gradients, float *weights) {
  adam->step++;
  double steps = (double)adam->step;
  float correct1 = (float)(1 / (1 - pow(adam->beta1, steps)));
  float correct2 = (float)(1 / (1 - pow(adam->beta2, steps)));
  float beta1 = (float)adam->beta1, rest1 = (float)(1 - adam->beta1);
  float beta2 = (float)adam->beta2, rest2 = (float)(1 - adam->beta2);
  float epsilon = (float)adam->epsilon, keep = (float)(1 - rate * adam->decay);
  for (size_t i = 0; i < adam->count; i++) {
    float g = gradients[i];
    float m = adam->m[i] = beta1 * adam->m[i] + rest1 * g;
    float v = adam->v[i] = beta2 * adam->v[i] + rest2 * g * g;
    weights[i] = keep * weights[i] - (float)rate * (m * correct1) / (sqrtf(v * correct2) + epsilon);
  }
}

double gradient_clip(float *gradients, size_t count, double most) {
  double sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += (double)gradients[i] * gradients[i];
  double norm = sqrt(sum);
  if (norm > most) {
    float scale = (float)(most / norm);
    for (size_t i = 0; i < count; i++)
      gradients[i] *= scale;
  }
  return norm;
}

double schedule_rate(double rate, double floor, uint64_t warmup, uint64_t step, uint64_t steps) {
  if (step < warmup)
    return rate * (double)(step + 1) / (double)warmup;
  if (step >= steps || steps <= warmup)
    return rate * floor;
  double done = (double)(step - warmup) / (double)(steps - warmup);
  return rate * (floor + (1 - floor) * 0.5 * (1 + cos(3.14159265358979323846 * done)));
}
