// SPDX-License-Identifier: Apache-2.0
// dsnet simulate: the physics reference over clips and shapes, written as Dyna's files are.
#include "command.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "inputs.h"
#include "interrupt.h"
#include "io/npz.h"
#include "motion/deglitch.h"
#include "motion/smooth.h"
#include "sim/simulation.h"
#include "simulate_jobs.h"

#define SUBJECTS_MAX 10000
#define SHAPE_LIMIT  2.5 // standard deviations of a drawn shape

struct settings {
  struct option_list clips;
  const char *output, *body, *betas_file, *pairing;
  long long subjects, seed, first, jobs, layers, deflate;
  double edge, smooth;
  bool deglitch, resume;
};

static const struct option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, output),
     .help = "Where the files go; made if it is not there."},
    {.name = "body",
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, body),
     .help = "An SMPL-layout body; without it the built-in one."},
    {.name = "betas-file",
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, betas_file),
     .help = "An npz whose `betas` [N][B] are the subjects' shapes."},
    {.name = "subjects",
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, subjects),
     .min = 0,
     .max = SUBJECTS_MAX,
     .help =
         "Draw this many shapes (normal, within 2.5 sigma) instead; 0 is the mean shape alone."},
    {.name = "seed",
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, seed),
     .fallback = "1",
     .min = 0,
     .max = 1e15,
     .help = "Of the drawn shapes; shape number i depends on the seed and i alone."},
    {.name = "first",
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, first),
     .min = 0,
     .max = SUBJECTS_MAX,
     .help = "Number of the first subject: they are called s000, s001, ..."},
    {.name = "pairing",
     .argument = "HOW",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, pairing),
     .fallback = "all",
     .choices = "all|cycle",
     .help = "Every clip on every subject, or each clip on one subject, in turn."},
    {.name = "deglitch",
     .type = OPTION_FLAG,
     .offset = offsetof(struct settings, deglitch),
     .help = "Bridge joint speeds over 25 rad/s before simulating."},
    {.name = "smooth",
     .argument = "HZ",
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, smooth),
     .fallback = "0",
     .min = 0,
     .max = 1000,
     .help = "Low-pass the clips before simulating, 8 for the noise of capture; 0 does not."},
    {.name = "resume",
     .type = OPTION_FLAG,
     .offset = offsetof(struct settings, resume),
     .help = "Leave out sequences that the folder has already."},
    {.name = "jobs",
     .letter = 'j',
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, jobs),
     .min = 0,
     .max = 256,
     .help = "Sequences simulated side by side; 0 is one a core."},
    {.name = "edge",
     .argument = "METRES",
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, edge),
     .fallback = "0.03",
     .min = 0.01,
     .max = 0.1,
     .help = "Edge length of the tissue's surface: its resolution."},
    {.name = "layers",
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, layers),
     .fallback = "2",
     .min = 1,
     .max = TISSUE_LAYERS_MAX,
     .help = "Layers of elements from skin to bone."},
    {.name = "deflate",
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, deflate),
     .min = 0,
     .max = 9,
     .help = "Compression of the HDF5 files; 0 stores, which is fastest."},
};

static const struct option_table table = {
    .usage = "dsnet simulate CLIP... -o FOLDER [options]",
    .about =
        "Simulates the soft tissue of one or more shapes over AMASS-layout clips, resampled to\n"
        "60 Hz, and writes each sequence as FOLDER/<subject>_<motion>.hdf5 in Dyna's layout\n"
        "(`faces` [F][3], `<subject>_<motion>` [V][3][T] posed vertices) with its poses and\n"
        "shape beside it as an npz. Ctrl-C stops in good order; --resume goes on.\n"
        "CLIP may be a folder of npz files, or \"sample\", the built-in clip.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .positionals_offset = offsetof(struct settings, clips),
    .positionals_min = 1,
    .positionals_max = OPTION_LIST_MAX,
};

// Everything one run holds. Zeroed before use, so that it can be released at any point.
struct run {
  struct body *body;
  struct tissue *tissue;
  size_t clips;
  char **paths;       // [clips]
  struct clip **clip; // [clips]
  size_t subjects;
  float (*betas)[BODY_SHAPES_MAX]; // [subjects]
  struct sequence *sequences;
  size_t count;
};

static void run_free(struct run *run) {
  for (size_t i = 0; i < run->clips; i++) {
    free(run->paths[i]);
    if (run->clip)
      clip_free(run->clip[i]);
  }
  free(run->paths);
  free(run->clip);
  free(run->sequences);
  free(run->betas);
  tissue_free(run->tissue);
  body_free(run->body);
}

static int path_add(struct run *run, const char *folder, const char *name,
                    struct dsnet_error *error) {
  char **paths = realloc(run->paths, (run->clips + 1) * sizeof *paths), *path = NULL;
  if (paths)
    run->paths = paths;
  if (!paths || asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", name) < 0)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the clips");
  run->paths[run->clips++] = path;
  return DSNET_OK;
}

static int is_npz(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 4 && !strcmp(entry->d_name + length - 4, ".npz");
}

// A clip as it is; a folder as the npz files in it, by name.
static int paths_add(struct run *run, const char *argument, struct dsnet_error *error) {
  struct stat status;
  if (stat(argument, &status) || !S_ISDIR(status.st_mode))
    return path_add(run, "", argument, error);
  struct dirent **entries;
  int count = scandir(argument, &entries, is_npz, alphasort);
  if (count < 0)
    return dsnet_error_set(error, DSNET_EIO, "%s: %s", argument, strerror(errno));
  int code =
      count == 0 ? dsnet_error_set(error, DSNET_EMISSING, "%s holds no npz", argument) : DSNET_OK;
  for (int i = 0; i < count; i++) {
    if (code == DSNET_OK)
      code = path_add(run, argument, entries[i]->d_name, error);
    free(entries[i]);
  }
  free(entries);
  return code;
}

static int clips_load(struct run *run, const struct settings *settings, struct dsnet_error *error) {
  for (size_t i = 0; i < settings->clips.count; i++) {
    int code = paths_add(run, settings->clips.items[i], error);
    if (code != DSNET_OK)
      return code;
  }
  run->clip = memory_alloc(run->clips, sizeof *run->clip);
  if (!run->clip)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the clips");
  for (size_t i = 0; i < run->clips; i++) {
    struct clip *raw = NULL;
    int code = input_clip_load(&raw, run->paths[i], error);
    if (code == DSNET_OK && settings->deglitch)
      code = clip_deglitch(raw, DEGLITCH_SPEED, NULL, error);
    if (code == DSNET_OK && settings->smooth > 0)
      code = clip_smooth(raw, settings->smooth, error);
    if (code == DSNET_OK)
      code = clip_resample(raw, SIMULATION_FPS, &run->clip[i], error);
    clip_free(raw);
    if (code != DSNET_OK)
      return code;
  }
  return DSNET_OK;
}

static void shape_draw(float betas[BODY_SHAPES_MAX], uint64_t seed, uint64_t number) {
  struct random_state random;
  random_init(&random, seed * (SUBJECTS_MAX + 1) + number);
  for (int b = 0; b < BODY_SHAPES_MAX; b++) {
    double value = random_normal(&random);
    while (fabs(value) > SHAPE_LIMIT)
      value = random_normal(&random);
    betas[b] = (float)value;
  }
}

static int betas_read(struct run *run, const char *path, struct dsnet_error *error) {
  struct npz *npz;
  struct npy_info info;
  float *values = NULL;
  int code = npz_open(&npz, path, error);
  if (code != DSNET_OK)
    return code;
  code = npz_read_f32(npz, "betas", (size_t)SUBJECTS_MAX * 1000, &values, &info, error);
  npz_close(npz);
  if (code == DSNET_OK && (info.dimensions != 2 || info.count == 0 || info.shape[0] > SUBJECTS_MAX))
    code =
        dsnet_error_set(error, DSNET_EFORMAT, "betas must be [N][B], up to %d rows", SUBJECTS_MAX);
  if (code == DSNET_OK) {
    run->subjects = info.shape[0];
    run->betas = memory_alloc(run->subjects, sizeof *run->betas);
    if (!run->betas)
      code = dsnet_error_set(error, DSNET_ENOMEM, "no memory for the shapes");
  }
  for (size_t i = 0; code == DSNET_OK && i < run->subjects; i++)
    for (size_t b = 0; b < BODY_SHAPES_MAX && b < info.shape[1]; b++)
      run->betas[i][b] = values[i * info.shape[1] + b];
  free(values);
  return code == DSNET_OK ? code : dsnet_error_prefix(error, "%s", path);
}

static int shapes_make(struct run *run, const struct settings *settings,
                       struct dsnet_error *error) {
  if (settings->betas_file)
    return betas_read(run, settings->betas_file, error);
  run->subjects = settings->subjects > 0 ? (size_t)settings->subjects : 1;
  run->betas = memory_alloc(run->subjects, sizeof *run->betas);
  if (!run->betas)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the shapes");
  for (size_t i = 0; settings->subjects > 0 && i < run->subjects; i++)
    shape_draw(run->betas[i], (uint64_t)settings->seed, (uint64_t)settings->first + i);
  return DSNET_OK;
}

// "s007_02_03" of subject 7 and ".../02_03_poses.npz".
static int sequence_name(char *name, long long subject, const char *clip,
                         struct dsnet_error *error) {
  const char *slash = strrchr(clip, '/'), *stem = slash ? slash + 1 : clip;
  size_t length = strlen(stem);
  static const char *const endings[] = {".npz", "_poses"};
  for (size_t i = 0; i < 2; i++) {
    size_t end = strlen(endings[i]);
    if (length > end && !strncmp(stem + length - end, endings[i], end))
      length -= end;
  }
  int printed = snprintf(name, DYNA_NAME_SIZE, "s%03lld_%.*s", subject, (int)length, stem);
  if (printed < 0 || printed >= DYNA_NAME_SIZE)
    return dsnet_error_set(error, DSNET_ELIMIT, "%s: the name is too long", clip);
  return DSNET_OK;
}

static int name_compare(const void *left, const void *right) {
  return strcmp(((const struct sequence *)left)->name, ((const struct sequence *)right)->name);
}

static int sequence_add(struct run *run, const struct settings *settings, size_t clip,
                        size_t subject, struct dsnet_error *error) {
  struct sequence *sequence = &run->sequences[run->count++];
  sequence->clip = run->clip[clip];
  memcpy(sequence->betas, run->betas[subject], sizeof sequence->betas);
  int code =
      sequence_name(sequence->name, settings->first + (long long)subject, run->paths[clip], error);
  char path[4096];
  if (code == DSNET_OK)
    code = simulate_path(path, sizeof path, settings->output, sequence->name, ".hdf5", error);
  if (code == DSNET_OK)
    sequence->done = settings->resume && access(path, F_OK) == 0;
  return code;
}

static int sequences_make(struct run *run, const struct settings *settings,
                          struct dsnet_error *error) {
  size_t clips = run->clips;
  bool all = !strcmp(settings->pairing, "all");
  run->sequences = memory_alloc(clips * (all ? run->subjects : 1), sizeof *run->sequences);
  if (!run->sequences)
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory for the sequences");
  for (size_t c = 0; c < clips; c++)
    for (size_t s = 0; s < (all ? run->subjects : 1); s++) {
      int code = sequence_add(run, settings, c, all ? s : c % run->subjects, error);
      if (code != DSNET_OK)
        return code;
    }
  qsort(run->sequences, run->count, sizeof *run->sequences, name_compare);
  for (size_t i = 0; i + 1 < run->count; i++)
    if (!name_compare(&run->sequences[i], &run->sequences[i + 1]))
      return dsnet_error_set(error, DSNET_EUSAGE, "two clips would both be called %s",
                             run->sequences[i].name);
  return DSNET_OK;
}

static int folder_make(const char *folder, struct dsnet_error *error) {
  struct stat status;
  if (mkdir(folder, 0777) && errno != EEXIST)
    return dsnet_error_set(error, DSNET_EIO, "%s: %s", folder, strerror(errno));
  if (stat(folder, &status) || !S_ISDIR(status.st_mode))
    return dsnet_error_set(error, DSNET_EIO, "%s is not a folder", folder);
  return DSNET_OK;
}

static int prepare(struct run *run, const struct settings *settings, struct dsnet_error *error) {
  struct tissue_settings resolution = {.edge = settings->edge, .layers = (int)settings->layers};
  int code = folder_make(settings->output, error);
  if (code == DSNET_OK)
    code = input_body_load(&run->body, settings->body, error);
  if (code == DSNET_OK)
    code = tissue_new(&run->tissue, run->body, &resolution, error);
  if (code == DSNET_OK)
    code = shapes_make(run, settings, error);
  if (code == DSNET_OK)
    code = clips_load(run, settings, error);
  return code == DSNET_OK ? sequences_make(run, settings, error) : code;
}

int command_simulate(int argc, char **argv) {
  struct settings settings;
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  if (!settings.output) {
    fprintf(stderr, "dsnet simulate: -o FOLDER is needed\n");
    return COMMAND_USAGE;
  }
  if (settings.betas_file && settings.subjects > 0) {
    fprintf(stderr, "dsnet simulate: --betas-file and --subjects exclude each other\n");
    return COMMAND_USAGE;
  }
  struct dsnet_error error = {0};
  struct run run = {0};
  struct simulate_result result = {0};
  interrupt_catch();
  int code = prepare(&run, &settings, &error);
  if (code == DSNET_OK) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct simulate_plan plan = {.tissue = run.tissue,
                                 .folder = settings.output,
                                 .sequences = run.sequences,
                                 .count = run.count,
                                 .threads = (int)(settings.jobs > 0 ? settings.jobs
                                                  : cores > 0       ? cores
                                                                    : 1),
                                 .deflate = (int)settings.deflate};
    code = simulate_run(&plan, &result, &error);
  }
  if (code == DSNET_OK)
    fprintf(stderr,
            "%s: %zu sequences, %zu frames in %.1f s (%.1f ms a frame), D up to %.1f mm; %zu were "
            "there already\n",
            settings.output, result.sequences, result.frames, result.seconds,
            result.frames ? 1e3 * result.seconds / (double)result.frames : 0, 1e3 * result.largest,
            run.count - result.sequences);
  run_free(&run);
  return code == DSNET_OK ? COMMAND_OK : command_fail("simulate", &error);
}
