// SPDX-License-Identifier: Apache-2.0
// dsnet-stream: streams motion clips through a server and says what came back. Options, clips and
// output; the work is stream.c's.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "builtin/builtin.h"
#include "motion/clip.h"
#include "stream/stream.h"
#include "wire/message.h"

enum { EXIT_ALL_WELL = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct settings {
  const char *url, *rate, *output, *model, *betas, *token, *body;
  long long sessions, window;
  double timeout;
  bool json, version;
  struct option_list clips;
};

static const struct option options[] = {
    {.name = "url",
     .argument = "URL",
     .environment = "DSNET_URL",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, url),
     .fallback = "ws://127.0.0.1:8080/v1/stream",
     .help = "The server's stream, ws://HOST[:PORT][/PATH]."},
    {.name = "rate",
     .argument = "RATE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, rate),
     .fallback = "real",
     .choices = "real|max",
     .help = "real sends each frame at its time (60 Hz), max as fast as results come back."},
    {.name = "sessions",
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, sessions),
     .fallback = "0",
     .min = 0,
     .max = 512,
     .help = "Sessions at once, which take the clips in turn; 0 is one for each clip."},
    {.name = "window",
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, window),
     .fallback = "0",
     .min = 0,
     .max = STREAM_WINDOW_MAX,
     .help = "Frames in flight per session at most; 0 is 8 at the rate max and 240 at real."},
    {.name = "output",
     .argument = "FILE",
     .letter = 'o',
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, output),
     .help = "Record the results as npz; with several sessions out.npz becomes out_000.npz, "
             "out_001.npz and so on."},
    {.name = "model",
     .argument = "NAME",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, model),
     .fallback = "default",
     .help = "The model to ask the server for."},
    {.name = "betas",
     .argument = "A,B,...",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, betas),
     .help = "Up to 10 shape coefficients, in place of each clip's own."},
    {.name = "timeout",
     .argument = "S",
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, timeout),
     .fallback = "10",
     .min = 0.1,
     .max = 3600,
     .help = "Seconds without a result or answer after which a session fails."},
    {.name = "token",
     .argument = "TOKEN",
     .environment = "DSNET_TOKEN",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, token),
     .help = "Bearer token for a server that wants one."},
    {.name = "body",
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, body),
     .help = "The body whose regions the results are broken down by; without it the built-in one."},
    {.name = "json",
     .type = OPTION_FLAG,
     .offset = offsetof(struct settings, json),
     .help = "Print the summary as one JSON object."},
    {.name = "version",
     .type = OPTION_FLAG,
     .offset = offsetof(struct settings, version),
     .help = "Print the version."},
};

static const struct option_table table = {
    .usage = "dsnet-stream CLIP... [options]",
    .about = "Streams motion clips (AMASS npz; \"sample\" is the built-in one) through a dsnetd "
             "and checks every\nresult: order, size, timestamp, finiteness. Prints frame rate, "
             "latencies and the largest\ndisplacement per body region. The exit status is 0 only "
             "if every frame came back.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .positionals_offset = offsetof(struct settings, clips),
    .positionals_min = 0, // checked later, so that --version needs none
    .positionals_max = OPTION_LIST_MAX,
};

static int fail(int status, const struct dsnet_error *error) {
  fprintf(stderr, "dsnet-stream: %s\n", error->text);
  return status;
}

// "a,b,..." -> betas; the rest 0.
static int parse_betas(const char *text, float betas[STREAM_BETAS], struct dsnet_error *error) {
  for (size_t i = 0; i < STREAM_BETAS; i++) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || !(value >= -MESSAGE_BETA_LIMIT && value <= MESSAGE_BETA_LIMIT))
      break;
    betas[i] = (float)value;
    if (!*end)
      return 0;
    if (*end != ',')
      break;
    text = end + 1;
  }
  return dsnet_error_set(error, DSNET_EVALUE,
                         "--betas: up to %d numbers of %g to %g with commas between are expected",
                         STREAM_BETAS, -MESSAGE_BETA_LIMIT, MESSAGE_BETA_LIMIT);
}

// What the table's bounds cannot say. The token goes into a header: a line end in it would forge
// others.
static int check_together(const struct settings *settings, struct dsnet_error *error) {
  size_t length = strlen(settings->model);
  if (length == 0 || length >= MESSAGE_NAME_MAX)
    return dsnet_error_set(error, DSNET_EVALUE, "--model: a name has 1 to %d bytes",
                           MESSAGE_NAME_MAX - 1);
  if (settings->sessions && (size_t)settings->sessions < settings->clips.count)
    return dsnet_error_set(error, DSNET_EVALUE,
                           "--sessions: %lld sessions cannot stream %zu clips; give more, or 0",
                           settings->sessions, settings->clips.count);
  for (const char *at = settings->token; at && *at; at++)
    if (*at <= 0x20 || *at >= 0x7f)
      return dsnet_error_set(error, DSNET_EVALUE, "--token: only printable ASCII without spaces");
  if (settings->token && (!settings->token[0] || strlen(settings->token) > 4096))
    return dsnet_error_set(error, DSNET_EVALUE, "--token: 1 to 4096 bytes are expected");
  return 0;
}

// A clip at 60 Hz, by file name or "sample".
static int load_clip(struct clip **clip, const char *name, struct dsnet_error *error) {
  struct clip *original;
  int status = strcmp(name, "sample") == 0 ? builtin_clip_load(&original, error)
                                           : clip_load(&original, name, error);
  if (status != 0)
    return status;
  status = clip_resample(original, STREAM_FPS, clip, error);
  clip_free(original);
  if (status == 0 && (*clip)->frames == 0) {
    clip_free(*clip);
    status = dsnet_error_set(error, DSNET_EVALUE, "has no frame");
  }
  return status ? dsnet_error_prefix(error, "%s", name) : 0;
}

struct clips {
  struct clip *loaded[OPTION_LIST_MAX];
  struct stream_clip streamed[OPTION_LIST_MAX];
  size_t count;
};

static void free_clips(struct clips *clips) {
  while (clips->count)
    clip_free(clips->loaded[--clips->count]);
}

// `betas` replace each clip's own, unless NULL.
static int load_clips(struct clips *clips, const struct settings *settings, const float *betas,
                      struct dsnet_error *error) {
  for (; clips->count < settings->clips.count; clips->count++) {
    struct clip **clip = &clips->loaded[clips->count];
    if (load_clip(clip, settings->clips.items[clips->count], error) != 0)
      return error->code;
    struct stream_clip *streamed = &clips->streamed[clips->count];
    *streamed = (struct stream_clip){
        .frames = (*clip)->frames, .pose = (*clip)->pose, .trans = (*clip)->trans};
    memcpy(streamed->betas, betas ? betas : (*clip)->betas, sizeof streamed->betas);
  }
  return 0;
}

static bool print_summary(const struct settings *settings, const struct stream_summary *summary,
                          const struct body *body) {
  if (settings->json)
    return stream_summary_print_json(summary, body, stdout) && fflush(stdout) == 0;
  stream_summary_print(summary, body, stdout);
  return fflush(stdout) == 0;
}

static int stream_and_print(const struct settings *settings, const struct clips *clips,
                            const struct body *body, struct dsnet_error *error) {
  struct stream_options run = {
      .token = settings->token,
      .model = settings->model,
      .real_rate = strcmp(settings->rate, "real") == 0,
      .sessions = settings->sessions ? (size_t)settings->sessions : clips->count,
      .window = (size_t)settings->window,
      .timeout = settings->timeout,
      .output = settings->output,
      .progress = isatty(STDERR_FILENO),
  };
  if (stream_url_parse(&run.url, settings->url, error) != 0)
    return fail(EXIT_USAGE, error);
  struct stream_summary *summary = calloc(1, sizeof *summary);
  if (!summary) {
    dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
    return fail(EXIT_FAILED, error);
  }
  int status = EXIT_FAILED;
  if (stream_run(&run, clips->streamed, clips->count, summary, error) != 0)
    fail(EXIT_FAILED, error);
  else if (!print_summary(settings, summary, body))
    fputs("dsnet-stream: the summary could not be written\n", stderr);
  else if (!stream_summary_is_ok(summary))
    fprintf(stderr, "dsnet-stream: %s\n", summary->first_text);
  else
    status = EXIT_ALL_WELL;
  stream_summary_deinit(summary);
  free(summary);
  return status;
}

static int load_and_stream(const struct settings *settings, const float *betas,
                           struct dsnet_error *error) {
  struct clips *clips = calloc(1, sizeof *clips);
  struct body *body = NULL;
  if (!clips) {
    dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
    return fail(EXIT_FAILED, error);
  }
  int status = load_clips(clips, settings, betas, error);
  if (status == 0)
    status =
        settings->body ? body_load(&body, settings->body, error) : builtin_body_load(&body, error);
  status = status == 0 ? stream_and_print(settings, clips, body, error) : fail(EXIT_FAILED, error);
  body_free(body);
  free_clips(clips);
  free(clips);
  return status;
}

static int run(const struct settings *settings) {
  struct dsnet_error error = {0};
  float betas[STREAM_BETAS] = {0};
  if (check_together(settings, &error) != 0 ||
      (settings->betas && parse_betas(settings->betas, betas, &error) != 0))
    return fail(EXIT_USAGE, &error);
  return load_and_stream(settings, settings->betas ? betas : NULL, &error);
}

int main(int argc, char **argv) {
  struct settings settings;
  struct dsnet_error error = {0};
  int outcome = options_parse(&table, argc, argv, &settings, &error);
  if (outcome == OPTIONS_HELP) {
    options_print_help(&table, stdout);
    return EXIT_ALL_WELL;
  }
  if (outcome != OPTIONS_PARSED)
    return fail(EXIT_USAGE, &error);
  if (settings.version) {
    puts("dsnet-stream " DSNET_VERSION);
    return EXIT_ALL_WELL;
  }
  if (settings.clips.count == 0) {
    dsnet_error_set(&error, DSNET_EUSAGE,
                    "a CLIP is missing: an AMASS npz, or \"sample\" (see --help)");
    return fail(EXIT_USAGE, &error);
  }
  signal(SIGPIPE, SIG_IGN); // a connection that breaks is an error of that session
  return run(&settings);
}
