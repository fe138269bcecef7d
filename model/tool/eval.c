// SPDX-License-Identifier: Apache-2.0
// dsnet eval: networks and their rivals side by side on sequences that were held out.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "eval/card.h"
#include "eval/comparison.h"
#include "eval/timing.h"
#include "inputs.h"
#include "interrupt.h"
#include "io/file.h"
#include "nn/gemm.h"

struct settings {
  struct option_list data, models;
  const char *body, *splits, *card;
  long long longest, latent;
  bool baselines, markdown;
};

#define MEMBER(member) .offset = offsetof(struct settings, member)

static const struct option options[] = {
    {.name = "splits",
     .argument = "FILE",
     .type = OPTION_TEXT,
     MEMBER(splits),
     .help = "Which sequences were held out (needed)."},
    {.name = "model",
     .letter = 'm',
     .argument = "FILE",
     .type = OPTION_LIST,
     MEMBER(models),
     .help = "A model to compare; repeatable. The floor is that of the first one's decoder."},
    {.name = "body",
     .argument = "FILE",
     .type = OPTION_TEXT,
     MEMBER(body),
     .help = "The data's body (SMPL-layout npz); without it the built-in one."},
    {.name = "baselines",
     .type = OPTION_FLAG,
     MEMBER(baselines),
     .help = "Also fit the autoregressions and the springs to the training split."},
    {.name = "latent",
     .argument = "N",
     .type = OPTION_INT,
     MEMBER(latent),
     .fallback = "64",
     .min = 1,
     .max = NET_LATENT_MAX,
     .help = "Latents of the autoregressions."},
    {.name = "longest",
     .argument = "N",
     .type = OPTION_INT,
     MEMBER(longest),
     .min = 0,
     .max = CLIP_FRAMES_MAX,
     .help = "Frames of each sequence; 0: all."},
    {.name = "card",
     .argument = "FILE",
     .type = OPTION_TEXT,
     MEMBER(card),
     .help = "Write the first model again with what it reached here in its metadata."},
    {.name = "markdown", .type = OPTION_FLAG, MEMBER(markdown), .help = "Print Markdown tables."},
};

static const struct option_table table = {
    .usage = "dsnet eval DATA --splits FILE [-m MODEL]... [options]",
    .about = "Compares models with their rivals on the held-out sequences of DATA (as dsnet train\n"
             "reads it): error, velocity error, share of the motion explained, by split and by\n"
             "region, and processor time a frame on one core.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .positionals_offset = offsetof(struct settings, data),
    .positionals_min = 1,
    .positionals_max = 1,
};

static bool show(void *context, double done) {
  const char *stage = context;
  if (isatty(STDERR_FILENO))
    fprintf(stderr, "\r\033[K%s %3.0f%%", stage, 100 * done);
  return !interrupt_seen();
}

static bool show_stage(void *context, const char *stage, double done) {
  (void)context;
  return show((void *)stage, done);
}

// What the command holds.
struct inputs {
  struct body *body;
  struct splits *splits;
  struct dyna *dyna;
  struct net *nets[OPTION_LIST_MAX];
  size_t first_net;       // the row of the first model
  struct dataset dataset; // of the training split, with --baselines
};

static int add_networks(const struct settings *s, struct inputs *in, struct comparison *comparison,
                        struct dsnet_error *error) {
  int result = 0;
  for (size_t i = 0; result == 0 && i < s->models.count; i++) {
    const char *path = s->models.items[i], *slash = strrchr(path, '/');
    if (comparison->count + 2 > COMPARISON_ROWS_MAX)
      return dsnet_error_set(error, DSNET_ELIMIT, "at most %d rows", COMPARISON_ROWS_MAX);
    result = input_net_load(&in->nets[i], path, error);
    if (result == 0)
      result = input_match(in->nets[i], in->body, error);
    if (result == 0 && i == 0)
      result = predictor_floor(&comparison->rows[comparison->count++], in->nets[0], error);
    if (i == 0)
      in->first_net = comparison->count;
    if (result == 0)
      result = predictor_net(&comparison->rows[comparison->count++], in->nets[i],
                             slash ? slash + 1 : path, error);
  }
  return result;
}

static int add_baselines(const struct settings *s, struct inputs *in, struct comparison *comparison,
                         struct dsnet_error *error) {
  static const char *const sets[] = {"paper", "inertial"};
  const struct dataset_options preparation = {
      .latent = (size_t)s->latent, .snapshots = 2000, .progress = show_stage};
  int result = dataset_build(&in->dataset, in->dyna, in->body, in->splits, &preparation, error);
  for (size_t i = 0; result == 0 && i < 2; i++)
    result = predictor_regression(&comparison->rows[comparison->count++], &in->dataset,
                                  feature_set_find(sets[i]), error);
  if (result == 0)
    result = predictor_springs(&comparison->rows[comparison->count++], in->body, in->dyna,
                               in->splits, error);
  return result;
}

static int write_card(const struct settings *s, const struct inputs *in,
                      const struct comparison *comparison, struct dsnet_error *error) {
  enum { SPLITS_MAX = 1 << 20 };
  struct net *net = in->nets[0];
  uint8_t *bytes;
  size_t size;
  int result = file_read(s->splits, SPLITS_MAX, &bytes, &size, error);
  if (result < 0)
    return result;
  char *splits = strndup((const char *)bytes, size), *card = NULL;
  free(bytes);
  if (splits)
    card = card_write(comparison, in->first_net, net_provenance(net), splits);
  if (!card)
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0)
    result = net_set_provenance(net, card, error);
  if (result == 0)
    result = net_save(net, s->card, net_precision(net), error);
  free(card);
  free(splits);
  return result;
}

static int compare(const struct settings *s, struct inputs *in, struct comparison *comparison,
                   struct dsnet_error *error) {
  int result = input_body_load(&in->body, s->body, error);
  if (result == 0)
    result = splits_load(&in->splits, s->splits, error);
  if (result == 0)
    result = dyna_open(&in->dyna, s->data.items[0], error);
  if (result == 0)
    result = unpose_check_body(in->dyna, in->body, error);
  if (result < 0)
    return result;
  gemm_blas_threads(1); // times are those of one core
  predictor_zero(&comparison->rows[comparison->count++], body_vertices(in->body));
  if (!comparison->rows[0].context)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (s->baselines)
    result = add_baselines(s, in, comparison, error);
  if (result == 0)
    result = add_networks(s, in, comparison, error);
  if (result == 0)
    result = comparison_run(comparison, in->dyna, in->body, in->splits, (size_t)s->longest, show,
                            (void *)"comparing", error);
  if (result == 0)
    result = timing_physics(&comparison->physics_us, in->dyna, in->body, in->splits, error);
  if (isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr);
  if (result == 0)
    comparison_print(comparison, s->markdown, stdout);
  if (result == 0 && s->card)
    result = write_card(s, in, comparison, error);
  return result;
}

static void inputs_deinit(struct inputs *in) {
  for (size_t i = 0; i < OPTION_LIST_MAX; i++)
    net_free(in->nets[i]);
  dataset_deinit(&in->dataset);
  dyna_close(in->dyna);
  splits_free(in->splits);
  body_free(in->body);
}

int command_eval(int argc, char **argv) {
  struct settings settings;
  struct dsnet_error error = {0};
  struct inputs in = {0};
  struct comparison comparison;
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  if (!settings.splits) {
    fprintf(stderr, "dsnet eval: --splits FILE is needed\n");
    return COMMAND_USAGE;
  }
  if (settings.card && !settings.models.count) {
    fprintf(stderr, "dsnet eval: --card needs a model (-m FILE)\n");
    return COMMAND_USAGE;
  }
  interrupt_catch();
  int result = comparison_init(&comparison, &error);
  if (result == 0)
    result = compare(&settings, &in, &comparison, &error);
  comparison_deinit(&comparison);
  inputs_deinit(&in);
  return result < 0 ? command_fail("eval", &error) : COMMAND_OK;
}
