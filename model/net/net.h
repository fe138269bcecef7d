// SPDX-License-Identifier: Apache-2.0
// The network: motion features, normalised -> LSTM of 1 to 4 layers -> linear -> latent z -> linear
// decoder (mean + basis z) -> displacement D [V][3], metres, in the rest space of the shaped body.
//
// Model file: safetensors (huggingface.co/docs/safetensors) with PyTorch tensor names:
//   lstm.weight_ih_l{k} [4H][in]  lstm.weight_hh_l{k} [4H][H]  lstm.bias_ih_l{k} [4H]
//   lstm.bias_hh_l{k} [4H]        gate order i, f, g, o; the two biases are folded when loaded
//   linear.weight [Z][H]          linear.bias [Z]
//   decoder.weight [3V][Z]        decoder.bias [3V]
//   skip.weight [Z][F]            optional: z += skip.weight x, a direct path past the LSTM
//   features.mean [F]             features.scale [F]   (input = (x - mean) * scale; absent: 0 and
//   1)
// F32 or F16 on disk, f32 in memory. Sizes come from the tensors. `__metadata__` holds one entry,
// "dsnet", a JSON document:
// {"format":1,"features":"paper","rate":60,"decoder":"linear","trained":bool, "body":"<64 hex
// digits>" or absent,"provenance":{...}}. A file without it is taken as "paper" at 60 Hz, untrained
// provenance unknown, so that a checkpoint saved from PyTorch loads as it is.
#ifndef DSNET_NET_NET_H
#define DSNET_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "motion/features.h"

#define NET_LAYERS_MAX   4
#define NET_HIDDEN_MIN   16
#define NET_HIDDEN_MAX   1024
#define NET_LATENT_MAX   256
#define NET_VERTICES_MAX 200000
#define NET_BATCH_MAX    1024
#define NET_POSE_SIZE    66
#define NET_HASH_SIZE    32

struct net; // weights and configuration; const after loading, shared by all threads

struct net_config {
  size_t layers, hidden, latent, vertices;
  const struct feature_set *features;
  double rate; // frames a second, 60
  bool trained;
  bool has_body_hash;
  uint8_t body_hash[32];
  bool skip; // has the direct path from the features to the latents
};

int net_load(struct net **net, const char *path, struct dsnet_error *error);
int net_load_memory(struct net **net, const void *bytes, size_t size, struct dsnet_error *error);
// Randomly initialised weights (PyTorch's own defaults: uniform +-1/sqrt(H)), the same for the same
// seed on every machine. `config->trained` is ignored: the result says false. The decoder is scaled
// so that displacements stay under a few millimetres. Its motion means nothing.
int net_new_random(struct net **net, const struct net_config *config, uint64_t seed,
                   struct dsnet_error *error);
enum net_precision { NET_F32, NET_F16 };
// NET_F16 when no weight would be changed by it, as in a network that was loaded from such a file.
enum net_precision net_precision(const struct net *net);
// Writes the model file atomically.
int net_save(const struct net *net, const char *path, enum net_precision precision,
             struct dsnet_error *error);
void net_free(struct net *net);

const struct net_config *net_config(const struct net *net);
// The provenance document as JSON text, or "{}".
const char *net_provenance(const struct net *net);
// Replaces it. `json` is a JSON object as text, and copied.
int net_set_provenance(struct net *net, const char *json, struct dsnet_error *error);
// The identity of the network: BLAKE2b-256 (RFC 7693, no key) of what decides its results, all
// little-endian and without padding:
//   "dsnet net 1"                               11 bytes
//   layers, H, Z, V, whether there is skip      u32 each
//   rate                                        f64
//   name of the feature set, with its NUL
//   the tensors in the order of the table above, features.mean and features.scale (f32, 0 and 1
//   when the file has none) before skip.weight
// A file's number type and its provenance do not matter. Costs some 10 ms for the default sizes.
void net_hash(const struct net *net, uint8_t hash[NET_HASH_SIZE]);
// The linear decoder: basis [3V][Z], mean [3V].
const float *net_decoder_basis(const struct net *net);
const float *net_decoder_mean(const struct net *net);

// Floats of one session's state: one flat block, h and c of each layer and the feature set's
// memory. It can be copied, stored and resumed without knowing what is in it. All zeros is the
// start of a sequence.
size_t net_state_size(const struct net *net);

// Forgets velocities and accelerations, which the next frame starts from zero as the first of a
// sequence does; the LSTM's state stays.
void net_restart_motion(const struct net *net, float *state);

// Per-thread working memory for steps of up to max_batch sessions.
struct net_scratch;
int net_scratch_new(struct net_scratch **scratch, const struct net *net, size_t max_batch,
                    struct dsnet_error *error);
void net_scratch_free(struct net_scratch *scratch);

// One frame of one session in a batch.
struct net_item {
  float *state;        // [net_state_size], advanced in place
  const float *pose;   // [66] radians
  const float *trans;  // [3] metres, z-up
  const float *betas;  // [10]
  float *latent;       // out [Z], or NULL
  float *displacement; // out [V][3] metres, or NULL
};

// Advances `count` (1..max_batch) different sessions by one frame. Allocates nothing. The result of
// an item is the same to 1e-5 whatever batch it is in. Any thread, one at a time per scratch.
void net_step(const struct net *net, struct net_scratch *scratch, const struct net_item *items,
              size_t count);

// One session over a stretch of time, for clips that are there as a whole: products that do not
// depend on the frame before are made for many frames at once. Per-thread working memory.
struct net_stretch;
int net_stretch_new(struct net_stretch **stretch, const struct net *net, struct dsnet_error *error);
void net_stretch_free(struct net_stretch *stretch);
// Advances `state` [net_state_size] by `frames` frames: pose [frames][66], trans [frames][3], betas
// [10], to latent [frames][Z]. Results and state are bitwise those of net_step frame by frame.
// Allocates nothing. Any thread, one at a time per stretch.
void net_step_stretch(const struct net *net, struct net_stretch *stretch, float *state,
                      size_t frames, const float *pose, const float *trans, const float *betas,
                      float *latent);

// displacement [V][3] of latent [Z].
void net_decode(const struct net *net, const float *latent, float *displacement);

#endif
