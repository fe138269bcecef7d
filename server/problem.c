// SPDX-License-Identifier: Apache-2.0
#include "problem.h"

static const struct {
  unsigned status;
  const char *type, *title;
} problems[PROBLEM_COUNT] = {
#define X(name, status, type, title) {status, PROBLEM_TYPE_PREFIX type, title},
    PROBLEMS(X)
#undef X
};

unsigned problem_status(enum problem problem) {
  return problems[problem].status;
}

const char *problem_type(enum problem problem) {
  return problems[problem].type;
}

const char *problem_title(enum problem problem) {
  return problems[problem].title;
}
