// SPDX-License-Identifier: Apache-2.0
// motion/excite.c: band, size, rests, headings, and the clip it is made from.
#include "motion/excite.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "motion/deglitch.h"

enum { FRAMES = 1200 };

static struct clip *standing(void) {
  struct clip *clip;
  assert_int_equal(clip_new(&clip, FRAMES, 60, NULL), 0);
  for (size_t t = 0; t < FRAMES; t++) {
    clip->pose[t * CLIP_POSE_SIZE] = (float)M_PI_2;
    clip->trans[3 * t + 2] = 0.9f;
  }
  clip->betas[1] = 2;
  clip->betas_count = 10;
  return clip;
}

static struct clip *excited(const struct excite_settings *settings) {
  struct clip *still = standing(), *clip;
  assert_int_equal(excite_clip(still, settings, &clip, NULL), 0);
  clip_free(still);
  return clip;
}

// Power of a series at a frequency (Goertzel), relative to nothing in particular.
static double power_at(const struct clip *clip, size_t coordinate, double hertz) {
  double re = 0, im = 0;
  for (size_t t = 0; t < FRAMES; t++) {
    double window = 1 - cos(2 * M_PI * (double)t / FRAMES);
    double x = window * (double)clip->pose[t * CLIP_POSE_SIZE + coordinate];
    re += x * cos(2 * M_PI * hertz * (double)t / 60);
    im += x * sin(2 * M_PI * hertz * (double)t / 60);
  }
  return re * re + im * im;
}

static void joints_move_within_the_band_and_as_much_as_asked(void **state) {
  (void)state;
  double total = 0;
  struct excite_settings settings = excite_settings_default(3);
  struct clip *clip = excited(&settings);
  for (size_t joint = 1; joint < 22; joint++)
    for (size_t t = 0; t < FRAMES; t++)
      for (size_t i = 0; i < 3; i++) {
        double v = (double)clip->pose[t * CLIP_POSE_SIZE + 3 * joint + i];
        total += v * v / (21.0 * FRAMES);
      }
  assert_true(sqrt(total) > 0.06 && sqrt(total) < 0.16);
  double inside = 0, outside = 0;
  for (size_t c = 3; c < 66; c++) {
    for (double hertz = 0.6; hertz < 4; hertz += 0.2)
      inside += power_at(clip, c, hertz);
    for (double hertz = 6.5; hertz < 15; hertz += 0.5)
      outside += power_at(clip, c, hertz);
  }
  assert_true(outside < 1e-3 * inside);
  assert_true(clip_joint_speed(clip) < 25);
  assert_true(clip->betas[1] == 2);
  clip_free(clip);
}

static void there_are_rests_between_the_bouts(void **state) {
  (void)state;
  struct excite_settings settings = excite_settings_default(4);
  struct clip *clip = excited(&settings);
  size_t still = 0;
  for (size_t t = 1; t < FRAMES; t++)
    still += memcmp(clip->pose + t * CLIP_POSE_SIZE + 3, clip->pose + (t - 1) * CLIP_POSE_SIZE + 3,
                    63 * sizeof(float)) == 0;
  assert_true(still > FRAMES / 8 && still < FRAMES / 2);
  clip_free(clip);
}

static void seeds_decide_everything(void **state) {
  (void)state;
  struct excite_settings settings = excite_settings_default(5);
  struct clip *a = excited(&settings), *b = excited(&settings);
  settings.seed++;
  struct clip *c = excited(&settings);
  assert_memory_equal(a->pose, b->pose, FRAMES * CLIP_POSE_SIZE * sizeof(float));
  assert_memory_not_equal(a->pose, c->pose, FRAMES * CLIP_POSE_SIZE * sizeof(float));
  clip_free(a);
  clip_free(b);
  clip_free(c);
}

static void senseless_settings_are_refused(void **state) {
  (void)state;
  struct excite_settings settings = excite_settings_default(1);
  struct clip *still = standing(), *clip;
  settings.low = 5;
  assert_int_equal(excite_clip(still, &settings, &clip, NULL), DSNET_EVALUE);
  settings = excite_settings_default(1);
  settings.rotation = NAN;
  assert_int_equal(excite_clip(still, &settings, &clip, NULL), DSNET_EVALUE);
  assert_null(clip);
  clip_free(still);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(joints_move_within_the_band_and_as_much_as_asked),
      cmocka_unit_test(there_are_rests_between_the_bouts),
      cmocka_unit_test(seeds_decide_everything),
      cmocka_unit_test(senseless_settings_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
