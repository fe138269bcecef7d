// SPDX-License-Identifier: Apache-2.0
// The network's inside, shared by the files of this folder (and by tests and benchmarks that choose
// a kernel). A network is built in three moves: net_allocate lays out all tensors for a
// configuration, someone fills them, net_finish checks and packs them. From then on it is const.
#ifndef DSNET_NET_INTERNAL_H
#define DSNET_NET_INTERNAL_H

#include "net/net.h"
#include "nn/gemm.h"
#include "nn/lstm.h"

// Features are finite and within this for every input the protocol lets through: a jump of a
// kilometre in one frame is an acceleration of 4e6 m/s^2.
#define NET_FEATURE_MAX 1e9

#define NET_TENSORS_MAX (4 * NET_LAYERS_MAX + 7)

// One tensor of the model file.
struct net_tensor {
  char name[32];
  size_t dimensions, shape[2], count;
  float *data;
  bool optional; // the features' mean and scale
};

struct net {
  struct net_config config;
  char *provenance; // JSON text, owned
  float *block;     // all tensors, as in the file
  float *packed;    // all weights again, as the kernels want them
  struct net_tensor tensors[NET_TENSORS_MAX];
  size_t tensor_count;
  const float *mean, *scale; // of the features
  struct lstm_layer layers[NET_LAYERS_MAX];
  struct gemm_weights linear; // of h of the top layer and, with a direct path, the features
  struct gemm_weights decoder;
};

// A network of these sizes with all tensors zero but scale, which is 1. DSNET_ELIMIT or
// DSNET_EVALUE when a size is out of bounds.
int net_allocate(struct net **net, const struct net_config *config, struct dsnet_error *error);

// The tensor of that name; every name of the layout exists.
struct net_tensor *net_tensor_find(struct net *net, const char *name);

// Packs the tensors for kernels of `level`. DSNET_EVALUE when the weights are so large that a step
// could overflow.
int net_finish(struct net *net, enum simd_level level, struct dsnet_error *error);

// net_new_random for kernels of `level`.
int net_new_random_at(struct net **net, const struct net_config *config, uint64_t seed,
                      enum simd_level level, struct dsnet_error *error);
int net_load_memory_at(struct net **net, const void *bytes, size_t size, enum simd_level level,
                       struct dsnet_error *error);

// The parts of net_step in their order, for measuring where its time goes: features into the
// scratch, one LSTM layer, latents, and what the items asked for.
void net_step_features(const struct net *net, struct net_scratch *scratch,
                       const struct net_item *items, size_t count);
void net_step_layer(const struct net *net, struct net_scratch *scratch,
                    const struct net_item *items, size_t count, size_t layer);
void net_step_latents(const struct net *net, struct net_scratch *scratch,
                      const struct net_item *items, size_t count);
void net_step_decode(const struct net *net, struct net_scratch *scratch,
                     const struct net_item *items, size_t count);

#endif
