// SPDX-License-Identifier: Apache-2.0
// dsnet-stream: streams motion clips through a server and says what came back. The results go to
// standard output, all else to standard error.
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "body/body.h"
#include "builtin/builtin.h"
#include "stream/arguments.h"
#include "stream/clips.h"
#include "stream/stream.h"

enum { EXIT_ALL_WELL = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static int fail(int status, const struct dsnet_error *error) {
  fprintf(stderr, "dsnet-stream: %s\n", error->text);
  return status;
}

static struct display_options choose_display(const struct arguments *arguments) {
  setlocale(LC_CTYPE, ""); // so that nl_langinfo tells what the terminal shows
  return (struct display_options){
      .mode = arguments->quiet        ? DISPLAY_OFF
              : isatty(STDERR_FILENO) ? DISPLAY_TERMINAL
                                      : DISPLAY_LINES,
      .unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
  };
}

static bool print_summary(const struct arguments *arguments, const struct stream_summary *summary,
                          const struct body *body) {
  if (arguments->json)
    return stream_summary_print_json(summary, body, stdout) && fflush(stdout) == 0;
  if (summary->opened) // else there is nothing to tell but the error
    stream_summary_print(summary, body, stdout);
  return fflush(stdout) == 0;
}

static int stream_and_print(const struct arguments *arguments, const struct clips *clips,
                            const struct body *body, struct dsnet_error *error) {
  struct stream_options run;
  arguments_stream_options(arguments, &run);
  run.display = choose_display(arguments);
  struct stream_summary *summary = calloc(1, sizeof *summary);
  if (!summary) {
    dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
    return fail(EXIT_FAILED, error);
  }
  int status = EXIT_FAILED;
  if (stream_run(&run, clips->streamed, clips->count, summary, error) != 0)
    fail(EXIT_FAILED, error);
  else if (!print_summary(arguments, summary, body))
    fputs("dsnet-stream: the summary could not be written\n", stderr);
  else if (!stream_summary_is_ok(summary))
    fprintf(stderr, "dsnet-stream: %s\n", summary->first_text);
  else
    status = EXIT_ALL_WELL;
  stream_summary_deinit(summary);
  free(summary);
  return status;
}

static int load_and_stream(const struct arguments *arguments, struct dsnet_error *error) {
  if (clips_check_record(&arguments->clips, arguments->record, error) != 0)
    return fail(EXIT_USAGE, error);
  struct clips *clips = calloc(1, sizeof *clips);
  struct body *body = NULL;
  if (!clips) {
    dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
    return fail(EXIT_FAILED, error);
  }
  int status = clips_load(clips, &arguments->clips, arguments->fps,
                          arguments->betas_text ? arguments->betas : NULL, error);
  if (status == 0)
    status = arguments->body ? body_load(&body, arguments->body, error)
                             : builtin_body_load(&body, error);
  status = status == 0 ? stream_and_print(arguments, clips, body, error) : fail(EXIT_FAILED, error);
  body_free(body);
  clips_free(clips);
  free(clips);
  return status;
}

// Every session takes a socket and may take a file; the usual limit, 1024, is for select.
static void raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit); // if it fails, so will the sessions that are too many
}

static int run(int outcome, const struct arguments *arguments, struct dsnet_error *error) {
  if (outcome < 0)
    return fail(EXIT_USAGE, error);
  if (outcome == OPTIONS_HELP) {
    arguments_print_help(stdout);
    return EXIT_ALL_WELL;
  }
  if (arguments->version) {
    puts("dsnet-stream " DSNET_VERSION);
    return EXIT_ALL_WELL;
  }
  signal(SIGPIPE, SIG_IGN); // a connection that breaks is an error of that session
  signal(SIGXFSZ, SIG_IGN); // and so is a recording that grows over a limit
  raise_descriptor_limit();
  return load_and_stream(arguments, error);
}

int main(int argc, char **argv) {
  struct arguments arguments;
  struct dsnet_error error = {0};
  int outcome = arguments_parse(&arguments, argc, argv, &error);
  int status = run(outcome, &arguments, &error);
  arguments_deinit(&arguments);
  return status;
}
