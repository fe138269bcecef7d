// SPDX-License-Identifier: Apache-2.0
// The command line of dsnet-stream: its table of options, and what they say in the terms of
// stream.h.
#ifndef DSNET_STREAM_ARGUMENTS_H
#define DSNET_STREAM_ARGUMENTS_H

#include <stdbool.h>

#include "base/options.h"
#include "stream/servers.h"
#include "stream/stream.h"

struct arguments {
  // As given.
  const char *rate, *output, *encoding, *delivery, *glitch, *record, *model, *betas_text, *token,
      *body;
  long long sessions, repeat, window, checkpoint_every, reconnect_tries;
  double fps, warm_up, timeout, reconnect_time;
  bool reconnect, check_all, quiet, json, version;
  struct option_list servers, clips;
  // As understood.
  struct stream_url urls[SERVERS_MAX];
  float betas[STREAM_BETAS]; // when betas_text is given
};

// Parses and checks everything that needs no file or network. Returns an option_outcome, or a
// negative code with an error that names the option. arguments_deinit releases what was parsed.
int arguments_parse(struct arguments *arguments, int argc, char *const *argv,
                    struct dsnet_error *error);
void arguments_deinit(struct arguments *arguments);

void arguments_print_help(FILE *out);

// The options of the run; `display` and pointers into `arguments` excepted, nothing is filled that
// was not asked for.
void arguments_stream_options(const struct arguments *arguments, struct stream_options *options);

#endif
