// SPDX-License-Identifier: Apache-2.0
#include "net/output.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/pose.h"
#include "io/half.h"
#include "io/int16.h"
#include "net/internal.h"

// Frames made at once: enough to use each weight several times, few enough that their floats, 83 kB
// each, stay in the second-level cache until they are encoded.
#define TOGETHER 8
// Vertices of a piece: a whole number of GEMM_PART outputs.
#define PIECE_VERTICES 512
#define PIECE          (3 * PIECE_VERTICES)
_Static_assert(PIECE % GEMM_PART == 0, "pieces begin where a part of a product may");

struct net_output_scratch {
  size_t z_stride;
  float *z;                       // [max_count][z_stride] latents, side by side
  float **rows;                   // [max_count] where a product's rows go
  float *frames;                  // [TOGETHER][3V] frames that are scaled as a whole
  float *pieces;                  // [TOGETHER][PIECE] displacement
  float *placed;                  // [PIECE] vertices
  const struct net_output **some; // [TOGETHER]
};

size_t net_output_size(const struct net *net, enum net_output_kind kind,
                       enum net_output_encoding encoding) {
  size_t count = kind == NET_LATENT ? net->config.latent : 3 * net->config.vertices;
  switch (encoding) {
  case NET_AS_F16:
    return count * 2;
  case NET_AS_I16:
    return sizeof(float) + count * 2;
  case NET_AS_F32:
    break;
  }
  return count * sizeof(float);
}

int net_output_scratch_new(struct net_output_scratch **scratch, const struct net *net,
                           size_t max_count, struct dsnet_error *error) {
  struct net_output_scratch *made = calloc(1, sizeof *made);
  if (!made)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  made->z_stride = net->config.latent;
  made->z = memory_alloc(max_count * made->z_stride, sizeof(float));
  made->rows = calloc(max_count > TOGETHER ? max_count : TOGETHER, sizeof *made->rows);
  made->frames = memory_alloc(TOGETHER * 3 * net->config.vertices, sizeof(float));
  made->pieces = memory_alloc((size_t)TOGETHER * PIECE, sizeof(float));
  made->placed = memory_alloc(PIECE, sizeof(float));
  made->some = calloc(TOGETHER, sizeof(struct net_output *));
  if (!made->z || !made->rows || !made->frames || !made->pieces || !made->placed || !made->some) {
    net_output_scratch_free(made);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for %zu outputs", max_count);
  }
  *scratch = made;
  return 0;
}

void net_output_scratch_free(struct net_output_scratch *scratch) {
  if (!scratch)
    return;
  free(scratch->z);
  free(scratch->rows);
  free(scratch->frames);
  free(scratch->pieces);
  free(scratch->placed);
  free(scratch->some);
  free(scratch);
}

// Numbers first .. first + count - 1 of a payload, of those that need no common scale.
static void encode(const struct net_output *output, size_t first, size_t count,
                   const float *values) {
  char *payload = output->payload;
  if (output->encoding == NET_AS_F16)
    half_encode(values, payload + 2 * first, count);
  else
    memcpy(payload + sizeof(float) * first, values, count * sizeof(float));
}

static void encode_whole(const struct net_output *output, size_t count, const float *values) {
  if (output->encoding != NET_AS_I16) {
    encode(output, 0, count, values);
    return;
  }
  char *payload = output->payload;
  float scale = int16_encode(values, payload + sizeof scale, count);
  memcpy(payload, &scale, sizeof scale);
}

// Displacement of vertices first .. first + count - 1 becomes their place in the world.
static void place(const struct net_placement *placement, size_t first, size_t count,
                  const float *displacement, float *placed) {
  body_shape_part(placement->body, placement->betas, FEATURES_BETAS, first, count, placed);
  body_add_pose_part_of(placement->body, placement->pose, first, count, placed);
  body_skin_part(placement->body, placement->transforms, first, count, placed, displacement,
                 placed);
  for (size_t v = 0; placement->y_up && v < count; v++) {
    float y = placed[3 * v + 1];
    placed[3 * v + 1] = placed[3 * v + 2];
    placed[3 * v + 2] = -y;
  }
}

static float *whole_frame(const struct net *net, const struct net_output_scratch *scratch,
                          size_t row) {
  return scratch->frames + row * 3 * net->config.vertices;
}

// One piece of each of some frames: decoded together, then placed and encoded one by one.
static void write_piece(const struct net *net, struct net_output_scratch *scratch, size_t count,
                        size_t first) {
  size_t all = 3 * net->config.vertices, length = all - first < PIECE ? all - first : PIECE;
  for (size_t r = 0; r < count; r++)
    scratch->rows[r] = scratch->pieces + r * PIECE;
  gemm_apply_part(&net->decoder, first, length, count, scratch->z, scratch->z_stride,
                  scratch->rows);
  for (size_t r = 0; r < count; r++) {
    const struct net_output *output = scratch->some[r];
    const float *values = scratch->rows[r];
    if (output->kind == NET_VERTICES) {
      place(output->placement, first / 3, length / 3, values, scratch->placed);
      values = scratch->placed;
    }
    if (output->encoding == NET_AS_I16)
      memcpy(whole_frame(net, scratch, r) + first, values, length * sizeof *values);
    else
      encode(output, first, length, values);
  }
}

static void write_some(const struct net *net, struct net_output_scratch *scratch, size_t count) {
  size_t all = 3 * net->config.vertices;
  for (size_t r = 0; r < count; r++)
    memcpy(scratch->z + r * scratch->z_stride, scratch->some[r]->latent,
           net->config.latent * sizeof(float));
  for (size_t first = 0; first < all; first += PIECE)
    write_piece(net, scratch, count, first);
  for (size_t r = 0; r < count; r++)
    if (scratch->some[r]->encoding == NET_AS_I16)
      encode_whole(scratch->some[r], all, whole_frame(net, scratch, r));
}

static bool is_plain(const struct net_output *output) {
  return output->kind == NET_DISPLACEMENT && output->encoding == NET_AS_F32;
}

// Displacements in f32 go from the product straight to where they are sent from.
static void write_plain(const struct net *net, struct net_output_scratch *scratch,
                        const struct net_output *outputs, size_t count) {
  size_t rows = 0;
  for (size_t i = 0; i < count; i++) {
    if (!is_plain(&outputs[i]))
      continue;
    memcpy(scratch->z + rows * scratch->z_stride, outputs[i].latent,
           net->config.latent * sizeof(float));
    scratch->rows[rows++] = outputs[i].payload;
  }
  if (rows)
    gemm_apply(&net->decoder, rows, scratch->z, scratch->z_stride, scratch->rows);
}

void net_output_write(const struct net *net, struct net_output_scratch *scratch,
                      const struct net_output *outputs, size_t count) {
  write_plain(net, scratch, outputs, count);
  size_t gathered = 0;
  for (size_t i = 0; i < count; i++) {
    if (outputs[i].kind == NET_LATENT)
      encode_whole(&outputs[i], net->config.latent, outputs[i].latent);
    else if (!is_plain(&outputs[i]))
      scratch->some[gathered++] = &outputs[i];
    if (gathered == TOGETHER || (gathered && i + 1 == count)) {
      write_some(net, scratch, gathered);
      gathered = 0;
    }
  }
}
