// SPDX-License-Identifier: Apache-2.0
// The table of feature sets. Each set is a file of its own.
#include "motion/features.h"

#include <string.h>

#include "motion/features_sets.h"

static const struct feature_set *const sets[] = {&feature_set_paper, &feature_set_inertial,
                                                 &feature_set_springs};

const struct feature_set *feature_set_find(const char *name) {
  for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
    if (!strcmp(sets[i]->name, name))
      return sets[i];
  return NULL;
}

const struct feature_set *feature_set_at(size_t index) {
  return index < sizeof sets / sizeof sets[0] ? sets[index] : NULL;
}
