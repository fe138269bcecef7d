// SPDX-License-Identifier: Apache-2.0
// The body itself, visible inside this folder only. One block of memory that holds the structure
// and, behind it, every array its pointers name; written once by body_new_from_arrays, const after.
#ifndef DSNET_BODY_STRUCT_H
#define DSNET_BODY_STRUCT_H

#include "body/arrays.h"

struct body {
  size_t vertices, faces, shapes;
  float *v_template;      // [V][3]
  float *shapedirs;       // [V][3][B]
  float *posedirs;        // [V][3][BODY_POSE_COLUMNS] or NULL
  float *regressor;       // [24][V]
  float *weight_values;   // [V][4]
  uint8_t *weight_joints; // [V][4]
  uint32_t *triangles;    // [F][3]
  float *soft_tissue;     // [V] or NULL
  int parents[BODY_JOINTS];
  // The regressor applied to the template and to each shape direction: joints are linear in betas
  // too, so shaping them does not have to touch the vertices.
  double joint_template[BODY_JOINTS][3];
  double joint_shapedirs[BODY_JOINTS][3][BODY_SHAPES_MAX];
  uint8_t hash[BODY_HASH_SIZE];
};

#endif
