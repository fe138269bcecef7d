// SPDX-License-Identifier: Apache-2.0
// A body from plain arrays: what the file loader and the generator of the built-in body have in
// common, so that every check of a body lives in one place and a generated body is held to the same
// rules as a file.
#ifndef DSNET_BODY_ARRAYS_H
#define DSNET_BODY_ARRAYS_H

#include "body/body.h"

#define BODY_FACES_MAX        (4 * BODY_VERTICES_MAX)
#define BODY_FILE_JOINTS_MAX  55  // SMPL-X
#define BODY_FILE_SHAPES_MAX  512 // shape directions a file may have; SMPL-X has 400
#define BODY_FILE_COLUMNS_MAX 486 // pose directions a file may have
#define BODY_POSE_COLUMNS     207 // those kept: 9 for each of joints 1..23
#define BODY_COORDINATE_MAX   100 // metres; a larger one means that the file is not in metres

// Borrowed arrays, row-major, named as the npz keys are. `joints` is J below: 24 (SMPL), 52
// (SMPL-H) or 55 (SMPL-X). In all three the first 22 joints are the same. The rest are fingers, jaw
// and eyes, which a pose here does not move, so they are folded without loss: fingers into the
// hands (22 and 23, at the place of the first finger joint), jaw and eyes into the head.
struct body_arrays {
  size_t vertices; // V
  size_t faces;    // F
  size_t joints;   // J
  size_t shapes;   // S, 1..BODY_FILE_SHAPES_MAX; the first BODY_SHAPES_MAX are kept
  size_t columns;  // C of posedirs: 207, 459 or 486; 0 without posedirs

  const float *v_template;      // [V][3]
  const float *shapedirs;       // [V][3][S]
  const float *posedirs;        // [V][3][C]; NULL when C is 0
  const float *J_regressor;     // [J][V]
  const float *weights;         // [V][J], none negative, each row sums to 1 within 1e-3
  const int64_t *kintree_table; // [2][J]: parents (-1 or 4294967295 for joint 0), then 0..J-1
  const int64_t *f;             // [F][3], counter-clockwise from outside
  const float *soft_tissue;     // [V] within 0..1, or NULL
};

// Checks the sizes alone, so that a reader can refuse them before it allocates.
int body_arrays_check_sizes(const struct body_arrays *arrays, struct dsnet_error *error);

// Checks the arrays and makes a body of a copy of them: at most BODY_WEIGHTS_MAX weights a vertex
// are kept, the heaviest, and renormalised. A failure names the array and leaves *body alone:
// DSNET_ELIMIT for a size, DSNET_EUNSUPPORTED for a count of joints or columns that no layout has,
// DSNET_EMISMATCH for a tree, DSNET_EVALUE for a value. body_free releases the body.
int body_new_from_arrays(struct body **body, const struct body_arrays *arrays,
                         struct dsnet_error *error);

#endif
