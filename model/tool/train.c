// SPDX-License-Identifier: Apache-2.0
// dsnet train: from mesh sequences and their clips to a model file.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "inputs.h"
#include "interrupt.h"
#include "nn/gemm.h"
#include "train/checkpoint.h"
#include "train/export.h"
#include "train/report.h"

struct settings {
  struct option_list data;
  const char *output, *body, *splits, *features, *report;
  long long layers, hidden, latent, snapshots, window, burn_in, segment, streams, shards, threads,
      epochs, patience, seed;
  double loss, rate, clip, decay, noise, jitter, velocity, floor;
  bool skip, f16, resume;
};

#define MEMBER(member) .offset = offsetof(struct settings, member)
#define TEXT(flag, member, arg, value, text)                                                       \
  {                                                                                                \
    .name = flag, .argument = arg, .type = OPTION_TEXT, MEMBER(member), .fallback = value,         \
    .help = text                                                                                   \
  }
#define INTEGER(flag, member, value, low, high, text)                                              \
  {                                                                                                \
    .name = flag, .argument = "N", .type = OPTION_INT, MEMBER(member), .fallback = value,          \
    .min = low, .max = high, .help = text                                                          \
  }
#define REAL(flag, member, value, low, high, text)                                                 \
  {                                                                                                \
    .name = flag, .argument = "X", .type = OPTION_REAL, MEMBER(member), .fallback = value,         \
    .min = low, .max = high, .help = text                                                          \
  }
#define FLAG(flag, member, text)                                                                   \
  { .name = flag, .type = OPTION_FLAG, MEMBER(member), .help = text }

static const struct option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = OPTION_TEXT,
     MEMBER(output),
     .help = "Model file to write (safetensors); FILE.checkpoint beside it while training."},
    TEXT("body", body, "FILE", NULL,
         "The data's body (SMPL-layout npz); without it the built-in one."),
    TEXT("splits", splits, "FILE", NULL, "Which sequences are held out (needed)."),
    TEXT("features", features, "NAME", "springs", "Feature set: paper, inertial or springs."),
    TEXT("report", report, "FILE", NULL, "Also write a report, one HTML file."),
    INTEGER("layers", layers, "2", 1, NET_LAYERS_MAX, "LSTM layers."),
    INTEGER("hidden", hidden, "256", NET_HIDDEN_MIN, NET_HIDDEN_MAX, "Units of a layer."),
    FLAG("skip", skip, "Add a direct linear path from the features to the latents."),
    INTEGER("latent", latent, "64", 0, NET_LATENT_MAX, "Latents; 0: as many as --loss needs."),
    REAL("loss", loss, "0.01", 0, 1, "With --latent 0: share of the energy that may be lost."),
    INTEGER("snapshots", snapshots, "2000", 2, 20000, "Frames the subspace is fitted to."),
    INTEGER("window", window, "100", 2, 1000, "Frames of back-propagation through time."),
    INTEGER("burn-in", burn_in, "15", 0, 1000, "Frames not counted where a segment starts."),
    INTEGER("segment", segment, "600", 30, 1000000, "Frames after which a stream moves on."),
    INTEGER("streams", streams, "16", 1, 1024, "Streams of a shard."),
    INTEGER("shards", shards, "2", 1, 64, "Shards of a batch; part of what the result depends on."),
    INTEGER("threads", threads, "2", 1, 64, "Threads; the result does not depend on them."),
    INTEGER("epochs", epochs, "60", 1, 100000, "Passes over the training split at most."),
    INTEGER("patience", patience, "0", 0, 100000,
            "Stop after so many without improvement; 0: never."),
    REAL("rate", rate, "0.002", 1e-7, 1,
         "Highest learning rate (Adam, warm-up, then half a cosine)."),
    REAL("clip", clip, "1", 1e-6, 1e6, "Largest norm of a gradient."),
    REAL("decay", decay, "0", 0, 1, "Decoupled weight decay."),
    REAL("noise", noise, "0", 0, 10, "Noise on the normalised features."),
    REAL("jitter", jitter, "0", 0, 1,
         "Noise on the poses, radians at the most; half of the segments have none."),
    REAL("velocity", velocity, "0", 0, 100, "Weight of the velocities in the loss."),
    REAL("floor", floor, "0.3", 1e-6, 1e6, "Energy added to a window's own, in means of the data."),
    INTEGER("seed", seed, "1", 0, 1e15, "Of everything random."),
    FLAG("f16", f16, "Store the weights in half precision."),
    FLAG("resume", resume, "Go on from FILE.checkpoint where there is one."),
};

static const struct option_table table = {
    .usage = "dsnet train DATA --splits FILE -o FILE [options]",
    .about =
        "Trains a network on DATA, an HDF5 file in Dyna's layout or a folder of them, with an\n"
        "AMASS-layout npz beside each sequence. The same command gives the same weights on the\n"
        "same machine. Ctrl-C stops; --resume goes on after the last whole epoch.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .positionals_offset = offsetof(struct settings, data),
    .positionals_min = 1,
    .positionals_max = 1,
};

static bool show_preparation(void *context, const char *stage, double done) {
  (void)context;
  if (isatty(STDERR_FILENO))
    fprintf(stderr, "\r\033[K%s %3.0f%%", stage, 100 * done);
  return !interrupt_seen();
}

static bool show_step(void *context, const struct trainer_progress *p) {
  (void)context;
  if (isatty(STDERR_FILENO)) {
    fprintf(stderr, "\r\033[Kepoch %zu, %zu of %zu, loss %.4f", p->epoch, p->step, p->steps,
            p->loss);
    if (p->seconds_left >= 0)
      fprintf(stderr, ", %.0f min left", ceil(p->seconds_left / 60));
  }
  return !interrupt_seen();
}

static void show_epoch(const struct trainer *trainer) {
  const struct epoch_record *r = &trainer->records[trainer->epoch - 1];
  if (isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr);
  fprintf(stderr, "epoch %3zu: loss %.4f, explained %.4f; validation explained %.4f, %.3f mm%s\n",
          trainer->epoch, r->loss, r->explained, r->validation, r->validation_mm,
          trainer->best_epoch == trainer->epoch ? " *" : "");
}

static struct trainer_options options_of(const struct settings *s) {
  return (struct trainer_options){.features = feature_set_find(s->features),
                                  .layers = (size_t)s->layers,
                                  .hidden = (size_t)s->hidden,
                                  .skip = s->skip,
                                  .window = (size_t)s->window,
                                  .burn_in = (size_t)s->burn_in,
                                  .segment = (size_t)s->segment,
                                  .shards = (size_t)s->shards,
                                  .streams = (size_t)s->streams,
                                  .threads = (size_t)s->threads,
                                  .epochs = (size_t)s->epochs,
                                  .patience = (size_t)s->patience,
                                  .rate = s->rate,
                                  .rate_floor = 0.02,
                                  .warmup = 0.02,
                                  .clip = s->clip,
                                  .decay = s->decay,
                                  .noise = s->noise,
                                  .jitter = s->jitter,
                                  .velocity = s->velocity,
                                  .floor = s->floor,
                                  .seed = (uint64_t)s->seed};
}

static const char *name_of(const char *argument) {
  const char *slash = strrchr(argument, '/');
  return slash ? slash + 1 : argument;
}

// The command itself, of paths only the names: the model travels, its maker's folders stay at home;
// then what it reached. NULL when memory is out.
static char *describe(const struct trainer *trainer, int argc, char **argv) {
  json_t *command = json_array();
  for (int i = 0; i < argc; i++)
    json_array_append_new(command, json_string(name_of(argv[i])));
  const struct epoch_record *best = &trainer->records[trainer->best_epoch - 1];
  json_t *document =
      json_pack("{s:o, s:I, s:I, s:I, s:I, s:f, s:f}", "command", command, "seed",
                (json_int_t)trainer->options.seed, "frames",
                (json_int_t)dataset_frames(trainer->dataset, SPLIT_TRAIN), "epochs",
                (json_int_t)trainer->epoch, "best_epoch", (json_int_t)trainer->best_epoch,
                "validation_explained", best->validation, "validation_mm", best->validation_mm);
  char *text = document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
  json_decref(document);
  return text;
}

static int write_results(const struct settings *s, struct trainer *trainer, const struct body *body,
                         int argc, char **argv, struct dsnet_error *error) {
  char *provenance = describe(trainer, argc, argv);
  if (!provenance)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result =
      export_model(trainer, body, provenance, s->f16 ? NET_F16 : NET_F32, s->output, error);
  if (result == 0 && s->report)
    result = report_write(trainer, body, provenance, s->report, error);
  free(provenance);
  const struct epoch_record *best = &trainer->records[trainer->best_epoch - 1];
  if (result == 0)
    printf("%s: best after epoch %zu of %zu, validation explained %.4f, %.3f mm\n", s->output,
           trainer->best_epoch, trainer->epoch, best->validation, best->validation_mm);
  return result;
}

static int run(const struct settings *s, struct trainer *trainer, const struct body *body, int argc,
               char **argv, struct dsnet_error *error) {
  char *checkpoint = NULL;
  int result = 0;
  if (asprintf(&checkpoint, "%s.checkpoint", s->output) < 0)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (s->resume && access(checkpoint, F_OK) == 0)
    result = checkpoint_load(trainer, checkpoint, error);
  trainer->progress = show_step;
  while (result == 0 && !trainer_finished(trainer)) {
    result = trainer_epoch(trainer, error);
    if (result == 0)
      result = checkpoint_save(trainer, checkpoint, error);
    if (result == 0)
      show_epoch(trainer);
  }
  if (result == 0)
    result = write_results(s, trainer, body, argc, argv, error);
  free(checkpoint);
  return result;
}

static int prepare(const struct settings *s, const struct body *body, struct dataset *dataset,
                   struct dsnet_error *error) {
  struct dataset_options preparation = {.latent = (size_t)s->latent,
                                        .loss = s->loss,
                                        .snapshots = (size_t)s->snapshots,
                                        .progress = show_preparation};
  struct splits *splits;
  struct dyna *dyna;
  int result = splits_load(&splits, s->splits, error);
  if (result < 0)
    return result;
  result = dyna_open(&dyna, s->data.items[0], error);
  if (result == 0) {
    gemm_blas_threads((int)s->threads);
    result = dataset_build(dataset, dyna, body, splits, &preparation, error);
    dyna_close(dyna);
  }
  splits_free(splits);
  return result;
}

static int train(const struct settings *s, int argc, char **argv, struct dsnet_error *error) {
  struct trainer_options training = options_of(s);
  struct body *body;
  struct dataset dataset;
  struct trainer *trainer = NULL;
  if (!training.features)
    return dsnet_error_set(error, DSNET_EVALUE, "--features: there is no set \"%s\"", s->features);
  int result = input_body_load(&body, s->body, error);
  if (result < 0)
    return result;
  result = prepare(s, body, &dataset, error);
  if (result < 0)
    goto no_data;
  if (isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr);
  fprintf(stderr,
          "%zu training frames, %zu for validation; %zu latents hold %.2f%% of the motion\n",
          dataset_frames(&dataset, SPLIT_TRAIN), dataset_frames(&dataset, SPLIT_VALIDATION),
          dataset.subspace.latent, 100 * dataset.subspace.captured);
  result = trainer_new(&trainer, &dataset, &training, error);
  if (result == 0)
    result = run(s, trainer, body, argc, argv, error);
  trainer_free(trainer);
  dataset_deinit(&dataset);
no_data:
  body_free(body);
  return result;
}

int command_train(int argc, char **argv) {
  struct settings settings;
  struct dsnet_error error = {0};
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  if (!settings.output || !settings.splits) {
    fprintf(stderr, "dsnet train: %s is needed\n", settings.output ? "--splits FILE" : "-o FILE");
    return COMMAND_USAGE;
  }
  interrupt_catch();
  return train(&settings, argc, argv, &error) < 0 ? command_fail("train", &error) : COMMAND_OK;
}
