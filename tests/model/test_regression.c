// SPDX-License-Identifier: Apache-2.0
// eval/regression.c: a linear second-order system is found and predicted in closed loop.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "eval/predictor.h"
#include "motion/excite.h"

enum { SEQUENCES = 8, FRAMES = 500, VERTICES = 2, VALUES = 6 };

// D of two vertices: oscillators of 4 Hz driven by what the pelvis and the chest feel, sampled at
// 60 Hz by a second-order recurrence, which is what the regression can represent.
static void simulate(const struct sequence *sequence, float *out) {
  const struct feature_set *set = feature_set_find("inertial");
  float *memory = calloc(set->memory, sizeof *memory), features[256];
  double angle = 2 * M_PI * 4 / 60, fade = 0.95;
  for (size_t t = 0; t < FRAMES; t++) {
    set->step(60, sequence->clip->pose + t * CLIP_POSE_SIZE, sequence->clip->trans + t * 3,
              sequence->betas, memory, features);
    for (size_t i = 0; i < VALUES; i++) {
      double before = t > 0 ? (double)out[(t - 1) * VALUES + i] : 0;
      double earlier = t > 1 ? (double)out[(t - 2) * VALUES + i] : 0;
      double force = t > 2 ? (double)features[9 * (i < 3 ? 0 : 9) + 6 + i % 3] : 0;
      out[t * VALUES + i] =
          (float)(2 * fade * cos(angle) * before - fade * fade * earlier - 1e-5 * force);
    }
  }
  free(memory);
}

static struct dataset make_dataset(void) {
  struct dataset dataset = {.vertices = VERTICES, .count = SEQUENCES};
  float *all = calloc(SEQUENCES * FRAMES * VALUES, sizeof *all);
  dataset.sequences = calloc(SEQUENCES, sizeof *dataset.sequences);
  for (size_t s = 0; s < SEQUENCES; s++) {
    struct sequence *sequence = &dataset.sequences[s];
    struct excite_settings settings = excite_settings_default(s);
    struct clip *still;
    sequence->split = s < SEQUENCES - 1 ? SPLIT_TRAIN : SPLIT_VALIDATION;
    sequence->frames = FRAMES;
    assert_int_equal(clip_new(&still, FRAMES, 60, NULL), 0);
    assert_int_equal(excite_clip(still, &settings, &sequence->clip, NULL), 0);
    clip_free(still);
    simulate(sequence, all + s * FRAMES * VALUES);
  }
  assert_int_equal(subspace_fit(&dataset.subspace, all, FRAMES, VALUES, 6, 0, 64, NULL), 0);
  for (size_t s = 0; s < SEQUENCES; s++) {
    struct sequence *sequence = &dataset.sequences[s];
    sequence->latents = calloc(FRAMES * dataset.subspace.latent, sizeof(float));
    sequence->residual = calloc(FRAMES, sizeof(float));
    subspace_project(&dataset.subspace, all + s * FRAMES * VALUES, FRAMES, sequence->latents,
                     sequence->residual);
  }
  free(all);
  return dataset;
}

static void a_linear_system_is_found(void **state) {
  (void)state;
  struct dataset dataset = make_dataset();
  struct predictor predictor;
  assert_int_equal(predictor_regression(&predictor, &dataset, feature_set_find("inertial"), NULL),
                   0);
  const struct sequence *sequence = &dataset.sequences[SEQUENCES - 1];
  double error = 0, energy = 0;
  for (size_t t = 0; t < FRAMES; t++) {
    float predicted[VALUES], truth[VALUES];
    struct predictor_frame frame = {.index = t,
                                    .pose = sequence->clip->pose + t * CLIP_POSE_SIZE,
                                    .trans = sequence->clip->trans + t * 3,
                                    .betas = sequence->betas};
    predictor.predict(predictor.context, &frame, predicted);
    subspace_expand(&dataset.subspace, sequence->latents + t * dataset.subspace.latent, 1, truth);
    for (size_t i = 0; i < VALUES; i++) {
      error += pow((double)predicted[i] - (double)truth[i], 2);
      energy += pow((double)truth[i], 2);
    }
  }
  print_message("explained %.5f\n", 1 - error / energy);
  assert_true(error < 0.01 * energy);
  predictor.release(predictor.context);
  dataset_deinit(&dataset);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_linear_system_is_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
