// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics.h"

#include <math.h>

void metrics_add(struct metrics *m, const float *predicted, const float *truth, size_t vertices,
                 const uint8_t *regions, int start, float *last) {
  m->frames += 1;
  m->vertices = (double)vertices;
  m->velocity_frames += start ? 0 : 1;
  for (size_t v = 0; v < vertices; v++) {
    double square = 0, energy = 0;
    for (size_t i = 3 * v; i < 3 * v + 3; i++) {
      float e = predicted[i] - truth[i];
      double d = start ? 0 : (double)e - (double)last[i];
      last[i] = e;
      square += (double)e * (double)e;
      energy += (double)truth[i] * (double)truth[i];
      m->velocity_square += d * d;
    }
    double distance = sqrt(square), bin = distance * (1000 / METRICS_BIN_MM);
    m->distance += distance;
    m->square += square;
    m->energy += energy;
    m->region_square[regions[v]] += square;
    m->region_energy[regions[v]] += energy;
    m->bins[bin < METRICS_BINS - 1 ? (size_t)bin : METRICS_BINS - 1] += 1;
  }
}

static double samples(const struct metrics *m) {
  double count = m->frames * m->vertices;
  return count > 0 ? count : 1;
}

double metrics_mean_mm(const struct metrics *m) {
  return 1000 * m->distance / samples(m);
}

double metrics_rmse_mm(const struct metrics *m) {
  return 1000 * sqrt(m->square / samples(m));
}

double metrics_worst_mm(const struct metrics *m) {
  double wanted = 0.05 * samples(m), left = wanted, sum = 0;
  for (size_t b = METRICS_BINS; b-- > 0 && left > 0;) {
    double taken = fmin(m->bins[b], left);
    sum += taken * ((double)b + 0.5) * METRICS_BIN_MM;
    left -= taken;
  }
  return wanted > 0 ? sum / wanted : 0;
}

double metrics_velocity_mms(const struct metrics *m, double fps) {
  double count = m->velocity_frames * m->vertices;
  return count > 0 ? 1000 * fps * sqrt(m->velocity_square / count) : 0;
}

double metrics_explained(const struct metrics *m) {
  return m->energy > 0 ? 1 - m->square / m->energy : 0;
}

double metrics_region_explained(const struct metrics *m, enum body_region region) {
  return m->region_energy[region] > 0 ? 1 - m->region_square[region] / m->region_energy[region] : 0;
}
