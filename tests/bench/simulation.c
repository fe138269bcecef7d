// SPDX-License-Identifier: Apache-2.0
// What a 60 Hz frame of the physics reference costs on one core, for the training resolution and
// coarser and finer ones, on the built-in body and clip.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "builtin/builtin.h"
#include "sim/simulation.h"

#define FRAMES 240

static double cpu_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int measure(const struct body *body, const struct clip *clip,
                   const struct tissue_settings *settings, float mass, float *displacement,
                   struct dsnet_error *error) {
  const float betas[BODY_SHAPES_MAX] = {0, mass};
  struct tissue *tissue = NULL;
  struct simulation *simulation = NULL;
  int code = tissue_new(&tissue, body, settings, error);
  double made = cpu_seconds();
  if (code == DSNET_OK)
    code = simulation_new(&simulation, tissue, betas, BODY_SHAPES_MAX, error);
  made = cpu_seconds() - made;
  if (code == DSNET_OK)
    code = simulation_start(simulation, clip, error);
  if (code == DSNET_OK) {
    size_t frames = 0;
    double start = cpu_seconds();
    while (frames < FRAMES && simulation_next(simulation, displacement))
      frames++;
    double spent = cpu_seconds() - start;
    printf("%5.0f %6d %5.1f %6zu %6zu %6.1f %9.2f %10.1f\n", 1e3 * settings->edge, settings->layers,
           (double)mass, simulation_nodes(simulation), simulation_tets(simulation),
           (double)simulation_steps(simulation) / (double)frames, 1e3 * spent / (double)frames,
           1e3 * made);
  }
  simulation_free(simulation);
  tissue_free(tissue);
  return code;
}

int main(void) {
  static const struct tissue_settings resolutions[] = {{0.05, 2}, {0.03, 2}, {0.025, 3}};
  static const float masses[] = {0, 2};
  struct dsnet_error error = {0};
  struct body *body = NULL;
  struct clip *raw = NULL, *clip = NULL;
  float *displacement = NULL;
  int code = builtin_body_load(&body, &error);
  if (code == DSNET_OK)
    code = builtin_clip_load(&raw, &error);
  if (code == DSNET_OK)
    code = clip_resample(raw, SIMULATION_FPS, &clip, &error);
  if (code == DSNET_OK) {
    displacement = malloc(body_vertices(body) * 3 * sizeof *displacement);
    code = displacement ? code : dsnet_error_set(&error, DSNET_ENOMEM, "out of memory");
  }
  if (code == DSNET_OK)
    printf(" edge layers  mass  nodes   tets  steps  ms/frame  ms to make\n");
  for (size_t i = 0; i < sizeof resolutions / sizeof resolutions[0]; i++)
    for (size_t m = 0; code == DSNET_OK && m < sizeof masses / sizeof masses[0]; m++)
      code = measure(body, clip, &resolutions[i], masses[m], displacement, &error);
  if (code != DSNET_OK)
    fprintf(stderr, "simulation: %s\n", error.text);
  free(displacement);
  clip_free(raw);
  clip_free(clip);
  body_free(body);
  return code == DSNET_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
