// SPDX-License-Identifier: Apache-2.0
// motion/clip: every variant of the AMASS layout (data/make_clips.py), wrong ones, other rates.
#include "motion/clip.h"

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "archive.h"
#include "io/file.h"
#include "motion/rotation.h"

#define PI 3.14159265358979323846

static void every_variant_of_the_layout_is_read(void **state) {
  (void)state;
  static const struct {
    const char *file;
    double fps;
    size_t betas;
    const char *gender;
  } cases[] = {
      {"clip_smplh", 120.00004577636719, 16, "female"},
      {"clip_float32", 60, 10, "male"},
      {"clip_smpl", 30, 0, "neutral"},
      {"clip_tensor", (double)59.94f, 16, "neutral"},
      {"clip_smplx", 120, 16, "neutral"},
      {"clip_parts", 120, 16, "neutral"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    char path[300];
    struct clip *clip;
    struct dsnet_error error = {0};
    snprintf(path, sizeof path, "%s/%s.npz", DSNET_TEST_DATA, cases[c].file);
    if (clip_load(&clip, path, &error) < 0)
      fail_msg("%s", error.text);
    assert_int_equal(clip->frames, 3);
    assert_true(clip->fps == cases[c].fps);
    assert_int_equal(clip->betas_count, cases[c].betas);
    assert_string_equal(clip->gender, cases[c].gender);
    for (int i = 0; i < CLIP_BETAS_MAX; i++)
      assert_true(clip->betas[i] == ((size_t)i < cases[c].betas ? (float)(i / 10.0) : 0));
    for (int frame = 0; frame < 3; frame++) {
      for (int i = 0; i < CLIP_POSE_SIZE; i++)
        assert_true(clip->pose[frame * CLIP_POSE_SIZE + i] == (float)(frame + i / 1000.0));
      assert_true(clip->trans[3 * frame] == (float)frame &&
                  clip->trans[3 * frame + 1] == 2 * (float)frame &&
                  clip->trans[3 * frame + 2] == 1);
    }
    clip_free(clip);
  }
}

// A clip's arrays as dictionaries and zeros, with one of them replaced.
struct part {
  const char *name, *type, *shape;
  size_t bytes;
};

static const struct part right[] = {
    {"poses", "<f4", "(2, 156)", 2 * 156 * 4},
    {"trans", "<f4", "(2, 3)", 24},
    {"mocap_framerate", "<f8", "()", 8},
    {"betas", "<f4", "(16,)", 64},
    {"gender", "<U4", "()", 16},
};

static struct archive archive;

static void add_part(const struct part *part, const void *data) {
  char header[200], name[64];
  snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n",
           part->type, part->shape);
  snprintf(name, sizeof name, "%s.npy", part->name);
  archive_add_npy(&archive, name, 8, header, data, part->bytes);
}

static void make_clip_archive(const struct part *replaced, const void *data) {
  static const uint8_t zeros[4096];
  const double rate = 60;
  archive.size = archive.count = 0;
  for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
    if (replaced && !strcmp(replaced->name, right[i].name)) {
      if (replaced->type)
        add_part(replaced, data ? data : zeros);
    } else {
      add_part(&right[i], right[i].bytes == 8 ? (const void *)&rate : zeros);
    }
  }
  archive_finish(&archive);
}

static int load_archive(struct clip **clip, struct dsnet_error *error) {
  memset(error, 0, sizeof *error);
  return clip_load_memory(clip, archive.bytes, archive.size, error);
}

static void a_wrong_array_is_refused_by_name(void **state) {
  (void)state;
  static const double zero = 0, slow = 0.5, fast = 1001, not_a_number = NAN, two[2] = {60, 60};
  static const float infinite[6] = {0, 0, 0, 0, INFINITY};
  static const struct {
    struct part part;
    const void *data;
    int code;
    const char *mentions;
  } cases[] = {
      {{"none", NULL, NULL, 0}, NULL, 0, ""},
      {{"poses", NULL, NULL, 0}, NULL, DSNET_EMISSING, ""},
      {{"trans", NULL, NULL, 0}, NULL, DSNET_EMISSING, ""},
      {{"mocap_framerate", NULL, NULL, 0}, NULL, DSNET_EMISSING, ""},
      {{"betas", NULL, NULL, 0}, NULL, 0, ""},
      {{"gender", NULL, NULL, 0}, NULL, 0, ""},
      {{"poses", "<f4", "(2, 63)", 504}, NULL, DSNET_EFORMAT, "63 columns"},
      {{"poses", "<f4", "(312,)", 1248}, NULL, DSNET_EFORMAT, "shape"},
      {{"poses", "<f4", "(2, 24, 4)", 768}, NULL, DSNET_EFORMAT, "shape"},
      {{"poses", "<f4", "(0, 156)", 0}, NULL, DSNET_EVALUE, "no frame"},
      {{"poses", "<f4", "(2, 333)", 2664}, NULL, DSNET_ELIMIT, "333"},
      {{"poses", "<U2", "(2, 66)", 1056}, NULL, DSNET_EUNSUPPORTED, "text"},
      {{"poses", "|O", "(2, 66)", 1056}, NULL, DSNET_EUNSUPPORTED, "objects"},
      {{"poses", "<f4", "(2, 156)", 1244}, NULL, DSNET_EFORMAT, "1244 bytes"},
      {{"trans", "<f4", "(3, 3)", 36}, NULL, DSNET_EMISMATCH, "3 frames"},
      {{"trans", "<f4", "(2, 4)", 32}, NULL, DSNET_EFORMAT, "4 columns"},
      {{"trans", "<f4", "(2, 3)", 24}, infinite, DSNET_EVALUE, "[1,1] is inf"},
      {{"mocap_framerate", "<f8", "()", 8}, &zero, DSNET_EVALUE, "0 is outside"},
      {{"mocap_framerate", "<f8", "()", 8}, &slow, DSNET_EVALUE, "0.5 is outside"},
      {{"mocap_framerate", "<f8", "()", 8}, &fast, DSNET_EVALUE, "1001 is outside"},
      {{"mocap_framerate", "<f8", "()", 8}, &not_a_number, DSNET_EVALUE, "nan"},
      {{"mocap_framerate", "<f8", "(2,)", 16}, two, DSNET_ELIMIT, ""},
      {{"mocap_framerate", "<f8", "(0,)", 0}, two, DSNET_EFORMAT, "one number"},
      {{"mocap_framerate", "<U4", "()", 16}, NULL, DSNET_EUNSUPPORTED, "text"},
      {{"betas", "<f4", "(2, 16)", 128}, NULL, DSNET_EFORMAT, "shape"},
      {{"betas", "<f4", "()", 4}, NULL, DSNET_EFORMAT, "shape"},
      {{"betas", "<f4", "(1001,)", 4004}, NULL, DSNET_ELIMIT, "1001"},
      {{"gender", "<U4", "(2,)", 32}, NULL, DSNET_EFORMAT, "2 strings"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct clip *clip;
    struct dsnet_error error;
    make_clip_archive(&cases[i].part, cases[i].data);
    int code = load_archive(&clip, &error);
    if (code != cases[i].code || !strstr(error.text, cases[i].mentions) ||
        (code < 0 && !strstr(error.text, cases[i].part.name)))
      fail_msg("%s %s: %d \"%s\"", cases[i].part.name, cases[i].part.shape, code, error.text);
    assert_true((clip != NULL) == (code == 0));
    clip_free(clip);
  }
}

static void truncated_and_damaged_clips_are_errors_or_finite(void **state) {
  (void)state;
  make_clip_archive(NULL, NULL);
  static uint8_t bytes[ARCHIVE_SIZE];
  struct clip *clip;
  struct dsnet_error error = {0};
  for (size_t size = 0; size < archive.size; size++) {
    memset(&error, 0, sizeof error);
    assert_true(clip_load_memory(&clip, archive.bytes, size, &error) < 0);
    assert_true(error.text[0]);
  }
  for (size_t at = 0; at < archive.size; at++) {
    memcpy(bytes, archive.bytes, archive.size);
    bytes[at] ^= 0xff;
    memset(&error, 0, sizeof error);
    if (clip_load_memory(&clip, bytes, archive.size, &error) < 0)
      continue;
    assert_int_equal(clip->frames, 2);
    for (size_t i = 0; i < 2 * CLIP_POSE_SIZE; i++)
      assert_true(clip->pose[i] == 0);
    clip_free(clip);
  }
}

static void errors_name_the_file(void **state) {
  (void)state;
  struct clip *clip;
  struct dsnet_error error = {0};
  assert_int_equal(clip_load(&clip, "/nowhere/clip.npz", &error), DSNET_EIO);
  assert_non_null(strstr(error.text, "/nowhere/clip.npz"));
  memset(&error, 0, sizeof error);
  assert_int_equal(clip_load(&clip, DSNET_TEST_DATA "/npz_types.npz", &error), DSNET_EMISSING);
  assert_non_null(strstr(error.text, "npz_types.npz: poses: "));
}

// A clip with a rotation about `axis` at `speed` rad/s and the translation of a parabola.
static struct clip *make_motion(size_t frames, double fps, const double axis[3], double speed) {
  struct clip *clip;
  struct dsnet_error error = {0};
  assert_int_equal(clip_new(&clip, frames, fps, &error), 0);
  for (size_t k = 0; k < frames; k++) {
    double t = (double)k / fps;
    for (int i = 0; i < CLIP_POSE_SIZE; i++)
      clip->pose[k * CLIP_POSE_SIZE + (size_t)i] = (float)(axis[i % 3] * speed * t);
    clip->trans[3 * k] = (float)(2 * t);
    clip->trans[3 * k + 1] = (float)(t * t);
    clip->trans[3 * k + 2] = 1;
  }
  return clip;
}

static void what_is_saved_is_loaded_again(void **state) {
  (void)state;
  char path[100];
  struct clip *loaded, *clip = make_motion(10, 59.94, (const double[]){0.6, 0, 0.8}, 3);
  struct dsnet_error error = {0};
  snprintf(path, sizeof path, "/tmp/dsnet-test-clip-%d.npz", (int)getpid());
  clip->betas[15] = -1.5f;
  clip->betas_count = 16;
  strcpy(clip->gender, "female");
  assert_int_equal(clip_save(clip, path, &error), 0);
  assert_int_equal(clip_load(&loaded, path, &error), 0);
  unlink(path);
  assert_true(loaded->frames == 10 && loaded->fps == 59.94);
  assert_memory_equal(loaded->pose, clip->pose, 10 * CLIP_POSE_SIZE * sizeof(float));
  assert_memory_equal(loaded->trans, clip->trans, 30 * sizeof(float));
  assert_memory_equal(loaded->betas, clip->betas, sizeof clip->betas);
  assert_string_equal(loaded->gender, "female");
  clip_free(clip);
  clip_free(loaded);
}

static void a_rate_that_agrees_copies_the_frames(void **state) {
  (void)state;
  struct clip *same, *clip = make_motion(50, 120.00004577636719, (const double[]){1, 0, 0}, 3);
  struct dsnet_error error = {0};
  assert_int_equal(clip_resample(clip, 120, &same, &error), 0);
  assert_true(same->frames == 50 && same->fps == 120);
  assert_memory_equal(same->pose, clip->pose, 50 * CLIP_POSE_SIZE * sizeof(float));
  assert_memory_equal(same->trans, clip->trans, 150 * sizeof(float));
  clip_free(clip);
  clip_free(same);
}

static void half_the_rate_takes_every_other_frame(void **state) {
  (void)state;
  for (size_t frames = 1; frames < 8; frames++) {
    struct clip *half, *clip = make_motion(frames, 120, (const double[]){1, 0, 0}, 3);
    struct dsnet_error error = {0};
    assert_int_equal(clip_resample(clip, 60, &half, &error), 0);
    assert_int_equal(half->frames, (frames + 1) / 2);
    for (size_t k = 0; k < half->frames; k++)
      assert_memory_equal(half->pose + k * CLIP_POSE_SIZE, clip->pose + 2 * k * CLIP_POSE_SIZE,
                          CLIP_POSE_SIZE * sizeof(float));
    clip_free(clip);
    clip_free(half);
  }
}

// Constant turning and a parabola are what slerp and Catmull-Rom reproduce, at any pair of rates;
// the rotation vectors go on beyond pi, to 5.5, without a jump.
static void constant_turning_and_parabolas_survive_any_rate(void **state) {
  (void)state;
  static const double rates[][2] = {{100, 60},   {60, 120},   {30, 60},
                                    {120.5, 60}, {59.94, 60}, {250, 7}};
  const double axis[3] = {0.48, -0.6, 0.64};
  for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
    double speed = 5.5 * rates[r][0] / 199;
    struct clip *other, *clip = make_motion(200, rates[r][0], axis, speed);
    struct dsnet_error error = {0};
    assert_int_equal(clip_resample(clip, rates[r][1], &other, &error), 0);
    double last = 199 / rates[r][0];
    assert_true((double)(other->frames - 1) / rates[r][1] <= last + 1e-9);
    assert_true((double)other->frames / rates[r][1] > last);
    for (size_t k = 0; k < other->frames; k++) {
      double t = (double)k / rates[r][1];
      for (size_t i = 0; i < CLIP_POSE_SIZE; i++)
        assert_true(fabs((double)other->pose[k * CLIP_POSE_SIZE + i] - axis[i % 3] * speed * t) <
                    1e-5);
      assert_true(fabs((double)other->trans[3 * k] - 2 * t) < 4e-6);
      if (t > 1 / rates[r][0] && t < last - 1 / rates[r][0]) // the ends go on straight
        assert_true(fabs((double)other->trans[3 * k + 1] - t * t) < 1e-5 * (1 + t * t));
    }
    clip_free(clip);
    clip_free(other);
  }
}

static void impossible_rates_and_lengths_are_refused(void **state) {
  (void)state;
  struct clip *other, *clip = make_motion(5, 60, (const double[]){1, 0, 0}, 1);
  static const double rates[] = {0, -1, 0.5, 1001, NAN, INFINITY};
  for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
    struct dsnet_error error = {0};
    assert_true(clip_resample(clip, rates[i], &other, &error) < 0);
    assert_null(other);
  }
  struct dsnet_error error = {0};
  assert_int_equal(clip_new(&other, CLIP_FRAMES_MAX + 1, 60, &error), DSNET_ELIMIT);
  clip_free(clip);
}

static void captured_clips_load_and_resample(void **state) {
  (void)state;
  glob_t found;
  if (glob(DSNET_SOURCE_DIR "/../shared/data/cmu/*.npz", 0, NULL, &found) != 0) {
    print_message("skipped: ../shared/data/cmu holds no clips\n");
    skip();
  }
  for (size_t i = 0; i < found.gl_pathc; i++) {
    struct clip *clip, *resampled = NULL;
    struct dsnet_error error = {0};
    if (clip_load(&clip, found.gl_pathv[i], &error) < 0 ||
        clip_resample(clip, 60, &resampled, &error) < 0)
      fail_msg("%s", error.text);
    assert_true(clip->fps == 120);
    assert_int_equal(resampled->frames, (clip->frames + 1) / 2);
    clip_free(clip);
    clip_free(resampled);
  }
  globfree(&found);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_variant_of_the_layout_is_read),
      cmocka_unit_test(a_wrong_array_is_refused_by_name),
      cmocka_unit_test(truncated_and_damaged_clips_are_errors_or_finite),
      cmocka_unit_test(errors_name_the_file),
      cmocka_unit_test(what_is_saved_is_loaded_again),
      cmocka_unit_test(a_rate_that_agrees_copies_the_frames),
      cmocka_unit_test(half_the_rate_takes_every_other_frame),
      cmocka_unit_test(constant_turning_and_parabolas_survive_any_rate),
      cmocka_unit_test(impossible_rates_and_lengths_are_refused),
      cmocka_unit_test(captured_clips_load_and_resample),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
