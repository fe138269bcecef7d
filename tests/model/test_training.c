// SPDX-License-Identifier: Apache-2.0
// The training loop from end to end on a toy tissue: it learns what it is said to learn, the result
// does not depend on threads or interruptions, and the written model streams what was trained.
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "motion/excite.h"
#include "nn/gemm.h"
#include "train/checkpoint.h"
#include "train/export.h"
#include "train/predict.h"

enum { SEQUENCES = 14, FRAMES = 400, POINTS = 4, VALUES = POINTS * 3 };

// Toy tissue: masses on springs at two bones' joints, softer along one axis of the bone than along
// the others and stiffening, driven by what the inertial features say the bone feels. Four small
// steps a frame.
static void simulate_toy(const struct sequence *sequence, float *out) {
  static const size_t bones[POINTS] = {0, 0, 9, 9};
  const struct feature_set *set = feature_set_find("inertial");
  float *memory = calloc(set->memory, sizeof *memory), features[256];
  double place[VALUES] = {0}, speed[VALUES] = {0};
  for (size_t t = 0; t < FRAMES; t++) {
    set->step(60, sequence->clip->pose + t * CLIP_POSE_SIZE, sequence->clip->trans + t * 3,
              sequence->betas, memory, features);
    for (size_t i = 0; i < VALUES && t > 2; i++) {
      const float *bone = features + 9 * bones[i / 3];
      double hertz = (i % 3 == 0 ? 6 : 3.5) + 0.7 * (double)(i / 3 % 2), w = 2 * M_PI * hertz;
      double gravity = i % 3 == 1 ? 9.81 : 0; // its sag is not part of D; the body stays upright
      for (int step = 0; step < 4; step++) {
        double pull = -w * w * place[i] * (1 + 400 * place[i] * place[i]) - 0.36 * w * speed[i];
        speed[i] += (pull - ((double)bone[i % 3] - gravity)) / 240;
        place[i] += speed[i] / 240;
      }
    }
    for (size_t i = 0; i < VALUES; i++)
      out[t * VALUES + i] = (float)place[i];
  }
  free(memory);
}

static void make_clip(struct sequence *sequence, size_t number) {
  struct clip *still;
  struct excite_settings settings = excite_settings_default(100 + number);
  settings.rotation = 0.1;
  settings.shake = 0.02;
  assert_int_equal(clip_new(&still, FRAMES, 60, NULL), 0);
  for (size_t t = 0; t < FRAMES; t++)
    still->pose[t * CLIP_POSE_SIZE] = (float)M_PI_2;
  assert_int_equal(excite_clip(still, &settings, &sequence->clip, NULL), 0);
  clip_free(still);
}

static struct dataset make_dataset(void) {
  struct dataset dataset = {.vertices = POINTS, .count = SEQUENCES};
  dataset.sequences = calloc(SEQUENCES, sizeof *dataset.sequences);
  float *displacements = calloc((size_t)SEQUENCES * FRAMES * VALUES, sizeof *displacements);
  for (size_t s = 0; s < SEQUENCES; s++) {
    struct sequence *sequence = &dataset.sequences[s];
    snprintf(sequence->name, sizeof sequence->name, "s_%zu", s);
    sequence->split = s < SEQUENCES - 2 ? SPLIT_TRAIN : SPLIT_VALIDATION;
    sequence->frames = FRAMES;
    make_clip(sequence, s);
    simulate_toy(sequence, displacements + s * FRAMES * VALUES);
  }
  // One sequence has enough snapshots of twelve numbers each.
  gemm_blas_threads(1);
  assert_int_equal(subspace_fit(&dataset.subspace, displacements, FRAMES, VALUES, 8, 0, 64, NULL),
                   0);
  for (size_t s = 0; s < SEQUENCES; s++) {
    struct sequence *sequence = &dataset.sequences[s];
    sequence->latents = calloc(FRAMES * dataset.subspace.latent, sizeof(float));
    sequence->residual = calloc(FRAMES, sizeof(float));
    subspace_project(&dataset.subspace, displacements + s * FRAMES * VALUES, FRAMES,
                     sequence->latents, sequence->residual);
  }
  free(displacements);
  return dataset;
}

static int set_up(void **state) {
  struct dataset *dataset = malloc(sizeof *dataset);
  *dataset = make_dataset();
  *state = dataset;
  return 0;
}

static int tear_down(void **state) {
  dataset_deinit(*state);
  free(*state);
  return 0;
}

static struct trainer_options small_options(void) {
  return (struct trainer_options){.features = feature_set_find("inertial"),
                                  .layers = 1,
                                  .hidden = 24,
                                  .skip = true,
                                  .window = 50,
                                  .burn_in = 15,
                                  .segment = 400,
                                  .shards = 2,
                                  .streams = 4,
                                  .threads = 2,
                                  .epochs = 3,
                                  .rate = 0.01,
                                  .rate_floor = 0.02,
                                  .warmup = 0.02,
                                  .clip = 1,
                                  .floor = 0.3,
                                  .seed = 5};
}

static struct trainer *new_trainer(const struct dataset *dataset,
                                   const struct trainer_options *options) {
  struct trainer *trainer;
  assert_int_equal(trainer_new(&trainer, dataset, options, NULL), 0);
  return trainer;
}

static void run_to_end(struct trainer *trainer) {
  while (!trainer_finished(trainer))
    assert_int_equal(trainer_epoch(trainer, NULL), 0);
}

static void a_toy_tissue_is_learned(void **state) {
  struct trainer_options options = small_options();
  options.features = feature_set_find("springs");
  options.epochs = 14;
  struct trainer *trainer = new_trainer(*state, &options);
  double before, after, millimetres;
  assert_int_equal(
      trainer_evaluate(trainer, trainer->weights, SPLIT_VALIDATION, &before, &millimetres, NULL),
      0);
  run_to_end(trainer);
  assert_int_equal(
      trainer_evaluate(trainer, trainer->best, SPLIT_VALIDATION, &after, &millimetres, NULL), 0);
  print_message("explained %.3f before, %.3f after, %.3f mm\n", before, after, millimetres);
  assert_true(before < 0.1);
  assert_true(after > 0.7);
  assert_true(after == trainer->records[trainer->best_epoch - 1].validation);
  trainer_free(trainer);
}

static void assert_same_weights(const struct trainer *a, const struct trainer *b) {
  assert_memory_equal(a->weights, b->weights, a->layout.total * sizeof(float));
  assert_memory_equal(a->best, b->best, a->layout.total * sizeof(float));
}

static void the_result_does_not_depend_on_threads(void **state) {
  struct trainer_options options = small_options();
  struct trainer *two = new_trainer(*state, &options);
  options.threads = 1;
  struct trainer *one = new_trainer(*state, &options);
  run_to_end(two);
  run_to_end(one);
  assert_same_weights(one, two);
  options.seed++;
  struct trainer *other = new_trainer(*state, &options);
  assert_memory_not_equal(other->weights, one->weights, 100);
  trainer_free(one);
  trainer_free(two);
  trainer_free(other);
}

static bool stop_in_the_second_epoch(void *context, const struct trainer_progress *progress) {
  (void)context;
  return progress->epoch < 2 || progress->step < 2;
}

static void a_resumed_run_equals_an_uninterrupted_one(void **state) {
  char path[] = "/tmp/dsnet-training-XXXXXX";
  struct dsnet_error e = {0};
  close(mkstemp(path));
  struct trainer_options options = small_options();
  struct trainer *whole = new_trainer(*state, &options);
  run_to_end(whole);

  struct trainer *part = new_trainer(*state, &options);
  part->progress = stop_in_the_second_epoch;
  assert_int_equal(trainer_epoch(part, NULL), 0);
  assert_int_equal(checkpoint_save(part, path, NULL), 0);
  assert_int_equal(trainer_epoch(part, NULL), DSNET_ECANCELLED);
  trainer_free(part);

  struct trainer *resumed = new_trainer(*state, &options);
  assert_int_equal(checkpoint_load(resumed, path, NULL), 0);
  assert_int_equal(resumed->epoch, 1);
  run_to_end(resumed);
  assert_same_weights(whole, resumed);

  // Of another network, and a file that is none.
  options.hidden = 32;
  struct trainer *other = new_trainer(*state, &options);
  assert_int_equal(checkpoint_load(other, path, &e), DSNET_EMISMATCH);
  assert_non_null(strstr(e.text, path));
  FILE *file = fopen(path, "w");
  fputs("no npz", file);
  fclose(file);
  assert_true(checkpoint_load(other, path, NULL) < 0);
  trainer_free(other);
  trainer_free(resumed);
  trainer_free(whole);
  unlink(path);
}

// The serving code, one frame at a time, against the training code's forward pass.
static void the_written_model_streams_what_was_trained(void **state) {
  const struct dataset *dataset = *state;
  char path[] = "/tmp/dsnet-training-XXXXXX";
  close(mkstemp(path));
  for (int skip = 0; skip < 2; skip++) {
    struct trainer_options options = small_options();
    options.layers = 2;
    options.skip = skip;
    options.epochs = 2;
    struct trainer *trainer = new_trainer(dataset, &options);
    run_to_end(trainer);
    assert_int_equal(export_model(trainer, NULL, "{\"seed\":5}", NET_F32, path, NULL), 0);
    struct net *net;
    struct net_scratch *scratch;
    assert_int_equal(net_load(&net, path, NULL), 0);
    assert_true(net_config(net)->trained);
    assert_int_equal(net_config(net)->skip, skip);
    assert_non_null(strstr(net_provenance(net), "seed"));
    assert_int_equal(net_scratch_new(&scratch, net, 1, NULL), 0);
    float *session = calloc(net_state_size(net), sizeof *session);
    const struct sequence *sequence = &dataset->sequences[SEQUENCES - 1];
    size_t latent = dataset->subspace.latent;
    float *expected = calloc(FRAMES * latent, sizeof *expected), z[64], frame[VALUES], d[VALUES];
    assert_int_equal(predict_latents(trainer, trainer->best, sequence, expected, NULL), 0);
    for (size_t t = 0; t < FRAMES; t++) {
      struct net_item item = {.state = session,
                              .pose = sequence->clip->pose + t * CLIP_POSE_SIZE,
                              .trans = sequence->clip->trans + t * 3,
                              .betas = sequence->betas,
                              .latent = z,
                              .displacement = d};
      net_step(net, scratch, &item, 1);
      for (size_t k = 0; k < latent; k++)
        assert_true(fabsf(z[k] - expected[t * latent + k]) < 1e-4f);
      subspace_expand(&dataset->subspace, expected + t * latent, 1, frame);
      for (size_t i = 0; i < VALUES; i++)
        assert_true(fabsf(d[i] - frame[i]) < 1e-5f);
    }
    free(session);
    free(expected);
    net_scratch_free(scratch);
    net_free(net);
    trainer_free(trainer);
  }
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_toy_tissue_is_learned),
      cmocka_unit_test(the_result_does_not_depend_on_threads),
      cmocka_unit_test(a_resumed_run_equals_an_uninterrupted_one),
      cmocka_unit_test(the_written_model_streams_what_was_trained),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
