// SPDX-License-Identifier: Apache-2.0
// The second-order autoregression: normal equations once, a ridge from a grid by closed-loop error.
#include "eval/predictor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/gemm.h"
#include "train/sampler.h"

// Closed loops may be unstable; whitened latents beyond this are cut, so that they stay finite.
#define LATENT_MAX 30.0f
#define ROWS       512

static const double ridges[] = {1e-5, 1e-3, 1e-1};

struct regression {
  const struct dataset *dataset;
  const struct feature_set *set;
  size_t latent, width, inputs;  // inputs: z_{t-1}, z_{t-2}, u, 1
  float *mean, *scale;           // [width]
  float *weights;                // [Z][inputs]
  float *memory, *row, *latents; // of the sequence being predicted
  float *best;                   // [Z][inputs]
};

static void regression_free(void *context) {
  struct regression *r = context;
  free(r->mean);
  free(r->scale);
  free(r->weights);
  free(r->best);
  free(r->memory);
  free(r->row);
  free(r->latents);
  free(r);
}

// The features of a frame, normalised, and the constant into a row of inputs.
static void fill_inputs(struct regression *r, const float *pose, const float *trans,
                        const float *betas, float *row) {
  float *u = row + 2 * r->latent;
  r->set->step(DYNA_FPS, pose, trans, betas, r->memory, u);
  for (size_t i = 0; i < r->width; i++)
    u[i] = (u[i] - r->mean[i]) * r->scale[i];
  u[r->width] = 1;
}

// One step of the closed loop: row holds the last two latents and is moved on.
static void step(struct regression *r, const float *weights, float *latents) {
  for (size_t k = 0; k < r->latent; k++) {
    float sum = 0;
    for (size_t i = 0; i < r->inputs; i++)
      sum += weights[k * r->inputs + i] * r->row[i];
    latents[k] = fminf(fmaxf(sum, -LATENT_MAX), LATENT_MAX);
  }
  memcpy(r->row + r->latent, r->row, r->latent * sizeof *latents);
  memcpy(r->row, latents, r->latent * sizeof *latents);
}

static void restart(struct regression *r) {
  memset(r->memory, 0, r->set->memory * sizeof *r->memory);
  memset(r->row, 0, r->inputs * sizeof *r->row);
}

static void regression_predict(void *context, const struct predictor_frame *frame,
                               float *displacement) {
  struct regression *r = context;
  if (frame->index == 0)
    restart(r);
  fill_inputs(r, frame->pose, frame->trans, frame->betas, r->row);
  step(r, r->weights, r->latents);
  subspace_expand(&r->dataset->subspace, r->latents, 1, displacement);
}

// gram [inputs][inputs] += X^T X, right [Z][inputs] += Z^T X over one sequence.
static void add_sequence(struct regression *r, const struct sequence *sequence, float *x,
                         float *gram, float *right) {
  restart(r);
  for (size_t first = 2; first < sequence->frames; first += ROWS) {
    size_t rest = sequence->frames - first, count = rest < ROWS ? rest : ROWS;
    for (size_t t = 0; t < count; t++) {
      size_t frame = first + t;
      float *row = x + t * r->inputs;
      memcpy(row, sequence->latents + (frame - 1) * r->latent, r->latent * sizeof *row);
      memcpy(row + r->latent, sequence->latents + (frame - 2) * r->latent, r->latent * sizeof *row);
      fill_inputs(r, sequence->clip->pose + frame * CLIP_POSE_SIZE,
                  sequence->clip->trans + frame * 3, sequence->betas, row);
    }
    gemm_multiply(true, false, r->inputs, r->inputs, count, 1, x, r->inputs, x, r->inputs, 1, gram,
                  r->inputs);
    gemm_multiply(true, false, r->latent, r->inputs, count, 1,
                  sequence->latents + first * r->latent, r->latent, x, r->inputs, 1, right,
                  r->inputs);
  }
}

// weights = right (gram + ridge I)^-1 by Cholesky in double.
static int solve(struct regression *r, const float *gram, const float *right, double ridge,
                 float *weights, struct dsnet_error *error) {
  size_t n = r->inputs;
  double *l = memory_alloc(n * n, sizeof *l), *y = memory_alloc(n, sizeof *y);
  int result = l && y ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  for (size_t i = 0; result == 0 && i < n; i++)
    for (size_t j = 0; j <= i; j++) {
      double sum = (double)gram[i * n + j] + (i == j ? ridge : 0);
      for (size_t k = 0; k < j; k++)
        sum -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = i == j ? sqrt(fmax(sum, 1e-6 * ridge)) : sum / l[j * n + j];
    }
  for (size_t z = 0; result == 0 && z < r->latent; z++) {
    for (size_t i = 0; i < n; i++) {
      y[i] = (double)right[z * n + i];
      for (size_t j = 0; j < i; j++)
        y[i] -= l[i * n + j] * y[j];
      y[i] /= l[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t j = i + 1; j < n; j++)
        y[i] -= l[j * n + i] * y[j];
      y[i] /= l[i * n + i];
      weights[z * n + i] = (float)y[i];
    }
  }
  free(l);
  free(y);
  return result;
}

// Squared error of the closed loop over the validation split, in units of the latents' metric.
static double closed_loop_error(struct regression *r, const float *weights) {
  double error = 0;
  for (size_t s = 0; s < r->dataset->count; s++) {
    const struct sequence *sequence = &r->dataset->sequences[s];
    if (sequence->split != SPLIT_VALIDATION)
      continue;
    restart(r);
    for (size_t t = 0; t < sequence->frames; t++) {
      fill_inputs(r, sequence->clip->pose + t * CLIP_POSE_SIZE, sequence->clip->trans + t * 3,
                  sequence->betas, r->row);
      step(r, weights, r->latents);
      for (size_t k = 0; k < r->latent; k++) {
        double e = (double)r->dataset->subspace.scale[k] *
                   ((double)r->latents[k] - (double)sequence->latents[t * r->latent + k]);
        error += e * e;
      }
    }
  }
  return error;
}

static int fit(struct regression *r, struct dsnet_error *error) {
  float *x = memory_alloc(ROWS * r->inputs, sizeof *x);
  float *gram = memory_alloc(r->inputs * r->inputs, sizeof *gram);
  float *right = memory_alloc(r->latent * r->inputs, sizeof *right);
  int result = x && gram && right ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0)
    result = features_statistics(r->dataset, r->set, 1, r->mean, r->scale, error);
  for (size_t s = 0; result == 0 && s < r->dataset->count; s++)
    if (r->dataset->sequences[s].split == SPLIT_TRAIN)
      add_sequence(r, &r->dataset->sequences[s], x, gram, right);
  double least = INFINITY, frames = (double)dataset_frames(r->dataset, SPLIT_TRAIN);
  for (size_t i = 0; result == 0 && i < sizeof ridges / sizeof ridges[0]; i++) {
    result = solve(r, gram, right, ridges[i] * frames, r->best, error);
    double found = result == 0 ? closed_loop_error(r, r->best) : INFINITY;
    if (found < least) {
      least = found;
      memcpy(r->weights, r->best, r->latent * r->inputs * sizeof *r->weights);
    }
  }
  free(x);
  free(gram);
  free(right);
  return result;
}

int predictor_regression(struct predictor *predictor, const struct dataset *dataset,
                         const struct feature_set *set, struct dsnet_error *error) {
  struct regression *r = calloc(1, sizeof *r);
  if (!r)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  *predictor =
      (struct predictor){.context = r, .predict = regression_predict, .release = regression_free};
  snprintf(predictor->name, sizeof predictor->name, "autoregression, %s features", set->name);
  r->dataset = dataset;
  r->set = set;
  r->latent = dataset->subspace.latent;
  r->width = set->width;
  r->inputs = 2 * r->latent + r->width + 1;
  r->mean = memory_alloc(r->width, sizeof(float));
  r->scale = memory_alloc(r->width, sizeof(float));
  r->weights = memory_alloc(r->latent * r->inputs, sizeof(float));
  r->best = memory_alloc(r->latent * r->inputs, sizeof(float));
  r->memory = memory_alloc(set->memory, sizeof(float));
  r->row = memory_alloc(r->inputs, sizeof(float));
  r->latents = memory_alloc(r->latent, sizeof(float));
  if (!r->mean || !r->scale || !r->weights || !r->best || !r->memory || !r->row || !r->latents)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  return fit(r, error);
}
