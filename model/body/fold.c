// SPDX-License-Identifier: Apache-2.0
#include "body/fold.h"

#include <inttypes.h>

#define ROOT_UNSIGNED INT64_C(4294967295) // -1 as SMPL's files write it, in a uint32

enum { LEFT_WRIST = 20, RIGHT_WRIST = 21, LEFT_HAND = 22, RIGHT_HAND = 23 };

static int check_tree(const int64_t *kintree_table, size_t joints, struct dsnet_error *error) {
  const int64_t *parents = kintree_table, *ids = kintree_table + joints;
  if (parents[0] != -1 && parents[0] != ROOT_UNSIGNED)
    return dsnet_error_set(error, DSNET_EMISMATCH,
                           "kintree_table: joint 0 has parent %" PRId64
                           ", but it must be the root (-1 or 4294967295)",
                           parents[0]);
  for (size_t j = 1; j < joints; j++)
    if (parents[j] < 0 || parents[j] >= (int64_t)j)
      return dsnet_error_set(error, DSNET_EMISMATCH,
                             "kintree_table: joint %zu has parent %" PRId64
                             ", but parents come before their children",
                             j, parents[j]);
  for (size_t j = 0; j < joints; j++)
    if (ids[j] != (int64_t)j)
      return dsnet_error_set(error, DSNET_EMISMATCH,
                             "kintree_table: column %zu is of joint %" PRId64
                             ", but columns are in joint order",
                             j, ids[j]);
  return 0;
}

// The body joint that an undriven joint of a larger tree goes with.
static uint8_t fold_target(const int64_t *parents, size_t joint) {
  while (joint >= BODY_POSE_JOINTS)
    joint = (size_t)parents[joint];
  if (joint == LEFT_WRIST)
    return LEFT_HAND;
  if (joint == RIGHT_WRIST)
    return RIGHT_HAND;
  return (uint8_t)joint;
}

// A tree with fingers: joints from 22 on are folded, hands 22 and 23 are made from them.
static int fold_fingers(const int64_t *parents, size_t joints, struct fold *fold,
                        struct dsnet_error *error) {
  fold->parents[LEFT_HAND] = LEFT_WRIST;
  fold->parents[RIGHT_HAND] = RIGHT_WRIST;
  fold->source[LEFT_HAND] = fold->source[RIGHT_HAND] = 0;
  for (size_t j = BODY_POSE_JOINTS; j < joints; j++) {
    uint8_t target = fold_target(parents, j);
    fold->target[j] = target;
    if (target >= BODY_POSE_JOINTS && !fold->source[target])
      fold->source[target] = (uint8_t)j;
  }
  if (!fold->source[LEFT_HAND] || !fold->source[RIGHT_HAND])
    return dsnet_error_set(error, DSNET_EMISMATCH,
                           "kintree_table: no joint hangs from joint %d, the wrist",
                           fold->source[LEFT_HAND] ? RIGHT_WRIST : LEFT_WRIST);
  return 0;
}

int fold_joints(const int64_t *kintree_table, size_t joints, struct fold *fold,
                struct dsnet_error *error) {
  if (joints != BODY_JOINTS && joints != 52 && joints != BODY_FILE_JOINTS_MAX)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED,
                           "kintree_table: %zu joints, but a body has 24 (SMPL), 52 (SMPL-H) or 55 "
                           "(SMPL-X)",
                           joints);
  int code = check_tree(kintree_table, joints, error);
  if (code)
    return code;
  for (int j = 0; j < BODY_JOINTS; j++) {
    fold->target[j] = fold->source[j] = (uint8_t)j;
    fold->parents[j] = j ? (int)kintree_table[j] : -1;
  }
  return joints == BODY_JOINTS ? 0 : fold_fingers(kintree_table, joints, fold, error);
}
