// SPDX-License-Identifier: Apache-2.0
#include "sim/drive.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/pose.h"
#include "motion/rotation.h"

// Where one frame of the clip puts things. Places leave out the root's translation, which is added
// in double precision when accelerations are taken, so that they do not depend on the origin.
struct frame {
  double (*place)[3]; // [nodes]
  float (*turn)[4];   // [columns] rotation of each column's blend of bones
  double trans[3];
};

struct drive {
  const struct tissue *tissue;
  const struct tissue_solid *made;
  const struct clip *clip;
  float joints[BODY_JOINTS * 3];
  size_t at;              // the present frame
  struct frame frames[3]; // before, at and after it
  float (*part)[3];       // [V] the pose part, for a body that has one
  float *rotations, *loads;
};

static bool frame_allocate(struct frame *frame, size_t nodes, size_t columns) {
  frame->place = memory_alloc(nodes, sizeof *frame->place);
  frame->turn = memory_alloc(columns, sizeof *frame->turn);
  return frame->place && frame->turn;
}

int drive_new(struct drive **out, const struct tissue *tissue, const struct tissue_solid *made,
              const float *betas, size_t betas_count, struct dsnet_error *error) {
  *out = NULL;
  struct drive *drive = calloc(1, sizeof *drive);
  if (!drive)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the motion");
  const struct body *body = tissue_body(tissue);
  drive->tissue = tissue;
  drive->made = made;
  body_shape(body, betas, betas_count, NULL, drive->joints);
  drive->rotations = memory_alloc(made->tets, 4 * sizeof *drive->rotations);
  drive->loads = memory_alloc(made->nodes, 3 * sizeof *drive->loads);
  bool allocated = drive->rotations && drive->loads;
  for (int i = 0; i < 3 && allocated; i++)
    allocated = frame_allocate(&drive->frames[i], made->nodes, tissue_columns(tissue));
  if (allocated && body_posedirs(body)) {
    drive->part = memory_alloc(body_vertices(body), sizeof *drive->part);
    allocated = drive->part != NULL;
  }
  if (!allocated) {
    drive_free(drive);
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the motion");
  }
  *out = drive;
  return DSNET_OK;
}

void drive_free(struct drive *drive) {
  if (!drive)
    return;
  for (int i = 0; i < 3; i++) {
    free(drive->frames[i].place);
    free(drive->frames[i].turn);
  }
  free(drive->part);
  free(drive->rotations);
  free(drive->loads);
  free(drive);
}

// Rotations of the bones in the world, as quaternions.
static void bones_turn(const struct body *body, const float *pose, double turn[BODY_JOINTS][4]) {
  const int *parents = body_parents(body);
  for (int j = 0; j < BODY_JOINTS; j++) {
    double vector[3] = {0, 0, 0}, own[4];
    for (int c = 0; c < 3 && j < BODY_POSE_JOINTS; c++)
      vector[c] = pose[3 * j + c];
    quaternion_from_vector(vector, own);
    if (parents[j] < 0)
      memcpy(turn[j], own, sizeof own);
    else
      quaternion_multiply(turn[parents[j]], own, turn[j]);
  }
}

// The blend of a vertex's bones, normalised, each taken with the sign nearest to the heaviest.
static void vertex_turn(const struct body *body, double turn[BODY_JOINTS][4], uint32_t vertex,
                        float blend[4]) {
  const uint8_t *joints = body_weight_joints(body) + (size_t)vertex * BODY_WEIGHTS_MAX;
  const float *weights = body_weight_values(body) + (size_t)vertex * BODY_WEIGHTS_MAX;
  double sum[4] = {0, 0, 0, 0}, norm = 0;
  for (int k = 0; k < BODY_WEIGHTS_MAX; k++) {
    const double *q = turn[joints[k]], *first = turn[joints[0]];
    double dot = q[0] * first[0] + q[1] * first[1] + q[2] * first[2] + q[3] * first[3];
    for (int c = 0; c < 4; c++)
      sum[c] += (dot < 0 ? -weights[k] : weights[k]) * q[c];
  }
  for (int c = 0; c < 4; c++)
    norm += sum[c] * sum[c];
  norm = sqrt(norm); // at least the heaviest weight over two: the others are turned to its side
  for (int c = 0; c < 4; c++)
    blend[c] = (float)(sum[c] / norm);
}

// Linear blend skinning of a node, without the root's translation.
static void node_place(const struct drive *drive, const float *transforms, size_t node,
                       double place[3]) {
  const struct body *body = tissue_body(drive->tissue);
  uint32_t vertex = tissue_column_vertices(drive->tissue)[drive->made->column[node]];
  const uint8_t *joints = body_weight_joints(body) + (size_t)vertex * BODY_WEIGHTS_MAX;
  const float *weights = body_weight_values(body) + (size_t)vertex * BODY_WEIGHTS_MAX;
  double x[3];
  for (int c = 0; c < 3; c++) {
    x[c] = drive->made->positions[3 * node + (size_t)c];
    if (drive->part)
      x[c] += drive->part[vertex][c];
    place[c] = 0;
  }
  for (int k = 0; k < BODY_WEIGHTS_MAX; k++) {
    const float *m = transforms + 12 * joints[k];
    for (int c = 0; c < 3; c++)
      place[c] +=
          weights[k] * (m[4 * c] * x[0] + m[4 * c + 1] * x[1] + m[4 * c + 2] * x[2] + m[4 * c + 3]);
  }
}

static void frame_fill(struct drive *drive, struct frame *frame, size_t number) {
  static const float nowhere[3] = {0, 0, 0};
  const struct body *body = tissue_body(drive->tissue);
  const float *pose = drive->clip->pose + number * CLIP_POSE_SIZE;
  float transforms[BODY_JOINTS * 12];
  double turn[BODY_JOINTS][4];
  for (int c = 0; c < 3; c++)
    frame->trans[c] = drive->clip->trans[3 * number + (size_t)c];
  body_transforms(body, drive->joints, pose, nowhere, transforms, NULL);
  if (drive->part) {
    memset(drive->part, 0, body_vertices(body) * sizeof *drive->part);
    body_add_pose_part(body, pose, drive->part[0]);
  }
  bones_turn(body, pose, turn);
  const uint32_t *vertices = tissue_column_vertices(drive->tissue);
  for (size_t i = 0; i < tissue_columns(drive->tissue); i++)
    vertex_turn(body, turn, vertices[i], frame->turn[i]);
  for (size_t n = 0; n < drive->made->nodes; n++)
    node_place(drive, transforms, n, frame->place[n]);
}

// The frame a step before the first or after the last: as far beyond `end` as `inner` is inside.
static void frame_continue(const struct drive *drive, struct frame *frame, const struct frame *end,
                           const struct frame *inner) {
  for (size_t n = 0; n < drive->made->nodes; n++)
    for (int c = 0; c < 3; c++)
      frame->place[n][c] = 2 * end->place[n][c] - inner->place[n][c];
  for (int c = 0; c < 3; c++)
    frame->trans[c] = 2 * end->trans[c] - inner->trans[c];
}

// q v q*
static void turn_vector(const float q[4], const double v[3], double out[3]) {
  double t[3];
  for (int c = 0; c < 3; c++)
    t[c] = 2 * (q[1 + (c + 1) % 3] * v[(c + 2) % 3] - q[1 + (c + 2) % 3] * v[(c + 1) % 3]);
  for (int c = 0; c < 3; c++)
    out[c] = v[c] + q[0] * t[c] + q[1 + (c + 1) % 3] * t[(c + 2) % 3] -
             q[1 + (c + 2) % 3] * t[(c + 1) % 3];
}

static void loads_fill(struct drive *drive) {
  static const double standing[3] = {0, -DRIVE_GRAVITY, 0}; // rest space is y-up
  const struct frame *before = &drive->frames[0], *at = &drive->frames[1],
                     *after = &drive->frames[2];
  const double rate = drive->clip->fps * drive->clip->fps;
  for (size_t n = 0; n < drive->made->nodes; n++) {
    double held[3], load[3], square = 0;
    turn_vector(at->turn[drive->made->column[n]], standing, held);
    for (int c = 0; c < 3; c++) {
      double moved = after->place[n][c] - 2 * at->place[n][c] + before->place[n][c] +
                     (after->trans[c] - 2 * at->trans[c] + before->trans[c]);
      load[c] = (c == 2 ? -DRIVE_GRAVITY : 0) - moved * rate - held[c];
      square += load[c] * load[c];
    }
    double scale = square > DRIVE_LOAD_MAX * DRIVE_LOAD_MAX ? DRIVE_LOAD_MAX / sqrt(square) : 1;
    for (size_t c = 0; c < 3; c++)
      drive->loads[3 * n + c] = (float)(load[c] * scale);
  }
}

// An element turns by the mean of its corners' columns.
static void rotations_fill(struct drive *drive) {
  const struct tissue_solid *made = drive->made;
  const struct frame *at = &drive->frames[1];
  for (size_t t = 0; t < made->tets; t++) {
    const float *first = at->turn[made->column[made->corners[4 * t]]];
    double sum[4] = {0, 0, 0, 0}, norm = 0;
    for (size_t k = 0; k < 4; k++) {
      const float *q = at->turn[made->column[made->corners[4 * t + k]]];
      float dot = q[0] * first[0] + q[1] * first[1] + q[2] * first[2] + q[3] * first[3];
      for (int c = 0; c < 4; c++)
        sum[c] += dot < 0 ? -q[c] : q[c];
    }
    for (int c = 0; c < 4; c++)
      norm += sum[c] * sum[c];
    norm = sqrt(norm);
    for (size_t c = 0; c < 4; c++)
      drive->rotations[4 * t + c] = (float)(sum[c] / norm);
  }
}

static void present_fill(struct drive *drive) {
  loads_fill(drive);
  rotations_fill(drive);
}

void drive_start(struct drive *drive, const struct clip *clip) {
  drive->clip = clip;
  drive->at = 0;
  frame_fill(drive, &drive->frames[1], 0);
  frame_fill(drive, &drive->frames[2], clip->frames > 1 ? 1 : 0);
  frame_continue(drive, &drive->frames[0], &drive->frames[1], &drive->frames[2]);
  present_fill(drive);
}

bool drive_next(struct drive *drive) {
  if (drive->at + 1 >= drive->clip->frames)
    return false;
  drive->at++;
  struct frame oldest = drive->frames[0];
  drive->frames[0] = drive->frames[1];
  drive->frames[1] = drive->frames[2];
  drive->frames[2] = oldest;
  if (drive->at + 1 < drive->clip->frames)
    frame_fill(drive, &drive->frames[2], drive->at + 1);
  else
    frame_continue(drive, &drive->frames[2], &drive->frames[1], &drive->frames[0]);
  present_fill(drive);
  return true;
}

const float *drive_rotations(const struct drive *drive) {
  return drive->rotations;
}
const float *drive_loads(const struct drive *drive) {
  return drive->loads;
}

void drive_unturn(const struct drive *drive, const float *displacement, float *columns) {
  for (size_t i = 0; i < tissue_columns(drive->tissue); i++) {
    uint32_t node = drive->made->skin_node[i];
    double world[3] = {0, 0, 0}, rest[3];
    for (size_t c = 0; c < 3 && node != UINT32_MAX; c++)
      world[c] = displacement[4 * (size_t)node + c];
    const float *q = drive->frames[1].turn[i], back[4] = {q[0], -q[1], -q[2], -q[3]};
    turn_vector(back, world, rest);
    for (size_t c = 0; c < 3; c++)
      columns[3 * i + c] = (float)rest[c];
  }
}
