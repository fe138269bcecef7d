// SPDX-License-Identifier: Apache-2.0
#include "body/body.h"

#include <stdlib.h>

#include "body/struct.h"

void body_free(struct body *body) {
  free(body); // one block, arrays and all
}

size_t body_vertices(const struct body *body) {
  return body->vertices;
}

size_t body_faces(const struct body *body) {
  return body->faces;
}

size_t body_shapes(const struct body *body) {
  return body->shapes;
}

const float *body_template(const struct body *body) {
  return body->v_template;
}

const float *body_shapedirs(const struct body *body) {
  return body->shapedirs;
}

const float *body_posedirs(const struct body *body) {
  return body->posedirs;
}

const uint32_t *body_triangles(const struct body *body) {
  return body->triangles;
}

const int *body_parents(const struct body *body) {
  return body->parents;
}

const float *body_soft_tissue(const struct body *body) {
  return body->soft_tissue;
}

const uint8_t *body_weight_joints(const struct body *body) {
  return body->weight_joints;
}

const float *body_weight_values(const struct body *body) {
  return body->weight_values;
}

const uint8_t *body_hash(const struct body *body) {
  return body->hash;
}

const char *body_joint_name(int joint) {
  static const char *const names[BODY_JOINTS] = {
      "pelvis",     "left_hip",    "right_hip",    "spine1",      "left_knee",     "right_knee",
      "spine2",     "left_ankle",  "right_ankle",  "spine3",      "left_foot",     "right_foot",
      "neck",       "left_collar", "right_collar", "head",        "left_shoulder", "right_shoulder",
      "left_elbow", "right_elbow", "left_wrist",   "right_wrist", "left_hand",     "right_hand",
  };
  return joint >= 0 && joint < BODY_JOINTS ? names[joint] : NULL;
}
