// SPDX-License-Identifier: Apache-2.0
// model/motion/deglitch: flips are bridged, good motion is untouched, and real clips come out slow
// enough.
#include "motion/deglitch.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double pi = 3.14159265358979323846;

// A second and a half of swinging arms and turning root at 120 Hz; speeds up to some 6 rad/s.
static struct clip *swing(void) {
  struct clip *clip;
  assert_int_equal(clip_new(&clip, 180, 120, NULL), DSNET_OK);
  for (size_t t = 0; t < clip->frames; t++) {
    double s = (double)t / clip->fps;
    float *pose = clip->pose + t * CLIP_POSE_SIZE;
    pose[0] = (float)(pi / 2);
    for (int joint = 1; joint < 22; joint++)
      pose[3 * joint + joint % 3] = (float)sin(2 * pi * s + joint);
  }
  return clip;
}

static double pose_difference(const struct clip *a, const struct clip *b, size_t t) {
  double largest = 0;
  for (size_t i = 0; i < CLIP_POSE_SIZE; i++)
    largest = fmax(largest,
                   fabs((double)a->pose[t * CLIP_POSE_SIZE + i] - b->pose[t * CLIP_POSE_SIZE + i]));
  return largest;
}

// Largest change of any joint's angular velocity from frame to frame, rad/s^2, for rotations about
// one axis.
static double acceleration(const struct clip *clip) {
  double largest = 0;
  for (size_t t = 1; t + 1 < clip->frames; t++)
    for (size_t i = 3; i < CLIP_POSE_SIZE; i++) {
      const float *p = clip->pose + t * CLIP_POSE_SIZE + i;
      largest = fmax(largest, fabs((double)p[CLIP_POSE_SIZE] - 2.0 * p[0] + p[-CLIP_POSE_SIZE]));
    }
  return largest * clip->fps * clip->fps;
}

static void good_motion_is_untouched(void **state) {
  (void)state;
  struct clip *clip = swing(), *same = swing();
  struct deglitch_report report;
  assert_int_equal(clip_deglitch(clip, DEGLITCH_SPEED, &report, NULL), DSNET_OK);
  assert_int_equal(report.spans, 0);
  assert_int_equal(report.frames, 0);
  assert_true(report.fastest > 3 && report.fastest < 8);
  assert_memory_equal(clip->pose, same->pose, 180 * CLIP_POSE_SIZE * sizeof(float));
  clip_free(clip);
  clip_free(same);
}

static void a_flip_of_half_a_turn_is_bridged(void **state) {
  (void)state;
  // of 1 frame, of 4, and of 15
  for (size_t length = 1; length < 20; length = 4 * length - (length > 1)) {
    struct clip *clip = swing(), *good = swing();
    for (size_t t = 80; t < 80 + length; t++)
      clip->pose[t * CLIP_POSE_SIZE + 3 * 16 + 16 % 3] += (float)pi;
    struct deglitch_report report;
    assert_int_equal(clip_deglitch(clip, DEGLITCH_SPEED, &report, NULL), DSNET_OK);
    assert_int_equal(report.spans, 1);
    assert_int_equal(report.frames, length);
    assert_true(report.fastest > 300);
    assert_true(clip_joint_speed(clip) < DEGLITCH_SPEED);
    for (size_t t = 0; t < clip->frames; t++) {
      bool inside = t >= 80 && t < 80 + length;
      double difference = pose_difference(clip, good, t);
      assert_true(inside ? difference < 0.05 : difference == 0);
    }
    // Smooth: no kink where the bridge begins and ends.
    assert_true(acceleration(clip) < 3 * acceleration(good));
    clip_free(clip);
    clip_free(good);
  }
}

static void a_lasting_jump_is_spread_out(void **state) {
  (void)state;
  struct clip *clip = swing();
  for (size_t t = 90; t < clip->frames; t++)
    clip->pose[t * CLIP_POSE_SIZE + 3 * 5 + 5 % 3] += 2.5f;
  struct deglitch_report report;
  assert_int_equal(clip_deglitch(clip, DEGLITCH_SPEED, &report, NULL), DSNET_OK);
  assert_int_equal(report.spans, 1);
  assert_true(report.frames < 60);
  assert_true(clip_joint_speed(clip) < DEGLITCH_SPEED);
  clip_free(clip);
}

static void glitches_at_the_ends_are_held(void **state) {
  (void)state;
  struct clip *clip = swing();
  for (size_t t = 0; t < clip->frames; t++)
    if (t < 3 || t + 2 > clip->frames)
      clip->pose[t * CLIP_POSE_SIZE + 3 * 7] += 3;
  assert_int_equal(clip_deglitch(clip, DEGLITCH_SPEED, NULL, NULL), DSNET_OK);
  assert_true(clip_joint_speed(clip) < DEGLITCH_SPEED);
  clip_free(clip);
}

static void noise_alone_still_ends(void **state) {
  (void)state;
  struct clip *clip = swing();
  for (size_t i = 0; i < clip->frames * CLIP_POSE_SIZE; i++)
    clip->pose[i] = (float)(3 * sin(12.9898 * (double)i + 78.233 * (double)(i * i % 97)));
  assert_int_equal(clip_deglitch(clip, DEGLITCH_SPEED, NULL, NULL), DSNET_OK);
  assert_true(clip_joint_speed(clip) < DEGLITCH_SPEED);
  clip_free(clip);
}

static void a_wrong_speed_is_refused(void **state) {
  (void)state;
  struct clip *clip = swing();
  assert_int_equal(clip_deglitch(clip, 0, NULL, NULL), DSNET_EVALUE);
  assert_int_equal(clip_deglitch(clip, NAN, NULL, NULL), DSNET_EVALUE);
  clip_free(clip);
}

static void real_clips_come_out_slow_enough(void **state) {
  (void)state;
  const char *folder = DSNET_SOURCE_DIR "/../shared/data/cmu";
  DIR *listing = opendir(folder);
  if (!listing) {
    print_message("no real clips here: skipped\n");
    skip();
  }
  size_t glitched = 0, spans = 0, replaced = 0, rotations = 0;
  for (struct dirent *entry; (entry = readdir(listing));) {
    char path[4096];
    if (!strstr(entry->d_name, ".npz"))
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    struct clip *clip;
    struct dsnet_error error = {0};
    struct deglitch_report report;
    if (clip_load(&clip, path, &error) || clip_deglitch(clip, DEGLITCH_SPEED, &report, &error))
      fail_msg("%s", error.text);
    assert_true(clip_joint_speed(clip) <= DEGLITCH_SPEED);
    glitched += report.spans > 0;
    spans += report.spans;
    replaced += report.frames;
    rotations += clip->frames * 22;
    clip_free(clip);
  }
  closedir(listing);
  print_message("%zu clips had glitches: %zu stretches, %.3f%% of the rotations\n", glitched, spans,
                100.0 * (double)replaced / (double)rotations);
  assert_true(glitched > 0); // they are known to have some
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_motion_is_untouched),
      cmocka_unit_test(a_flip_of_half_a_turn_is_bridged),
      cmocka_unit_test(a_lasting_jump_is_spread_out),
      cmocka_unit_test(glitches_at_the_ends_are_held),
      cmocka_unit_test(noise_alone_still_ends),
      cmocka_unit_test(a_wrong_speed_is_refused),
      cmocka_unit_test(real_clips_come_out_slow_enough),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
