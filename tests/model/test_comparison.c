// SPDX-License-Identifier: Apache-2.0
// From files to numbers: posed sequences on disk are un-posed to the displacements they were made
// from, the springs that made them are found again, and what does not belong together is refused.
#include "eval/card.h"
#include "eval/comparison.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "body/pose.h"
#include "body_sample.h"
#include "motion/excite.h"

enum { V = SAMPLE_VERTICES, FRAMES = 300, SEQUENCES = 5 };

static char folder[64];
static struct body *body;

// Offsets of a damped oscillator of 5.2 Hz and ratio 0.2 in every coordinate, driven by the skinned
// vertex, in many small steps.
static void write_sequence(const char *name, uint64_t seed) {
  struct excite_settings settings = excite_settings_default(seed);
  struct clip *still, *clip;
  struct unpose unpose;
  struct dyna_writer *writer;
  char path[128];
  float skinned[3][V * 3], posed[V * 3];
  double y[V * 3] = {0}, v[V * 3] = {0}, w = 2 * M_PI * 5.2;
  assert_int_equal(clip_new(&still, FRAMES, 60, NULL), 0);
  assert_int_equal(excite_clip(still, &settings, &clip, NULL), 0);
  clip_free(still);
  clip->betas[0] = 0.5f;
  clip->betas_count = 10;
  snprintf(path, sizeof path, "%s/%s.npz", folder, name);
  assert_int_equal(clip_save(clip, path, NULL), 0);
  snprintf(path, sizeof path, "%s/%s.h5", folder, name);
  assert_int_equal(
      dyna_writer_open(&writer, path, body_triangles(body), body_faces(body), V, 0, NULL), 0);
  assert_int_equal(dyna_writer_begin(writer, name, NULL), 0);
  assert_int_equal(unpose_init(&unpose, body, clip->betas, 10, NULL), 0);
  for (size_t t = 0; t < FRAMES; t++) {
    memmove(skinned[1], skinned[0], 2 * sizeof skinned[0]);
    unpose_frame(&unpose, clip->pose + t * CLIP_POSE_SIZE, clip->trans + t * 3);
    body_skin(body, unpose.transforms, unpose.rest, NULL, skinned[0]);
    for (size_t i = 0; i < V * 3; i++) {
      double a =
          t < 2
              ? 0
              : 3600 * ((double)skinned[0][i] - 2 * (double)skinned[1][i] + (double)skinned[2][i]);
      for (int step = 0; step < 64; step++) {
        v[i] += (-w * w * y[i] - 0.4 * w * v[i] - a) / (60 * 64);
        y[i] += v[i] / (60 * 64);
      }
      posed[i] = skinned[0][i] + (float)y[i];
    }
    assert_int_equal(dyna_writer_append(writer, posed, 1, NULL), 0);
  }
  assert_int_equal(dyna_writer_end(writer, NULL), 0);
  assert_int_equal(dyna_writer_close(writer, NULL), 0);
  unpose_deinit(&unpose);
  clip_free(clip);
}

static int set_up(void **state) {
  (void)state;
  static struct body_sample sample;
  char path[128];
  snprintf(folder, sizeof folder, "/tmp/dsnet-eval-XXXXXX");
  if (!mkdtemp(folder))
    return -1;
  sample_init(&sample, 24, 10, 0);
  for (size_t i = 0; i < V; i++) { // one bone a vertex, so that no blend is singular
    memset(sample.weights + i * 24, 0, 24 * sizeof(float));
    sample.weights[i * 24 + (i * 5) % 22] = 1;
  }
  snprintf(path, sizeof path, "%s/body.npz", folder);
  sample_write(&sample, &(struct sample_form){0}, path);
  if (body_load(&body, path, NULL) < 0)
    return -1;
  static const char *const names[SEQUENCES] = {"s0_run", "s0_walk", "s0_stop", "s0_held", "s1_run"};
  for (size_t i = 0; i < SEQUENCES; i++)
    write_sequence(names[i], i);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  char command[128];
  body_free(body);
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return system(command);
}

static struct splits *splits_for(const char *text) {
  struct splits *splits;
  assert_int_equal(splits_parse(&splits, text, "test", NULL), 0);
  return splits;
}

#define RULES "subject s1\nmotion held\nvalidation s0_stop\n"

static void displacements_become_latents(void **state) {
  (void)state;
  struct splits *splits = splits_for(RULES);
  struct dyna *dyna;
  struct dataset dataset;
  const struct dataset_options options = {.loss = 1e-3, .snapshots = 300};
  assert_int_equal(dyna_open(&dyna, folder, NULL), 0);
  assert_int_equal(dataset_build(&dataset, dyna, body, splits, &options, NULL), 0);
  assert_int_equal(dataset.count, 3);
  assert_int_equal(dataset_frames(&dataset, SPLIT_TRAIN), 2 * FRAMES);
  assert_int_equal(dataset_frames(&dataset, SPLIT_VALIDATION), FRAMES);
  assert_true(dataset.subspace.captured > 0.999);
  for (size_t s = 0; s < dataset.count; s++) {
    double inside = 0, outside = 0;
    for (size_t t = 0; t < FRAMES; t++) {
      outside += (double)dataset.sequences[s].residual[t];
      for (size_t k = 0; k < dataset.subspace.latent; k++)
        inside += pow((double)dataset.sequences[s].latents[t * dataset.subspace.latent + k] *
                          (double)dataset.subspace.scale[k],
                      2);
    }
    assert_true(inside > 0 && outside < 0.1 * inside);
  }
  dataset_deinit(&dataset);
  dyna_close(dyna);
  splits_free(splits);
}

static void the_springs_that_made_the_data_are_found(void **state) {
  (void)state;
  struct splits *splits = splits_for(RULES);
  struct dyna *dyna;
  struct comparison comparison;
  assert_int_equal(dyna_open(&dyna, folder, NULL), 0);
  assert_int_equal(comparison_init(&comparison, NULL), 0);
  predictor_zero(&comparison.rows[0], V);
  assert_int_equal(predictor_springs(&comparison.rows[1], body, dyna, splits, NULL), 0);
  comparison.count = 2;
  assert_int_equal(comparison_run(&comparison, dyna, body, splits, 0, NULL, NULL, NULL), 0);
  assert_true(comparison.frames == 2 * FRAMES);
  assert_int_equal(comparison.sequence_count, 2);
  for (size_t i = 0; i < 2; i++) {
    const struct comparison_sequence *sequence = &comparison.sequences[i];
    const struct metrics *alone = &comparison.metrics[1][sequence->split]; // one in each split
    assert_true(sequence->frames == FRAMES && sequence->betas[0] == 0.5f);
    assert_true(sequence->rows[0].explained == 0);
    assert_true(fabs(sequence->rows[1].explained - metrics_explained(alone)) < 1e-12);
    assert_true(fabs(sequence->rows[1].mean_mm - metrics_mean_mm(alone)) < 1e-12);
  }
  assert_true(comparison.metrics[0][SPLIT_UNSEEN_BOTH].frames == 0);
  for (int split = SPLIT_UNSEEN_MOTION; split <= SPLIT_UNSEEN_SHAPE; split++) {
    assert_true(comparison.metrics[0][split].frames == FRAMES);
    assert_true(metrics_explained(&comparison.metrics[0][split]) == 0);
    assert_true(metrics_explained(&comparison.metrics[1][split]) > 0.99);
  }
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  comparison_print(&comparison, true, out);
  fclose(out);
  assert_non_null(strstr(text, "zero-restlength springs |"));
  assert_non_null(strstr(text, "unseen shape, seen motion"));
  free(text);
  comparison_deinit(&comparison);
  dyna_close(dyna);
  splits_free(splits);
}

static void what_does_not_belong_together_is_refused(void **state) {
  (void)state;
  struct dsnet_error e = {0};
  struct dyna *dyna;
  struct dataset dataset;
  const struct dataset_options options = {.latent = 4, .snapshots = 50};
  struct splits *all = splits_for("motion *");
  assert_int_equal(dyna_open(&dyna, folder, NULL), 0);
  assert_int_equal(dataset_build(&dataset, dyna, body, all, &options, &e), DSNET_EMISSING);
  splits_free(all);

  // A clip that is much shorter than its sequence.
  struct clip *clip;
  char path[128];
  snprintf(path, sizeof path, "%s/s0_walk.npz", folder);
  assert_int_equal(clip_load(&clip, path, NULL), 0);
  clip->frames = FRAMES / 2;
  assert_int_equal(clip_save(clip, path, NULL), 0);
  clip_free(clip);
  struct splits *splits = splits_for(RULES);
  memset(&e, 0, sizeof e);
  assert_int_equal(dataset_build(&dataset, dyna, body, splits, &options, &e), DSNET_EMISMATCH);
  assert_non_null(strstr(e.text, "s0_walk"));
  unlink(path);
  memset(&e, 0, sizeof e);
  assert_true(dataset_build(&dataset, dyna, body, splits, &options, &e) < 0);
  assert_non_null(strstr(e.text, "s0_walk"));
  splits_free(splits);
  dyna_close(dyna);
}

static void a_card_keeps_what_was_there_and_adds_what_was_reached(void **state) {
  (void)state;
  struct comparison comparison;
  assert_int_equal(comparison_init(&comparison, NULL), 0);
  struct metrics *m = &comparison.metrics[2][SPLIT_UNSEEN_BOTH];
  m->frames = 50;
  m->vertices = V;
  m->distance = 0.002 * 50 * V;
  m->square = 1;
  m->energy = 8;
  char *text =
      card_write(&comparison, 2, "{\"seed\":7}", "# why\nsubject s1\n\nmotion held # the last\n");
  json_t *card = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(card);
  assert_int_equal(json_integer_value(json_object_get(card, "seed")), 7);
  json_t *rules = json_object_get(card, "splits");
  assert_int_equal(json_array_size(rules), 2);
  assert_string_equal(json_string_value(json_array_get(rules, 1)), "motion held");
  json_t *reached = json_object_get(card, "evaluation");
  assert_int_equal(json_object_size(reached), 1);
  json_t *figures = json_object_get(reached, split_name(SPLIT_UNSEEN_BOTH));
  assert_int_equal(json_integer_value(json_object_get(figures, "frames")), 50);
  assert_true(fabs(json_real_value(json_object_get(figures, "mean_mm")) - 2) < 1e-5);
  assert_true(fabs(json_real_value(json_object_get(figures, "explained")) - 0.875) < 1e-5);
  json_decref(card);
  free(text);
  assert_null(card_write(&comparison, 2, "[]", ""));
  comparison_deinit(&comparison);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(displacements_become_latents),
      cmocka_unit_test(the_springs_that_made_the_data_are_found),
      cmocka_unit_test(what_does_not_belong_together_is_refused),
      cmocka_unit_test(a_card_keeps_what_was_there_and_adds_what_was_reached),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
