// SPDX-License-Identifier: Apache-2.0
// What a viewer needs once to show a session by itself, as safetensors files (see
// io/safetensors.h) in memory, with a JSON document in the "dsnet" entry of their metadata.
//
// Body (GET /v1/body), all in the rest space, y-up, metres:
//   v_template [V][3]  shapedirs [V][3][B]  posedirs [V][3][207] if it has them       F32
//   joints [24][3]  joint_shapedirs [24][3][B]: rest joints are joints + joint_shapedirs betas F32
//   weights [V][4] F32, weight_joints [V][4] U8   parents [24] I32   faces [F][3] U32
//   soft_tissue [V] F32 if it has one
// Decoder (GET /v1/models/{m}/decoder): displacement = mean + basis z
//   mean [V][3]  basis [V][3][Z]        F16 if the model's file is, else F32
#ifndef DSNET_SERVER_GEOMETRY_H
#define DSNET_SERVER_GEOMETRY_H

#include <jansson.h>

#include "body/body.h"
#include "net/net.h"

struct geometry {
  char *bytes; // the file, malloc'd; the caller frees it
  size_t size;
};

// A new document: names of joints and shape directions, sizes, the body's hash. `builtin` tells
// that it is the body the program carries, whose shape directions have names. NULL when memory is
// out.
json_t *geometry_describe_body(const struct body *body, bool builtin);
json_t *geometry_describe_decoder(const struct net *net, const char *model);

// DSNET_ENOMEM leaves *file alone.
int geometry_write_body(struct geometry *file, const struct body *body, bool builtin,
                        struct dsnet_error *error);
int geometry_write_decoder(struct geometry *file, const struct net *net, const char *model,
                           struct dsnet_error *error);

#endif
