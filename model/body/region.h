// SPDX-License-Identifier: Apache-2.0
// The regions of a body that tables are broken down by. Derived from the skinning weights and the
// rest shape alone, so that it works for SMPL itself and for any body in its layout.
#ifndef DSNET_BODY_REGION_H
#define DSNET_BODY_REGION_H

#include "body/body.h"

#define BODY_REGIONS(X)                                                                            \
  X(HEAD, "head")                                                                                  \
  X(SHOULDERS, "shoulders")                                                                        \
  X(CHEST, "chest")                                                                                \
  X(BACK, "back")                                                                                  \
  X(BELLY, "belly")                                                                                \
  X(HIPS, "hips")                                                                                  \
  X(BUTTOCKS, "buttocks")                                                                          \
  X(THIGHS, "thighs")                                                                              \
  X(CALVES, "calves")                                                                              \
  X(FEET, "feet")                                                                                  \
  X(UPPER_ARMS, "upper arms")                                                                      \
  X(FOREARMS, "forearms")                                                                          \
  X(HANDS, "hands")

enum body_region {
#define X(name, text) BODY_REGION_##name,
  BODY_REGIONS(X)
#undef X
      BODY_REGION_COUNT
};

const char *body_region_name(enum body_region region);

// regions [V]: the enum body_region of every vertex. Every region of a human body is non-empty.
void body_regions(const struct body *body, uint8_t *regions);

#endif
