// SPDX-License-Identifier: Apache-2.0
// dsnet motion: writes generated motion as an AMASS-layout clip.
#include "command.h"

#include <math.h>

#include "motion/generate.h"

struct settings {
  const char *output, *kind;
  double seconds, fps, rate, amplitude, heading;
  bool list;
};

static const struct option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, output),
     .help = "The npz to write."},
    {.name = "kind",
     .argument = "NAME",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, kind),
     .fallback = "sample",
     .help = "What to do; --list names them."},
    {.name = "seconds",
     .argument = "S",
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, seconds),
     .min = 0,
     .max = 3600,
     .help = "Length; 0 is the kind's own."},
    {.name = "fps",
     .argument = "F",
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, fps),
     .fallback = "60",
     .min = 1,
     .max = 1000,
     .help = "Frames a second."},
    {.name = "rate",
     .argument = "X",
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, rate),
     .fallback = "1",
     .min = GENERATE_SCALE_MIN,
     .max = GENERATE_SCALE_MAX,
     .help = "Tempo, times the kind's own."},
    {.name = "amplitude",
     .argument = "X",
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, amplitude),
     .fallback = "1",
     .min = GENERATE_SCALE_MIN,
     .max = GENERATE_SCALE_MAX,
     .help = "Size of the movement, times the kind's own."},
    {.name = "heading",
     .argument = "DEGREES",
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, heading),
     .fallback = "0",
     .min = -360,
     .max = 360,
     .help = "Turn about the vertical; at 0 the body faces -y."},
    {.name = "list",
     .type = OPTION_FLAG,
     .offset = offsetof(struct settings, list),
     .help = "List the kinds and stop."},
};

static const struct option_table table = {
    .usage = "dsnet motion -o FILE [options]",
    .about = "Makes a clip of parametric motion in the AMASS layout: 22 joints, z-up, the floor at "
             "z = 0.",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static void print_kinds(void) {
  const struct generate_kind *kind;
  for (size_t i = 0; (kind = generate_kind_at(i)); i++)
    printf("%-10s %s (%g s)\n", kind->name, kind->about, kind->seconds);
}

static int write_clip(const struct settings *settings, struct dsnet_error *error) {
  const struct generate_kind *kind = generate_kind_find(settings->kind);
  if (!kind)
    return dsnet_error_set(error, DSNET_EVALUE, "--kind: there is no \"%s\" (--list names them)",
                           settings->kind);
  struct generate_settings scale = {settings->rate, settings->amplitude};
  double seconds = settings->seconds > 0 ? settings->seconds : kind->seconds;
  struct clip *clip;
  int result = generate_clip(&clip, kind, &scale, seconds, settings->fps,
                             settings->heading * acos(-1) / 180, error);
  if (result < 0)
    return result;
  result = clip_save(clip, settings->output, error);
  if (result == 0)
    fprintf(stderr, "%s: %s, %zu frames at %g frames/s\n", settings->output, kind->name,
            clip->frames, clip->fps);
  clip_free(clip);
  return result;
}

int command_motion(int argc, char **argv) {
  struct settings settings;
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  if (settings.list) {
    print_kinds();
    return COMMAND_OK;
  }
  if (!settings.output) {
    fprintf(stderr, "dsnet motion: -o FILE is needed\n");
    return COMMAND_USAGE;
  }
  struct dsnet_error error = {0};
  return write_clip(&settings, &error) == 0 ? COMMAND_OK : command_fail("motion", &error);
}
