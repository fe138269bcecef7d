// SPDX-License-Identifier: Apache-2.0
#include "train/loss.h"

#include <string.h>

// One stream's view of the window: frame t is at base + t * stride.
struct view {
  const struct loss_config *config;
  struct loss_range range;
  size_t stride;
  const float *predicted, *target;
  float *gradient; // NULL when not wanted
};

static void position_term(const struct view *view, struct loss_sums *sums) {
  const struct loss_config *config = view->config;
  double error = 0, energy = 0, count = (double)(view->range.end - view->range.first);
  for (size_t t = view->range.first; t < view->range.end; t++) {
    const float *p = view->predicted + t * view->stride, *z = view->target + t * view->stride;
    for (size_t k = 0; k < config->latent; k++) {
      double e = (double)p[k] - z[k];
      error += config->weights[k] * e * e;
      energy += config->weights[k] * (double)z[k] * z[k];
    }
  }
  double scale = 1 / (energy + count * config->floor);
  sums->loss += error * scale;
  sums->streams += 1;
  sums->error += error;
  sums->energy += energy;
  sums->frames += count;
  if (!view->gradient)
    return;
  for (size_t t = view->range.first; t < view->range.end; t++) {
    const float *p = view->predicted + t * view->stride, *z = view->target + t * view->stride;
    float *g = view->gradient + t * view->stride;
    for (size_t k = 0; k < config->latent; k++)
      g[k] += (float)(2 * scale * config->weights[k]) * (p[k] - z[k]);
  }
}

static void velocity_term(const struct view *view, struct loss_sums *sums) {
  const struct loss_config *config = view->config;
  size_t stride = view->stride, begin = view->range.first + 1;
  double error = 0, energy = 0, count = (double)(view->range.end - begin);
  for (size_t t = begin; t < view->range.end; t++) {
    const float *p = view->predicted + t * stride, *z = view->target + t * stride;
    for (size_t k = 0; k < config->latent; k++) {
      double dz = (double)z[k] - z[k - stride], de = (double)p[k] - p[k - stride] - dz;
      error += config->weights[k] * de * de;
      energy += config->weights[k] * dz * dz;
    }
  }
  double scale = config->velocity / (energy + count * config->velocity_floor);
  sums->loss += error * scale;
  if (!view->gradient)
    return;
  for (size_t t = begin; t < view->range.end; t++) {
    const float *p = view->predicted + t * stride, *z = view->target + t * stride;
    float *g = view->gradient + t * stride;
    for (size_t k = 0; k < config->latent; k++) {
      float d = (float)(2 * scale * config->weights[k]) *
                ((p[k] - z[k]) - (p[k - stride] - z[k - stride]));
      g[k] += d;
      g[k - stride] -= d;
    }
  }
}

void loss_window(const struct loss_config *config, size_t streams, size_t frames,
                 const struct loss_range *ranges, const float *predicted, const float *target,
                 float *gradient, struct loss_sums *sums) {
  size_t stride = streams * config->latent;
  if (gradient)
    memset(gradient, 0, frames * stride * sizeof *gradient);
  for (size_t b = 0; b < streams; b++) {
    if (ranges[b].first >= ranges[b].end)
      continue;
    size_t offset = b * config->latent;
    struct view view = {config,          ranges[b],
                        stride,          predicted + offset,
                        target + offset, gradient ? gradient + offset : NULL};
    position_term(&view, sums);
    if (config->velocity > 0 && ranges[b].end - ranges[b].first > 1)
      velocity_term(&view, sums);
  }
}
