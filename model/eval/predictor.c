// SPDX-License-Identifier: Apache-2.0
// The predictors that fit nothing: zero, the subspace's floor, and networks.
#include "eval/predictor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/timing.h"

struct zero {
  size_t values;
};

static void zero_predict(void *context, const struct predictor_frame *frame, float *displacement) {
  const struct zero *zero = context;
  (void)frame;
  memset(displacement, 0, zero->values * sizeof *displacement);
}

void predictor_zero(struct predictor *predictor, size_t vertices) {
  struct zero *zero = malloc(sizeof *zero);
  if (zero)
    zero->values = 3 * vertices;
  *predictor =
      (struct predictor){.name = "zero", .context = zero, .predict = zero_predict, .release = free};
}

// Cholesky factor of the decoder's Gram matrix, and room for a frame's coefficients.
struct least_squares {
  const struct net *net;
  size_t latent, values;
  double *factor; // [Z][Z] lower
  double *right;  // [Z]
  float *latents; // [Z]
};

static void least_squares_free(void *context) {
  struct least_squares *ls = context;
  free(ls->factor);
  free(ls->right);
  free(ls->latents);
  free(ls);
}

// basis^T (truth - mean)
static void project(const struct least_squares *ls, const float *truth) {
  const float *basis = net_decoder_basis(ls->net), *mean = net_decoder_mean(ls->net);
  memset(ls->right, 0, ls->latent * sizeof *ls->right);
  for (size_t i = 0; i < ls->values; i++) {
    double d = (double)truth[i] - (double)mean[i];
    for (size_t k = 0; k < ls->latent; k++)
      ls->right[k] += d * (double)basis[i * ls->latent + k];
  }
}

static void floor_predict(void *context, const struct predictor_frame *frame, float *displacement) {
  struct least_squares *ls = context;
  size_t n = ls->latent;
  project(ls, frame->truth);
  for (size_t i = 0; i < n; i++) { // L y = b
    for (size_t j = 0; j < i; j++)
      ls->right[i] -= ls->factor[i * n + j] * ls->right[j];
    ls->right[i] /= ls->factor[i * n + i];
  }
  for (size_t i = n; i-- > 0;) { // L^T z = y
    for (size_t j = i + 1; j < n; j++)
      ls->right[i] -= ls->factor[j * n + i] * ls->right[j];
    ls->right[i] /= ls->factor[i * n + i];
    ls->latents[i] = (float)ls->right[i];
  }
  net_decode(ls->net, ls->latents, displacement);
}

// factor = chol(basis^T basis + tiny I); the tiny part keeps a direction of zeros harmless.
static void factorise(struct least_squares *ls) {
  const float *basis = net_decoder_basis(ls->net);
  size_t n = ls->latent;
  double trace = 0;
  for (size_t r = 0; r < ls->values; r++)
    for (size_t i = 0; i < n; i++)
      for (size_t j = 0; j <= i; j++)
        ls->factor[i * n + j] += (double)basis[r * n + i] * (double)basis[r * n + j];
  for (size_t i = 0; i < n; i++)
    trace += ls->factor[i * n + i];
  for (size_t i = 0; i < n; i++) {
    ls->factor[i * n + i] += 1e-12 * (trace + 1e-30);
    for (size_t j = 0; j <= i; j++) {
      double sum = ls->factor[i * n + j];
      for (size_t k = 0; k < j; k++)
        sum -= ls->factor[i * n + k] * ls->factor[j * n + k];
      ls->factor[i * n + j] = i == j ? sqrt(sum > 0 ? sum : 1e-30) : sum / ls->factor[j * n + j];
    }
  }
}

int predictor_floor(struct predictor *predictor, const struct net *net, struct dsnet_error *error) {
  struct least_squares *ls = calloc(1, sizeof *ls);
  if (!ls)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  *predictor = (struct predictor){.name = "subspace alone (floor)",
                                  .context = ls,
                                  .predict = floor_predict,
                                  .release = least_squares_free};
  ls->net = net;
  ls->latent = net_config(net)->latent;
  ls->values = 3 * net_config(net)->vertices;
  ls->factor = memory_alloc(ls->latent * ls->latent, sizeof *ls->factor);
  ls->right = memory_alloc(ls->latent, sizeof *ls->right);
  ls->latents = memory_alloc(ls->latent, sizeof *ls->latents);
  if (!ls->factor || !ls->right || !ls->latents)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  factorise(ls);
  return 0;
}

struct session {
  const struct net *net;
  struct net_scratch *scratch;
  float *state;
};

static void session_predict(void *context, const struct predictor_frame *frame,
                            float *displacement) {
  struct session *session = context;
  if (frame->index == 0)
    memset(session->state, 0, net_state_size(session->net) * sizeof(float));
  const struct net_item item = {.state = session->state,
                                .pose = frame->pose,
                                .trans = frame->trans,
                                .betas = frame->betas,
                                .displacement = displacement};
  net_step(session->net, session->scratch, &item, 1);
}

static void session_free(void *context) {
  struct session *session = context;
  net_scratch_free(session->scratch);
  free(session->state);
  free(session);
}

int predictor_net(struct predictor *predictor, const struct net *net, const char *name,
                  struct dsnet_error *error) {
  struct session *session = calloc(1, sizeof *session);
  if (!session)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  *predictor =
      (struct predictor){.context = session, .predict = session_predict, .release = session_free};
  snprintf(predictor->name, sizeof predictor->name, "network: %s", name);
  session->net = net;
  session->state = memory_alloc(net_state_size(net), sizeof *session->state);
  if (!session->state)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = net_scratch_new(&session->scratch, net, 1, error);
  return result < 0 ? result : timing_net_batch(&predictor->batch_us, net, error);
}
