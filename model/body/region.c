// SPDX-License-Identifier: Apache-2.0
#include "body/region.h"

#include <stdbool.h>

#include "body/pose.h"

// First the part whose joints hold most of a vertex, left and right taken together so that the map
// is symmetric; then the trunk and the top of the thighs are split by where the vertex lies about
// the joints of the template.

enum part {
  PART_PELVIS,
  PART_THIGH,
  PART_TORSO,
  PART_CALF,
  PART_FOOT,
  PART_HEAD,
  PART_COLLAR,
  PART_UPPER_ARM,
  PART_FOREARM,
  PART_HAND,
  PART_COUNT
};

static const uint8_t joint_parts[BODY_JOINTS] = {
    PART_PELVIS,  PART_THIGH,   PART_THIGH,  PART_TORSO, PART_CALF,      PART_CALF,
    PART_TORSO,   PART_FOOT,    PART_FOOT,   PART_TORSO, PART_FOOT,      PART_FOOT,
    PART_HEAD,    PART_COLLAR,  PART_COLLAR, PART_HEAD,  PART_UPPER_ARM, PART_UPPER_ARM,
    PART_FOREARM, PART_FOREARM, PART_HAND,   PART_HAND,  PART_HAND,      PART_HAND,
};

enum { PELVIS = 0, LEFT_HIP = 1, RIGHT_HIP = 2, SPINE1 = 3, LEFT_KNEE = 4, RIGHT_KNEE = 5 };
enum { SPINE2 = 6, SPINE3 = 9, NECK = 12 };

// Sums that differ by rounding alone count as equal, and the earlier part wins.
#define TIE 1e-5f

// The seat reaches below the hip joints by this share of the thigh: to the fold under the buttock.
#define SEAT_BELOW_HIP 0.2
// The buttocks are what lies behind the hip joints by more than this share of the depth there; the
// rest of the pelvis, its sides and front, are the hips.
#define BUTTOCK_DEPTH 0.35
// The chest begins below spine2 by this share of the way to spine1: under the breast.
#define CHEST_BELOW_SPINE2 0.25

static const char *const names[] = {
#define X(name, text) text,
    BODY_REGIONS(X)
#undef X
};

const char *body_region_name(enum body_region region) {
  return (unsigned)region < BODY_REGION_COUNT ? names[region] : NULL;
}

// Heights (y) and depths (z) of the template that the trunk is split at.
struct landmarks {
  float joints[BODY_JOINTS][3];
  float hip_y, hip_z; // of both hip joints
  float seat_y;       // lowest of the buttocks
  float buttock_z;    // foremost of the buttocks
  float chest_y;      // lowest of the chest
};

static enum part vertex_part(const uint8_t *joints, const float *weights) {
  float sums[PART_COUNT] = {0};
  for (int k = 0; k < BODY_WEIGHTS_MAX; k++)
    sums[joint_parts[joints[k]]] += weights[k];
  enum part best = 0;
  for (enum part part = 1; part < PART_COUNT; part++)
    if (sums[part] > sums[best] + TIE)
      best = part;
  return best;
}

// Depth of the spine at a height: straight between its joints, constant beyond its ends.
static float spine_depth(const struct landmarks *marks, float y) {
  static const int spine[] = {PELVIS, SPINE1, SPINE2, SPINE3, NECK};
  const int last = sizeof spine / sizeof spine[0] - 1;
  for (int i = 0; i < last; i++) {
    const float *low = marks->joints[spine[i]], *high = marks->joints[spine[i + 1]];
    if (y >= high[1])
      continue;
    if (y <= low[1] || high[1] <= low[1])
      return low[2];
    return low[2] + (high[2] - low[2]) * (y - low[1]) / (high[1] - low[1]);
  }
  return marks->joints[NECK][2];
}

static bool on_seat(const struct landmarks *marks, enum part part, const float *x) {
  return part == PART_PELVIS || (part == PART_THIGH && x[1] > marks->seat_y);
}

static void find_landmarks(const struct body *body, const uint8_t *parts, struct landmarks *marks) {
  body_shape(body, NULL, 0, NULL, &marks->joints[0][0]);
  const float(*J)[3] = (const float(*)[3])marks->joints;
  const float knee_y = (J[LEFT_KNEE][1] + J[RIGHT_KNEE][1]) / 2;
  marks->hip_y = (J[LEFT_HIP][1] + J[RIGHT_HIP][1]) / 2;
  marks->hip_z = (J[LEFT_HIP][2] + J[RIGHT_HIP][2]) / 2;
  marks->seat_y = marks->hip_y - (float)SEAT_BELOW_HIP * (marks->hip_y - knee_y);
  marks->chest_y = J[SPINE2][1] - (float)CHEST_BELOW_SPINE2 * (J[SPINE2][1] - J[SPINE1][1]);
  float rear = marks->hip_z;
  const float *x = body_template(body);
  for (size_t v = 0; v < body_vertices(body); v++)
    if (on_seat(marks, parts[v], x + 3 * v) && x[3 * v + 2] < rear)
      rear = x[3 * v + 2];
  marks->buttock_z = marks->hip_z + (float)BUTTOCK_DEPTH * (rear - marks->hip_z);
}

static enum body_region torso_region(const struct landmarks *marks, const float *x) {
  if (x[2] < spine_depth(marks, x[1]))
    return BODY_REGION_BACK;
  return x[1] >= marks->chest_y ? BODY_REGION_CHEST : BODY_REGION_BELLY;
}

static enum body_region pelvis_region(const struct landmarks *marks, enum part part,
                                      const float *x) {
  if (on_seat(marks, part, x) && x[2] < marks->buttock_z)
    return BODY_REGION_BUTTOCKS;
  if (part == PART_THIGH && x[1] <= marks->hip_y)
    return BODY_REGION_THIGHS;
  return BODY_REGION_HIPS;
}

static enum body_region part_region(const struct landmarks *marks, enum part part, const float *x) {
  switch (part) {
  case PART_PELVIS:
  case PART_THIGH:
    return pelvis_region(marks, part, x);
  case PART_TORSO:
    return torso_region(marks, x);
  case PART_CALF:
    return BODY_REGION_CALVES;
  case PART_FOOT:
    return BODY_REGION_FEET;
  case PART_HEAD:
    return BODY_REGION_HEAD;
  case PART_COLLAR:
    return BODY_REGION_SHOULDERS;
  case PART_UPPER_ARM:
    return BODY_REGION_UPPER_ARMS;
  case PART_FOREARM:
    return BODY_REGION_FOREARMS;
  default:
    return BODY_REGION_HANDS;
  }
}

void body_regions(const struct body *body, uint8_t *regions) {
  const float *x = body_template(body);
  for (size_t v = 0; v < body_vertices(body); v++)
    regions[v] = (uint8_t)vertex_part(body_weight_joints(body) + v * BODY_WEIGHTS_MAX,
                                      body_weight_values(body) + v * BODY_WEIGHTS_MAX);
  struct landmarks marks;
  find_landmarks(body, regions, &marks);
  for (size_t v = 0; v < body_vertices(body); v++)
    regions[v] = (uint8_t)part_region(&marks, regions[v], x + 3 * v);
}
