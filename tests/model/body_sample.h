// SPDX-License-Identifier: Apache-2.0
// A tiny body in any layout that the loader accepts, whose arrays a test may spoil before it makes
// a body of them or writes them to a file. Its numbers are random, but the same each time.
#ifndef DSNET_TESTS_BODY_SAMPLE_H
#define DSNET_TESTS_BODY_SAMPLE_H

#include <stdbool.h>

#include "body/arrays.h"

enum { SAMPLE_VERTICES = 9, SAMPLE_FACES = 5 };

struct body_sample {
  struct body_arrays arrays; // its pointers are to the arrays below
  float v_template[SAMPLE_VERTICES * 3];
  float shapedirs[SAMPLE_VERTICES * 3 * BODY_FILE_SHAPES_MAX];
  float posedirs[SAMPLE_VERTICES * 3 * BODY_FILE_COLUMNS_MAX];
  float J_regressor[BODY_FILE_JOINTS_MAX * SAMPLE_VERTICES];
  float weights[SAMPLE_VERTICES * BODY_FILE_JOINTS_MAX];
  int64_t kintree_table[2 * BODY_FILE_JOINTS_MAX];
  int64_t f[SAMPLE_FACES * 3];
  float soft_tissue[SAMPLE_VERTICES];
};

// joints 24, 52 or 55; shapes up to BODY_FILE_SHAPES_MAX; columns 0, 207, 459 or 486. At most four
// weights a vertex.
void sample_init(struct body_sample *sample, size_t joints, size_t shapes, size_t columns);

// How a file is written; {0} is float32 and uint32 as they are.
struct sample_form {
  bool wide;        // float64 and int64 instead
  const char *skip; // an array to leave out, or NULL
  // An array to write as zeros of another type or shape instead, or NULL.
  const char *replace, *dtype;
  size_t dimensions, shape[4];
};

// Writes the npz; fails the running test when that fails.
void sample_write(const struct body_sample *sample, const struct sample_form *form,
                  const char *path);

#endif
