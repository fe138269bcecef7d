// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/pose.h"
#include "sim/drive.h"

struct simulation {
  const struct tissue *tissue;
  struct tissue_solid made;
  struct drive *drive;
  const struct clip *clip;
  size_t frame; // the next to be given
  size_t steps;
  float *rest;    // [V][3] T(betas)
  float *columns; // [columns][3]
  float joints[BODY_JOINTS * 3];
};

int simulation_new(struct simulation **out, const struct tissue *tissue, const float *betas,
                   size_t betas_count, struct dsnet_error *error) {
  *out = NULL;
  struct simulation *simulation = calloc(1, sizeof *simulation);
  if (!simulation)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the simulation");
  const struct body *body = tissue_body(tissue);
  simulation->tissue = tissue;
  simulation->rest = memory_alloc(body_vertices(body), 3 * sizeof *simulation->rest);
  simulation->columns = memory_alloc(tissue_columns(tissue), 3 * sizeof *simulation->columns);
  int code = DSNET_OK;
  if (!simulation->rest || !simulation->columns)
    code = dsnet_error_set(error, DSNET_ENOMEM, "no memory for the simulation");
  if (code == DSNET_OK)
    code = tissue_solid_init(&simulation->made, tissue, betas, betas_count, error);
  if (code == DSNET_OK)
    code = drive_new(&simulation->drive, tissue, &simulation->made, betas, betas_count, error);
  if (code != DSNET_OK) {
    simulation_free(simulation);
    return code;
  }
  body_shape(body, betas, betas_count, simulation->rest, simulation->joints);
  *out = simulation;
  return DSNET_OK;
}

void simulation_free(struct simulation *simulation) {
  if (!simulation)
    return;
  drive_free(simulation->drive);
  tissue_solid_deinit(&simulation->made);
  free(simulation->rest);
  free(simulation->columns);
  free(simulation);
}

size_t simulation_nodes(const struct simulation *simulation) {
  return simulation->made.nodes;
}
size_t simulation_tets(const struct simulation *simulation) {
  return simulation->made.tets;
}
size_t simulation_steps(const struct simulation *simulation) {
  return simulation->steps;
}

int simulation_start(struct simulation *simulation, const struct clip *clip,
                     struct dsnet_error *error) {
  if (clip->frames == 0 || fabs(clip->fps / SIMULATION_FPS - 1) > 1e-4)
    return dsnet_error_set(error, DSNET_EVALUE,
                           "a simulation needs a clip at %g frames a second, not %g",
                           SIMULATION_FPS, clip->fps);
  simulation->clip = clip;
  simulation->frame = 0;
  simulation->steps = 0;
  drive_start(simulation->drive, clip);
  solid_start(simulation->made.solid, NULL, NULL, drive_rotations(simulation->drive),
              drive_loads(simulation->drive));
  return DSNET_OK;
}

bool simulation_next(struct simulation *simulation, float *displacement) {
  struct drive *drive = simulation->drive;
  if (simulation->frame >= simulation->clip->frames)
    return false;
  if (simulation->frame > 0) {
    drive_next(drive);
    simulation->steps += solid_advance(simulation->made.solid, 1 / SIMULATION_FPS,
                                       drive_rotations(drive), drive_loads(drive));
  }
  simulation->frame++;
  drive_unturn(drive, solid_displacement(simulation->made.solid), simulation->columns);
  tissue_spread(simulation->tissue, simulation->columns, displacement);
  return true;
}

void simulation_pose(const struct simulation *simulation, const float *displacement, float *posed) {
  const struct body *body = tissue_body(simulation->tissue);
  const size_t frame = simulation->frame - 1;
  const float *pose = simulation->clip->pose + frame * CLIP_POSE_SIZE;
  float transforms[BODY_JOINTS * 12];
  body_transforms(body, simulation->joints, pose, simulation->clip->trans + 3 * frame, transforms,
                  NULL);
  memcpy(posed, simulation->rest, body_vertices(body) * 3 * sizeof *posed);
  body_add_pose_part(body, pose, posed);
  body_skin(body, transforms, posed, displacement, posed);
}
