// SPDX-License-Identifier: Apache-2.0
// From latents to what is sent: the latents themselves, the displacement, or the posed vertices, as
// floats, halves or scaled integers. What is not plain displacement in f32 is made a few frames at
// a time in pieces that stay in the cache, so that a frame in a narrower encoding is never written
// to memory as floats.
#ifndef DSNET_NET_OUTPUT_H
#define DSNET_NET_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "body/body.h"
#include "net/net.h"

enum net_output_kind { NET_LATENT, NET_DISPLACEMENT, NET_VERTICES };

// Little-endian numbers one after another. I16: first one f32 scale, then integers q with value
// q * scale, the scale being the largest magnitude / 32767, so that the error is at most scale / 2.
enum net_output_encoding { NET_AS_F32, NET_AS_F16, NET_AS_I16 };

// Where the vertices of one frame are.
struct net_placement {
  const struct body *body; // with the network's vertex count
  const float *pose;       // [66] radians
  const float *betas;      // [10]
  const float *transforms; // [24][12] of the pose and betas (body_transforms)
  bool y_up;               // write them in a y-up world: (x, z, -y)
};

struct net_output {
  enum net_output_kind kind;
  enum net_output_encoding encoding;
  const float *latent;                   // [Z]
  const struct net_placement *placement; // of vertices
  void *payload;                         // net_output_size bytes, aligned to 4
};

size_t net_output_size(const struct net *net, enum net_output_kind kind,
                       enum net_output_encoding encoding);

// Per-thread working memory for up to max_count outputs at once.
struct net_output_scratch;
int net_output_scratch_new(struct net_output_scratch **scratch, const struct net *net,
                           size_t max_count, struct dsnet_error *error);
void net_output_scratch_free(struct net_output_scratch *scratch);

// Writes the payloads. Allocates nothing; each is bitwise the same whatever it is made with. Any
// thread, one at a time per scratch.
void net_output_write(const struct net *net, struct net_output_scratch *scratch,
                      const struct net_output *outputs, size_t count);

#endif
