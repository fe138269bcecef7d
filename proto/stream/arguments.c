// SPDX-License-Identifier: Apache-2.0
#include "stream/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "stream/recording.h"
#include "wire/message.h"

#define MEMBER(name) offsetof(struct arguments, name)

static const struct option options[] = {
    {.name = "server",
     .argument = "URL",
     .environment = "DSNET_SERVERS",
     .type = OPTION_LIST,
     .offset = MEMBER(servers),
     .fallback = "ws://127.0.0.1:8080/v1/stream",
     .help = "A server's stream, or that of a balancer before several, ws://HOST[:PORT][/PATH]; "
             "repeatable, then they are tried in turn."},
    {.name = "rate",
     .argument = "RATE",
     .type = OPTION_TEXT,
     .offset = MEMBER(rate),
     .fallback = "real",
     .choices = "real|max",
     .help = "real sends each frame at its time, max as fast as results come back."},
    {.name = "fps",
     .argument = "F",
     .type = OPTION_REAL,
     .offset = MEMBER(fps),
     .fallback = "60",
     .min = MESSAGE_FPS_MIN,
     .max = MESSAGE_FPS_MAX,
     .help = "Frames a second of the stream; clips of another rate are resampled."},
    {.name = "sessions",
     .argument = "N",
     .type = OPTION_INT,
     .offset = MEMBER(sessions),
     .fallback = "0",
     .min = 0,
     .max = 4096,
     .help = "Sessions at once, which take the clips in turn; 0 is one for each clip."},
    {.name = "repeat",
     .argument = "N",
     .type = OPTION_INT,
     .offset = MEMBER(repeat),
     .fallback = "1",
     .min = 1,
     .max = 1000000,
     .help = "Stream each clip N times without a break, for longer load."},
    {.name = "warm-up",
     .argument = "S",
     .type = OPTION_REAL,
     .offset = MEMBER(warm_up),
     .fallback = "0",
     .min = 0,
     .max = 86400,
     .help =
         "Leave the latencies of each stream's first S seconds out, in which all join at once."},
    {.name = "window",
     .argument = "N",
     .type = OPTION_INT,
     .offset = MEMBER(window),
     .fallback = "0",
     .min = 0,
     .max = STREAM_WINDOW_MAX,
     .help = "Frames in flight per session at most; 0 is 8 at the rate max and 240 at real."},
    {.name = "model",
     .argument = "NAME",
     .type = OPTION_TEXT,
     .offset = MEMBER(model),
     .fallback = "default",
     .help = "The model to ask the server for."},
    {.name = "betas",
     .argument = "A,B,...",
     .type = OPTION_TEXT,
     .offset = MEMBER(betas_text),
     .help = "Up to 10 shape coefficients, in place of each clip's own."},
    {.name = "output",
     .argument = "KIND",
     .type = OPTION_TEXT,
     .offset = MEMBER(output),
     .fallback = "displacement",
     .choices = "displacement|vertices|latent",
     .help = "What each result holds."},
    {.name = "encoding",
     .argument = "NAME",
     .type = OPTION_TEXT,
     .offset = MEMBER(encoding),
     .fallback = "f32",
     .choices = "f32|f16|i16",
     .help = "How the results' numbers come; f16 and i16 halve the bytes."},
    {.name = "delivery",
     .argument = "HOW",
     .type = OPTION_TEXT,
     .offset = MEMBER(delivery),
     .fallback = "all",
     .choices = "all|latest",
     .help = "latest lets the server skip results that a newer one has overtaken."},
    {.name = "glitch",
     .argument = "HOW",
     .type = OPTION_TEXT,
     .offset = MEMBER(glitch),
     .fallback = "pass",
     .choices = "pass|hold",
     .help = "hold lets the server replace poses that no body moves to in a frame."},
    {.name = "record",
     .argument = "FILE",
     .letter = 'o',
     .type = OPTION_TEXT,
     .offset = MEMBER(record),
     .help = "Record the results as .npz, .pc2 (a point cache) or .raw (float32); with several "
             "sessions out.npz becomes out_000.npz, out_001.npz and so on."},
    {.name = "reconnect",
     .type = OPTION_FLAG,
     .offset = MEMBER(reconnect),
     .help = "Take up a lost stream again, on any of the servers, and send what went missing."},
    {.name = "reconnect-tries",
     .argument = "N",
     .type = OPTION_INT,
     .offset = MEMBER(reconnect_tries),
     .fallback = "10",
     .min = 1,
     .max = 1000000,
     .help = "Tries in a row without a new result before --reconnect gives up."},
    {.name = "reconnect-time",
     .argument = "S",
     .type = OPTION_REAL,
     .offset = MEMBER(reconnect_time),
     .fallback = "60",
     .min = 0.1,
     .max = 86400,
     .help = "Seconds of an outage after which --reconnect gives up."},
    {.name = "checkpoint-every",
     .argument = "N",
     .type = OPTION_INT,
     .offset = MEMBER(checkpoint_every),
     .fallback = "0",
     .min = 0,
     .max = UINT32_MAX,
     .help = "Frames between the checkpoints asked for; 0 is none but a stopping server's, and a "
             "lost stream is sent again from the start."},
    {.name = "timeout",
     .argument = "S",
     .type = OPTION_REAL,
     .offset = MEMBER(timeout),
     .fallback = "10",
     .min = 0.1,
     .max = 3600,
     .help = "Seconds without a result or answer after which a connection counts as lost."},
    {.name = "token",
     .argument = "TOKEN",
     .environment = "DSNET_TOKEN",
     .type = OPTION_TEXT,
     .offset = MEMBER(token),
     .help = "Bearer token for a server that wants one."},
    {.name = "body",
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = MEMBER(body),
     .help = "The body whose regions displacements are broken down by; without it the built-in "
             "one."},
    {.name = "check-all",
     .type = OPTION_FLAG,
     .offset = MEMBER(check_all),
     .help = "Look at every number of every session. Without it those that only repeat another's "
             "clip make load: their numbers are dropped unread."},
    {.name = "json",
     .type = OPTION_FLAG,
     .offset = MEMBER(json),
     .help = "Print the summary as one line of JSON."},
    {.name = "quiet",
     .letter = 'q',
     .type = OPTION_FLAG,
     .offset = MEMBER(quiet),
     .help = "Show no progress on standard error."},
    {.name = "version",
     .type = OPTION_FLAG,
     .offset = MEMBER(version),
     .help = "Print the version and exit."},
};

static const struct option_table table = {
    .usage = "dsnet-stream CLIP... [options]",
    .about = "Streams motion clips (AMASS npz; \"sample\" is the built-in one) through a dsnetd "
             "and checks every\nresult: order, size, timestamp, finiteness. Prints frame rate, "
             "latencies and the largest\ndisplacement per body region. The exit status is 0 only "
             "if every frame came back, 2 for wrong usage.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .positionals_offset = MEMBER(clips),
    .positionals_min = 0, // checked later, so that --version needs none
    .positionals_max = OPTION_LIST_MAX,
};

void arguments_print_help(FILE *out) {
  options_print_help(&table, out);
}

// The value whose name the text is. The table's choices leave no other text.
#define VALUE_OF(type, first, last, name_of)                                                       \
  static enum type type##_of(const char *text) {                                                   \
    enum type value = first;                                                                       \
    while (value < (last) && strcmp(name_of(value), text) != 0)                                    \
      value++;                                                                                     \
    return value;                                                                                  \
  }
VALUE_OF(frame_kind, FRAME_DISPLACEMENT, FRAME_LATENT, message_output_name)
VALUE_OF(frame_encoding, FRAME_F32, FRAME_I16, message_encoding_name)
VALUE_OF(message_glitch, MESSAGE_GLITCH_PASS, MESSAGE_GLITCH_HOLD, message_glitch_name)
VALUE_OF(message_delivery, MESSAGE_DELIVERY_ALL, MESSAGE_DELIVERY_LATEST, message_delivery_name)

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

static int parse_servers(struct arguments *arguments, struct dsnet_error *error) {
  const struct option_list *servers = &arguments->servers;
  int status = 0;
  if (servers->count > SERVERS_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "--server: at most %d servers", SERVERS_MAX);
  for (size_t i = 0; status == 0 && i < servers->count; i++)
    status = stream_url_parse(&arguments->urls[i], servers->items[i], error);
  return status < 0 ? dsnet_error_prefix(error, "--server") : 0;
}

// The token goes into a header: a line end in it would forge others.
static int check_token(const char *token, struct dsnet_error *error) {
  for (const char *at = token; at && *at; at++)
    if (*at <= 0x20 || *at >= 0x7f)
      return dsnet_error_set(error, DSNET_EVALUE, "--token: only printable ASCII without spaces");
  if (token && (!token[0] || strlen(token) > 4096))
    return dsnet_error_set(error, DSNET_EVALUE, "--token: 1 to 4096 bytes are expected");
  return 0;
}

static int check_record(const struct arguments *arguments, struct dsnet_error *error) {
  if (!arguments->record)
    return 0;
  if (!strcmp(arguments->delivery, "latest"))
    return dsnet_error_set(error, DSNET_EUSAGE,
                           "--record: a recording has every frame, so it needs --delivery all");
  int status = recording_check_name(arguments->record, frame_kind_of(arguments->output), error);
  return status < 0 ? dsnet_error_prefix(error, "--record") : 0;
}

// What the table's bounds cannot say.
static int check(struct arguments *arguments, struct dsnet_error *error) {
  size_t length = strlen(arguments->model), clips = arguments->clips.count;
  if (clips == 0)
    return dsnet_error_set(error, DSNET_EUSAGE,
                           "a CLIP is missing: an AMASS npz, or \"sample\" (see --help)");
  if (length == 0 || length >= MESSAGE_NAME_MAX)
    return dsnet_error_set(error, DSNET_EVALUE, "--model: a name has 1 to %d bytes",
                           MESSAGE_NAME_MAX - 1);
  if (arguments->sessions && (size_t)arguments->sessions < clips)
    return dsnet_error_set(error, DSNET_EVALUE,
                           "--sessions: %lld sessions cannot stream %zu clips; give more, or 0",
                           arguments->sessions, clips);
  int status = parse_servers(arguments, error);
  if (status == 0)
    status = check_token(arguments->token, error);
  if (status == 0)
    status = check_record(arguments, error);
  if (status == 0 && arguments->betas_text)
    status = parse_betas(arguments->betas_text, arguments->betas, error);
  return status;
}

int arguments_parse(struct arguments *arguments, int argc, char *const *argv,
                    struct dsnet_error *error) {
  memset(arguments, 0, sizeof *arguments);
  int outcome = options_parse(&table, argc, argv, arguments, error);
  if (outcome != OPTIONS_PARSED || arguments->version)
    return outcome;
  int status = check(arguments, error);
  return status < 0 ? status : OPTIONS_PARSED;
}

void arguments_deinit(struct arguments *arguments) {
  free(arguments->servers.storage);
  arguments->servers.storage = NULL;
}

void arguments_stream_options(const struct arguments *arguments, struct stream_options *run) {
  *run = (struct stream_options){
      .servers = arguments->urls,
      .server_count = arguments->servers.count,
      .token = arguments->token,
      .model = arguments->model,
      .fps = arguments->fps,
      .output = frame_kind_of(arguments->output),
      .encoding = frame_encoding_of(arguments->encoding),
      .delivery = message_delivery_of(arguments->delivery),
      .glitch = message_glitch_of(arguments->glitch),
      .checkpoint_every = (uint32_t)arguments->checkpoint_every,
      .reconnect = {.tries = arguments->reconnect ? (unsigned)arguments->reconnect_tries : 0,
                    .seconds = arguments->reconnect_time},
      .real_rate = strcmp(arguments->rate, "real") == 0,
      .sessions = arguments->sessions ? (size_t)arguments->sessions : arguments->clips.count,
      .repeat = (size_t)arguments->repeat,
      .warm_up = arguments->warm_up,
      .window = (size_t)arguments->window,
      .timeout = arguments->timeout,
      .record = arguments->record,
      .check_all = arguments->check_all,
  };
}
