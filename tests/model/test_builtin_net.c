// SPDX-License-Identifier: Apache-2.0
// The built-in model against its card: a motion and a shape that it never saw are simulated anew,
// and its error must be what the card says it was there.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/memory.h"
#include "builtin/builtin.h"
#include "motion/generate.h"
#include "motion/smooth.h"
#include "sim/simulation.h"

// As model/train/recipe.sh made it: jumping jacks, rate 0.9, amplitude 1.1, smoothed at 8 Hz, on
// the first shape that was held out.
#define SEQUENCE "s091_jacks-r09"

static json_t *card_of(const struct net *net) {
  json_t *card = json_loads(net_provenance(net), JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(card);
  return card;
}

static void its_card_says_where_it_comes_from(void **state) {
  (void)state;
  struct net *net;
  struct body *body;
  assert_int_equal(builtin_net_load(&net, NULL), 0);
  assert_int_equal(builtin_body_load(&body, NULL), 0);
  assert_true(net_config(net)->trained);
  assert_true(net_config(net)->has_body_hash);
  assert_memory_equal(net_config(net)->body_hash, body_hash(body), BODY_HASH_SIZE);
  assert_int_equal(net_config(net)->vertices, body_vertices(body));
  json_t *card = card_of(net);
  static const char *const members[] = {"command", "seed", "frames", "splits", "evaluation"};
  for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
    if (!json_object_get(card, members[i]))
      fail_msg("the card lacks \"%s\"", members[i]);
  assert_int_equal(json_object_size(json_object_get(card, "evaluation")), 3);
  json_decref(card);
  body_free(body);
  net_free(net);
}

static struct clip *the_clip(void) {
  const struct generate_settings settings = {.rate = 0.9, .amplitude = 1.1};
  struct clip *clip;
  assert_int_equal(generate_clip(&clip, generate_kind_find("jacks"), &settings, 8, 60, 0, NULL), 0);
  assert_int_equal(clip_smooth(clip, 8, NULL), 0);
  return clip;
}

// Sums over frames of what physics and network say.
struct sums {
  double distance, square, energy, samples;
};

static void add_frame(struct sums *sums, const float *truth, const float *predicted,
                      size_t vertices) {
  for (size_t v = 0; v < vertices; v++) {
    double square = 0;
    for (size_t k = 3 * v; k < 3 * v + 3; k++) {
      double e = (double)predicted[k] - (double)truth[k];
      square += e * e;
      sums->energy += (double)truth[k] * (double)truth[k];
    }
    sums->square += square;
    sums->distance += sqrt(square);
  }
  sums->samples += (double)vertices;
}

static struct sums compare(const struct net *net, const struct body *body, const struct clip *clip,
                           const float *betas) {
  struct sums sums = {0};
  struct tissue *tissue;
  struct simulation *simulation;
  struct net_scratch *scratch;
  size_t vertices = body_vertices(body);
  float *truth = memory_alloc(3 * vertices, sizeof *truth);
  float *predicted = memory_alloc(3 * vertices, sizeof *predicted);
  float *values = memory_alloc(net_state_size(net), sizeof *values);
  assert_int_equal(tissue_new(&tissue, body, &tissue_settings_default, NULL), 0);
  assert_int_equal(simulation_new(&simulation, tissue, betas, 10, NULL), 0);
  assert_int_equal(simulation_start(simulation, clip, NULL), 0);
  assert_int_equal(net_scratch_new(&scratch, net, 1, NULL), 0);
  for (size_t t = 0; simulation_next(simulation, truth); t++) {
    const struct net_item item = {.state = values,
                                  .pose = clip->pose + t * CLIP_POSE_SIZE,
                                  .trans = clip->trans + 3 * t,
                                  .betas = betas,
                                  .displacement = predicted};
    net_step(net, scratch, &item, 1);
    add_frame(&sums, truth, predicted, vertices);
  }
  net_scratch_free(scratch);
  simulation_free(simulation);
  tissue_free(tissue);
  free(truth);
  free(predicted);
  free(values);
  return sums;
}

static void its_error_is_what_the_card_says(void **state) {
  (void)state;
  struct net *net;
  struct body *body;
  float betas[10];
  assert_int_equal(builtin_net_load(&net, NULL), 0);
  assert_int_equal(builtin_body_load(&body, NULL), 0);
  json_t *card = card_of(net);
  json_t *figures = json_object_get(json_object_get(card, "sequences"), SEQUENCE);
  assert_non_null(figures);
  for (size_t i = 0; i < 10; i++)
    betas[i] = (float)json_real_value(json_array_get(json_object_get(figures, "betas"), i));
  struct clip *clip = the_clip();
  assert_int_equal(json_integer_value(json_object_get(figures, "frames")), clip->frames);
  struct sums sums = compare(net, body, clip, betas);
  double mean = 1000 * sums.distance / sums.samples, explained = 1 - sums.square / sums.energy;
  double card_mean = json_real_value(json_object_get(figures, "mean_mm"));
  double card_explained = json_real_value(json_object_get(figures, "explained"));
  if (!(fabs(mean - card_mean) < 0.02 * card_mean && fabs(explained - card_explained) < 0.005))
    fail_msg("mean error %.4f mm, explained %.4f; the card says %.4f mm, %.4f", mean, explained,
             card_mean, card_explained);
  assert_true(explained > 0.75);
  json_decref(card);
  clip_free(clip);
  body_free(body);
  net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(its_card_says_where_it_comes_from),
      cmocka_unit_test(its_error_is_what_the_card_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
