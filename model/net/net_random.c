// SPDX-License-Identifier: Apache-2.0
// Networks that have learned nothing: for trying out the machinery and for measuring speed.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "net/internal.h"

// A random network's displacements have this standard deviation (metres) at most, each coordinate.
#define DISPLACEMENT_SPREAD 6e-4

static void fill_uniform(struct random_state *random, struct net_tensor *tensor, double limit) {
  for (size_t i = 0; i < tensor->count; i++)
    tensor->data[i] = (float)(limit * (2 * random_uniform(random) - 1));
}

// PyTorch's defaults for nn.LSTM and nn.Linear are both uniform within 1/sqrt(H). A latent then has
// a variance of H var(w) = 1/3 at most, as |h| <= 1; the decoder's limit follows from the spread
// wanted of a sum of Z such latents by weights of variance limit^2/3.
static void fill_weights(struct net *net, struct random_state *random) {
  const struct net_config *config = &net->config;
  for (size_t i = 0; i < net->tensor_count; i++) {
    struct net_tensor *tensor = &net->tensors[i];
    if (!strcmp(tensor->name, "decoder.weight"))
      fill_uniform(random, tensor, 3 * DISPLACEMENT_SPREAD / sqrt((double)config->latent));
    else if (!strncmp(tensor->name, "lstm.", 5) || !strncmp(tensor->name, "linear.", 7) ||
             !strcmp(tensor->name, "skip.weight"))
      fill_uniform(random, tensor, 1 / sqrt((double)config->hidden));
  }
}

// Sums of squares of the features of one synthetic motion: every coordinate of pose and translation
// a sine of its own, of 0.5 to 2.5 Hz. The first frames, where differences are not full yet, are
// left out.
static void add_motion(const struct net_config *config, struct random_state *random, float *memory,
                       double *squares) {
  enum { FRAMES = 32, SKIPPED = 4, WAVES = NET_POSE_SIZE + 3 };
  float x[FEATURES_WIDTH_MAX], values[WAVES], betas[FEATURES_BETAS];
  double rate[WAVES], phase[WAVES];
  for (int i = 0; i < WAVES; i++) {
    rate[i] = 0.5 + 2 * random_uniform(random);
    phase[i] = random_uniform(random);
  }
  for (int i = 0; i < FEATURES_BETAS; i++)
    betas[i] = (float)random_normal(random);
  memset(memory, 0, config->features->memory * sizeof *memory);
  for (int frame = 0; frame < FRAMES; frame++) {
    for (int i = 0; i < WAVES; i++)
      values[i] = (float)(0.4 * sin(2 * M_PI * (rate[i] * frame / config->rate + phase[i])));
    config->features->step(config->rate, values, values + NET_POSE_SIZE, betas, memory, x);
    for (size_t i = 0; i < config->features->width && frame >= SKIPPED; i++)
      squares[i] += (double)x[i] * x[i] / (FRAMES - SKIPPED);
  }
}

// Features come in radians as well as in hundreds of rad/s^2. Without normalisation the gates would
// be saturated by the latter alone and flip from frame to frame. Powers of two, so that the last
// bit of a machine's sine does not show in the file.
static int fill_scale(struct net *net, struct random_state *random, struct dsnet_error *error) {
  enum { MOTIONS = 64 };
  double squares[FEATURES_WIDTH_MAX] = {0};
  float *scale = net_tensor_find(net, "features.scale")->data;
  float *memory = memory_alloc(net->config.features->memory, sizeof *memory);
  if (!memory)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  for (int motion = 0; motion < MOTIONS; motion++)
    add_motion(&net->config, random, memory, squares);
  free(memory);
  for (size_t i = 0; i < net->config.features->width; i++) {
    double spread = sqrt(squares[i] / MOTIONS);
    scale[i] = spread > 0 ? (float)exp2(-round(log2(spread))) : 1;
  }
  return 0;
}

static char *describe(uint64_t seed) {
  char *text;
  int length = asprintf(&text, "{\"weights\":\"random\",\"seed\":\"%" PRIu64 "\"}", seed);
  return length < 0 ? NULL : text;
}

int net_new_random_at(struct net **net, const struct net_config *config, uint64_t seed,
                      enum simd_level level, struct dsnet_error *error) {
  struct net *made = NULL;
  struct random_state random;
  int code = net_allocate(&made, config, error);
  if (code)
    return code;
  made->config.trained = false;
  made->provenance = describe(seed);
  if (!made->provenance)
    code = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  random_init(&random, seed);
  fill_weights(made, &random);
  if (!code)
    code = fill_scale(made, &random, error);
  if (!code)
    code = net_finish(made, level, error);
  if (code) {
    net_free(made);
    return code;
  }
  *net = made;
  return 0;
}

int net_new_random(struct net **net, const struct net_config *config, uint64_t seed,
                   struct dsnet_error *error) {
  return net_new_random_at(net, config, seed, simd_best(), error);
}
