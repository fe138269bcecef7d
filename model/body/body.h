// SPDX-License-Identifier: Apache-2.0
// A skinned body in the SMPL layout (Loper et al. 2015, "SMPL: A Skinned Multi-Person Linear
// Model"; the npz keys are those of SMPL's own files): template, linear shape space, joint
// regressor, linear blend skinning weights, kinematic tree, optional pose blend shapes.
//
// The rest pose is y-up and faces +z; metres, radians. Arrays are row-major. A body is const once
// loaded, so any number of threads may use it at once.
#ifndef DSNET_BODY_BODY_H
#define DSNET_BODY_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BODY_JOINTS       24 // SMPL's joints, in its order
#define BODY_POSE_JOINTS  22 // those a pose drives; joints 22 and 23 (the hands) stay at rest
#define BODY_POSE_SIZE    (BODY_POSE_JOINTS * 3)
#define BODY_SHAPES_MAX   10 // shape directions kept of a file that has more
#define BODY_WEIGHTS_MAX  4  // skinning weights kept per vertex, renormalised
#define BODY_VERTICES_MAX 200000
#define BODY_HASH_SIZE    32

struct body;

// Reads an SMPL-layout npz: v_template [V][3], shapedirs [V][3][>=1], J_regressor [24][V], weights
// [V][24], kintree_table [2][24], f [F][3], optional posedirs [V][3][207] (or 459 or 486 columns,
// of which the first 207 are the body's), optional soft_tissue [V] (0 bone-near and firm .. 1
// softest). float32 or float64. The first BODY_SHAPES_MAX shape directions are kept. Files of 52
// joints (SMPL-H) or 55 (SMPL-X) are folded to the 24, see body/arrays.h. Other arrays are skipped.
// Indices, tree order, finiteness and weight sums are checked; the error names the array.
int body_load(struct body **body, const char *path, struct dsnet_error *error);
int body_load_memory(struct body **body, const void *npz, size_t size, struct dsnet_error *error);
void body_free(struct body *body);

size_t body_vertices(const struct body *body); // V
size_t body_faces(const struct body *body);    // F
size_t body_shapes(const struct body *body);   // B, at most BODY_SHAPES_MAX

// The arrays, owned by the body.
const float *body_template(const struct body *body);     // [V][3]
const float *body_shapedirs(const struct body *body);    // [V][3][B]
const float *body_posedirs(const struct body *body);     // [V][3][207], NULL when it has none
const uint32_t *body_triangles(const struct body *body); // [F][3], counter-clockwise from outside
const int *body_parents(const struct body *body);        // [24], -1 for the root, parent < child
const float *body_soft_tissue(const struct body *body);  // [V], NULL when the file has none
// Skinning as a sparse table: BODY_WEIGHTS_MAX joints and weights per vertex, heaviest first.
const uint8_t *body_weight_joints(const struct body *body); // [V][4]
const float *body_weight_values(const struct body *body);   // [V][4], each row sums to 1

// BLAKE2b-256 of the arrays that displacements refer to (template, shape directions, faces,
// weights, regressor, tree, pose directions), independent of how the file stores them.
const uint8_t *body_hash(const struct body *body); // [BODY_HASH_SIZE]

// SMPL's joint names in its order: "pelvis", "left_hip", ...
const char *body_joint_name(int joint);

#endif
