// SPDX-License-Identifier: Apache-2.0
// motion/smooth.c: what passes, what does not, and that it neither delays nor shifts.
#include "motion/smooth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { FRAMES = 600, JOINT = 4 };
#define FPS 120.0

// A joint and the root swing at one frequency; everything else stands still.
static struct clip *swinging(double hertz) {
  struct clip *clip;
  assert_int_equal(clip_new(&clip, FRAMES, FPS, NULL), 0);
  for (size_t t = 0; t < FRAMES; t++) {
    float swing = (float)(0.2 * sin(2 * M_PI * hertz * (double)t / FPS));
    clip->pose[t * CLIP_POSE_SIZE + 3 * JOINT + 1] = swing;
    clip->pose[t * CLIP_POSE_SIZE + 3] = 0.5f;
    clip->trans[3 * t] = 3 + swing;
  }
  return clip;
}

static void the_response_is_the_gaussians(void **state) {
  (void)state;
  static const double hertz[] = {1, 4, 8, 16, 30};
  for (size_t i = 0; i < 5; i++) {
    struct clip *before = swinging(hertz[i]), *after = swinging(hertz[i]);
    assert_int_equal(clip_smooth(after, 8, NULL), 0);
    double gain = exp(-0.5 * log(2) * hertz[i] * hertz[i] / 64); // of the amplitude
    for (size_t t = 60; t < FRAMES - 60; t++) {
      size_t at = t * CLIP_POSE_SIZE;
      double wanted = gain * (double)before->pose[at + 3 * JOINT + 1];
      assert_true(fabs((double)after->pose[at + 3 * JOINT + 1] - wanted) < 2e-3);
      assert_true(fabs((double)after->trans[3 * t] - 3 - wanted) < 1e-3);
      assert_true(fabsf(after->pose[at + 3] - 0.5f) < 1e-6f);
      assert_true(after->pose[at] == 0);
    }
    clip_free(before);
    clip_free(after);
  }
}

static void a_still_clip_stays_and_a_short_one_is_no_trouble(void **state) {
  (void)state;
  for (size_t frames = 1; frames < 4; frames++) {
    struct clip *clip;
    assert_int_equal(clip_new(&clip, frames, 60, NULL), 0);
    for (size_t t = 0; t < frames; t++) {
      clip->pose[t * CLIP_POSE_SIZE] = 3.1f; // near half a turn, where vectors jump
      clip->trans[3 * t + 2] = 1;
    }
    assert_int_equal(clip_smooth(clip, 0.5, NULL), 0);
    for (size_t t = 0; t < frames; t++) {
      assert_true(fabsf(clip->pose[t * CLIP_POSE_SIZE] - 3.1f) < 1e-5f);
      assert_true(clip->trans[3 * t + 2] == 1);
    }
    clip_free(clip);
  }
}

// Half a turn and back again through the other side of the sphere is small motion.
static void vectors_that_jump_are_rotations_that_do_not(void **state) {
  (void)state;
  struct clip *clip;
  assert_int_equal(clip_new(&clip, 100, 60, NULL), 0);
  for (size_t t = 0; t < 100; t++)
    clip->pose[t * CLIP_POSE_SIZE] = t % 2 ? 3.14f : -3.14f;
  assert_int_equal(clip_smooth(clip, 8, NULL), 0);
  for (size_t t = 0; t < 100; t++)
    assert_true(fabs(fabs((double)clip->pose[t * CLIP_POSE_SIZE]) - M_PI) < 0.01);
  clip_free(clip);
}

static void a_frequency_that_is_none_is_refused(void **state) {
  (void)state;
  struct clip *clip = swinging(2);
  static const double wrong[] = {0, -1, NAN, INFINITY};
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(clip_smooth(clip, wrong[i], NULL), DSNET_EVALUE);
  assert_true(clip->trans[0] == 3);
  clip_free(clip);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_response_is_the_gaussians),
      cmocka_unit_test(a_still_clip_stays_and_a_short_one_is_no_trouble),
      cmocka_unit_test(vectors_that_jump_are_rotations_that_do_not),
      cmocka_unit_test(a_frequency_that_is_none_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
