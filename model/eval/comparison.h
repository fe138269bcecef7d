// SPDX-License-Identifier: Apache-2.0
// The comparison: predictors side by side over the test splits, same frames, same run.
#ifndef DSNET_EVAL_COMPARISON_H
#define DSNET_EVAL_COMPARISON_H

#include <stdbool.h>
#include <stdio.h>

#include "eval/metrics.h"
#include "eval/predictor.h"

#define COMPARISON_ROWS_MAX 16

// What the rows reached on one sequence.
struct comparison_sequence {
  char name[DYNA_NAME_SIZE];
  enum split split;
  float betas[10];
  double frames;
  struct {
    double mean_mm, explained;
  } rows[COMPARISON_ROWS_MAX];
};

struct comparison {
  struct predictor rows[COMPARISON_ROWS_MAX];
  size_t count;
  struct metrics (*metrics)[SPLIT_COUNT]; // [COMPARISON_ROWS_MAX]
  struct comparison_sequence *sequences;  // in the order of the data
  size_t sequence_count;
  double seconds[COMPARISON_ROWS_MAX]; // spent predicting
  double frames;
  double physics_us; // microseconds of a frame of the simulation (eval/timing); 0: not measured
};

int comparison_init(struct comparison *comparison, struct dsnet_error *error);
void comparison_deinit(struct comparison *comparison);

// Every sequence of the three test splits, or its first `longest` frames. `progress` may be NULL;
// false stops with DSNET_ECANCELLED.
int comparison_run(struct comparison *comparison, struct dyna *dyna, const struct body *body,
                   const struct splits *splits, size_t longest,
                   bool (*progress)(void *context, double done), void *context,
                   struct dsnet_error *error);

// As text or as GitHub Markdown.
void comparison_print(const struct comparison *comparison, bool markdown, FILE *out);

#endif
