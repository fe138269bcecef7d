// SPDX-License-Identifier: Apache-2.0
// dsnet excite: clips perturbed for the training data (motion/excite.h).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "command.h"
#include "inputs.h"
#include "motion/deglitch.h"
#include "motion/excite.h"
#include "motion/smooth.h"

struct settings {
  struct option_list clips;
  const char *output;
  long long variants, seed;
  double rotation, shake, smooth, longest;
};

#define MEMBER(name) .offset = offsetof(struct settings, name)

static const struct option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .type = OPTION_TEXT,
     MEMBER(output),
     .help = "Where NAME-xK.npz go; the folder must exist."},
    {.name = "variants",
     .argument = "N",
     .type = OPTION_INT,
     MEMBER(variants),
     .fallback = "1",
     .min = 1,
     .max = 1000,
     .help = "Clips made of each."},
    {.name = "seed",
     .argument = "N",
     .type = OPTION_INT,
     MEMBER(seed),
     .fallback = "1",
     .min = 0,
     .max = 1e9,
     .help = "Of everything random."},
    {.name = "rotation",
     .argument = "RAD",
     .type = OPTION_REAL,
     MEMBER(rotation),
     .fallback = "0.12",
     .min = 0,
     .max = 1,
     .help = "Root mean square of a joint's extra turn in the last variant; the others have "
             "less, down to a quarter."},
    {.name = "shake",
     .argument = "METRES",
     .type = OPTION_REAL,
     MEMBER(shake),
     .fallback = "0.012",
     .min = 0,
     .max = 0.5,
     .help = "The same of the root's extra displacement."},
    {.name = "smooth",
     .argument = "HZ",
     .type = OPTION_REAL,
     MEMBER(smooth),
     .fallback = "8",
     .min = 0,
     .max = 1000,
     .help = "Low-pass of the clip before it is perturbed; 0 leaves it as it is."},
    {.name = "longest",
     .argument = "S",
     .type = OPTION_REAL,
     MEMBER(longest),
     .fallback = "20",
     .min = 1,
     .max = 3600,
     .help = "Each variant is a stretch of at most this many seconds, drawn from the clip."},
};

static const struct option_table table = {
    .usage = "dsnet excite CLIP... -o FOLDER [options]",
    .about =
        "Makes motion that shows how tissue answers: clips, deglitched, smoothed and at 60 Hz,\n"
        "with band-limited random turns of all joints and shaking of the root, in bouts, each\n"
        "in a heading of its own.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .positionals_offset = offsetof(struct settings, clips),
    .positionals_min = 1,
    .positionals_max = OPTION_LIST_MAX,
};

// "dir/01_02_poses.npz" -> "01_02"
static void stem_of(const char *path, char *stem, size_t size) {
  const char *slash = strrchr(path, '/');
  snprintf(stem, size, "%s", slash ? slash + 1 : path);
  static const char *const endings[] = {".npz", "_poses"};
  for (size_t i = 0; i < 2; i++) {
    size_t length = strlen(stem), end = strlen(endings[i]);
    if (length > end && !strcmp(stem + length - end, endings[i]))
      stem[length - end] = 0;
  }
}

// FNV-1a of the name: every clip is perturbed in its own way, whatever it is called with.
static uint64_t seed_of(uint64_t seed, const char *stem, long long variant) {
  uint64_t hash = 0xcbf29ce484222325u ^ seed;
  for (; *stem; stem++)
    hash = (hash ^ (unsigned char)*stem) * 0x100000001b3u;
  return (hash ^ (uint64_t)variant) * 0x100000001b3u;
}

static int prepare(const char *path, double smooth, struct clip **clip, struct dsnet_error *error) {
  struct clip *raw;
  int result = input_clip_load(&raw, path, error);
  if (result < 0)
    return result;
  result = clip_deglitch(raw, DEGLITCH_SPEED, NULL, error);
  if (result == 0 && smooth > 0)
    result = clip_smooth(raw, smooth, error);
  if (result == 0)
    result = clip_resample(raw, 60, clip, error);
  clip_free(raw);
  return result;
}

// The share of the full excitation that variant k of n gets: 1/4 to 1, so that motion which is
// nearly natural is among them.
static double strength_of(long long k, long long n) {
  return n > 1 ? 0.25 + 0.75 * (double)k / (double)(n - 1) : 1;
}

// A view of `frames` frames at most, from a place that depends on the seed.
static struct clip stretch_of(const struct clip *clip, size_t frames, uint64_t seed) {
  struct clip stretch = *clip;
  if (clip->frames <= frames)
    return stretch;
  struct random_state random;
  random_init(&random, seed);
  size_t first = random_bits(&random) % (clip->frames - frames + 1);
  stretch.frames = frames;
  stretch.pose += first * CLIP_POSE_SIZE;
  stretch.trans += 3 * first;
  return stretch;
}

static int excite_file(const struct settings *settings, size_t index, struct dsnet_error *error) {
  struct clip *clip;
  char stem[128];
  int result = prepare(settings->clips.items[index], settings->smooth, &clip, error);
  if (result < 0)
    return result;
  stem_of(settings->clips.items[index], stem, sizeof stem);
  for (long long k = 0; result == 0 && k < settings->variants; k++) {
    uint64_t seed = seed_of((uint64_t)settings->seed, stem, k);
    struct excite_settings excite = excite_settings_default(seed);
    excite.rotation = settings->rotation * strength_of(k, settings->variants);
    excite.shake = settings->shake * strength_of(k, settings->variants);
    struct clip stretch = stretch_of(clip, (size_t)(settings->longest * clip->fps), seed), *excited;
    char *path = NULL;
    result = excite_clip(&stretch, &excite, &excited, error);
    if (result < 0)
      break;
    if (asprintf(&path, "%s/%s-x%lld.npz", settings->output, stem, k) < 0)
      result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
    else
      result = clip_save(excited, path, error);
    clip_free(excited);
    free(path);
  }
  clip_free(clip);
  return result;
}

int command_excite(int argc, char **argv) {
  struct settings settings;
  struct dsnet_error error = {0};
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  if (!settings.output) {
    fprintf(stderr, "dsnet excite: -o FOLDER is needed\n");
    return COMMAND_USAGE;
  }
  for (size_t i = 0; i < settings.clips.count; i++)
    if (excite_file(&settings, i, &error) < 0)
      return command_fail("excite", &error);
  return COMMAND_OK;
}
