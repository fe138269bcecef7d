// SPDX-License-Identifier: Apache-2.0
#include "geometry.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "body/build/build.h"
#include "body/pose.h"
#include "io/half.h"

#define TENSORS_MAX  12
#define POSE_COLUMNS 207
#define ALIGNMENT    8

struct tensor {
  const char *name, *type;
  size_t shape[3]; // 0 ends it
  const void *data;
  size_t bytes;
};

struct tensors {
  struct tensor items[TENSORS_MAX];
  size_t count;
};

static void add(struct tensors *tensors, const char *name, const char *type, size_t width, size_t a,
                size_t b, size_t c, const void *data) {
  if (!data)
    return;
  tensors->items[tensors->count++] =
      (struct tensor){.name = name,
                      .type = type,
                      .shape = {a, b, c},
                      .data = data,
                      .bytes = a * (b ? b : 1) * (c ? c : 1) * width};
}

// Writing ----------------------------------------------------------------------------------------

static json_t *describe_tensors(const struct tensors *tensors, json_t *description) {
  char *text = description ? json_dumps(description, JSON_COMPACT) : NULL;
  json_t *header = json_pack("{s:{s:s}}", "__metadata__", "dsnet", text);
  size_t offset = 0;
  for (size_t i = 0; i < tensors->count; i++) {
    const struct tensor *tensor = &tensors->items[i];
    json_t *shape = json_array();
    size_t end = offset + tensor->bytes;
    for (size_t d = 0; d < 3 && tensor->shape[d]; d++)
      json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d]));
    json_object_set_new(header, tensor->name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensor->type, "shape", shape,
                                  "data_offsets", (json_int_t)offset, (json_int_t)end));
    offset = end;
  }
  bool whole = header && json_object_size(header) == tensors->count + 1;
  free(text);
  if (whole)
    return header;
  json_decref(header);
  return NULL;
}

// The length of the header, the header with blanks up to the alignment, the tensors.
static int write_file(struct geometry *file, const struct tensors *tensors, json_t *description,
                      struct dsnet_error *error) {
  json_t *header = describe_tensors(tensors, description);
  char *text = header ? json_dumps(header, JSON_COMPACT) : NULL;
  json_decref(header);
  json_decref(description);
  size_t length = text ? strlen(text) : 0;
  size_t padded = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, size = ALIGNMENT + padded;
  for (size_t i = 0; i < tensors->count; i++)
    size += tensors->items[i].bytes;
  char *bytes = text ? malloc(size) : NULL;
  if (!bytes) {
    free(text);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  for (size_t i = 0; i < ALIGNMENT; i++)
    bytes[i] = (char)(padded >> (8 * i));
  memset(bytes + ALIGNMENT, ' ', padded);
  memcpy(bytes + ALIGNMENT, text, length);
  char *end = bytes + ALIGNMENT + padded;
  for (size_t i = 0; i < tensors->count; i++) {
    memcpy(end, tensors->items[i].data, tensors->items[i].bytes);
    end += tensors->items[i].bytes;
  }
  free(text);
  *file = (struct geometry){.bytes = bytes, .size = size};
  return 0;
}

// Bodies -----------------------------------------------------------------------------------------

json_t *geometry_describe_body(const struct body *body, bool builtin) {
  char hash[2 * BODY_HASH_SIZE + 1];
  json_t *joints = json_array(), *shapes = json_array();
  sodium_bin2hex(hash, sizeof hash, body_hash(body), BODY_HASH_SIZE);
  for (int i = 0; i < BODY_JOINTS; i++)
    json_array_append_new(joints, json_string(body_joint_name(i)));
  for (int i = 0; builtin && i < BODY_BUILD_SHAPES; i++)
    json_array_append_new(shapes, json_string(body_build_shape_name(i)));
  return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:o, s:o}", "kind", "body", "up", "y",
                   "units", "metres", "vertices", (json_int_t)body_vertices(body), "faces",
                   (json_int_t)body_faces(body), "shapes", (json_int_t)body_shapes(body), "hash",
                   hash, "joint_names", joints, "shape_names", shapes);
}

// Joints are linear in betas, so that differences of shaped joints are their directions.
static void measure_joints(const struct body *body, float joints[BODY_JOINTS * 3],
                           float directions[BODY_JOINTS * 3 * BODY_SHAPES_MAX]) {
  size_t shapes = body_shapes(body);
  body_shape(body, NULL, 0, NULL, joints);
  for (size_t k = 0; k < shapes; k++) {
    float betas[BODY_SHAPES_MAX] = {0}, shaped[BODY_JOINTS * 3];
    betas[k] = 1;
    body_shape(body, betas, shapes, NULL, shaped);
    for (size_t i = 0; i < (size_t)BODY_JOINTS * 3; i++)
      directions[i * shapes + k] = shaped[i] - joints[i];
  }
}

int geometry_write_body(struct geometry *file, const struct body *body, bool builtin,
                        struct dsnet_error *error) {
  size_t V = body_vertices(body), B = body_shapes(body);
  float joints[BODY_JOINTS * 3], directions[BODY_JOINTS * 3 * BODY_SHAPES_MAX];
  int32_t parents[BODY_JOINTS];
  struct tensors tensors = {.count = 0};
  measure_joints(body, joints, directions);
  for (int i = 0; i < BODY_JOINTS; i++)
    parents[i] = body_parents(body)[i];
  add(&tensors, "v_template", "F32", 4, V, 3, 0, body_template(body));
  add(&tensors, "shapedirs", "F32", 4, V, 3, B, body_shapedirs(body));
  add(&tensors, "posedirs", "F32", 4, V, 3, POSE_COLUMNS, body_posedirs(body));
  add(&tensors, "joints", "F32", 4, BODY_JOINTS, 3, 0, joints);
  add(&tensors, "joint_shapedirs", "F32", 4, BODY_JOINTS, 3, B, directions);
  add(&tensors, "weights", "F32", 4, V, BODY_WEIGHTS_MAX, 0, body_weight_values(body));
  add(&tensors, "weight_joints", "U8", 1, V, BODY_WEIGHTS_MAX, 0, body_weight_joints(body));
  add(&tensors, "parents", "I32", 4, BODY_JOINTS, 0, 0, parents);
  add(&tensors, "faces", "U32", 4, body_faces(body), 3, 0, body_triangles(body));
  add(&tensors, "soft_tissue", "F32", 4, V, 0, 0, body_soft_tissue(body));
  return write_file(file, &tensors, geometry_describe_body(body, builtin), error);
}

// Decoders ---------------------------------------------------------------------------------------

json_t *geometry_describe_decoder(const struct net *net, const char *model) {
  const struct net_config *config = net_config(net);
  return json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:b}", "kind", "decoder", "model", model,
                   "decoder", "linear", "vertices", (json_int_t)config->vertices, "latents",
                   (json_int_t)config->latent, "rate", config->rate, "trained", config->trained);
}

int geometry_write_decoder(struct geometry *file, const struct net *net, const char *model,
                           struct dsnet_error *error) {
  size_t V = net_config(net)->vertices, Z = net_config(net)->latent;
  bool half = net_precision(net) == NET_F16;
  const char *type = half ? "F16" : "F32";
  size_t width = half ? sizeof(uint16_t) : sizeof(float);
  const void *mean = net_decoder_mean(net), *basis = net_decoder_basis(net);
  uint16_t *halves = half ? malloc(V * 3 * (Z + 1) * sizeof *halves) : NULL;
  struct tensors tensors = {.count = 0};
  if (half && !halves)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (half) {
    half_encode(mean, halves, V * 3);
    half_encode(basis, halves + V * 3, V * 3 * Z);
    mean = halves;
    basis = halves + V * 3;
  }
  add(&tensors, "mean", type, width, V, 3, 0, mean);
  add(&tensors, "basis", type, width, V, 3, Z, basis);
  int result = write_file(file, &tensors, geometry_describe_decoder(net, model), error);
  free(halves);
  return result;
}
