// SPDX-License-Identifier: Apache-2.0
// The settings of dsnetd: one table of options (flag, environment variable, default, bounds, help),
// parsed strictly once before anything starts and never changed afterwards.
#ifndef DSNET_SERVER_CONFIG_H
#define DSNET_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/options.h"

// Sockets kept above the session cap, so that probes and pages are answered while every session is
// taken (libmicrohttpd stops accepting at its limit, and upgraded sockets count towards it).
#define CONFIG_SPARE_CONNECTIONS 64

struct config {
  const char *listen;
  long long port;
  const char *body;          // NULL: the built-in one
  struct option_list models; // "NAME=FILE"; empty: the built-in one as "default"
  long long threads;         // 0: one per core
  long long workers;         // 0: as many as threads; never more
  long long max_batch;
  long long max_sessions;
  long long max_connections; // 0: max_sessions + CONFIG_SPARE_CONNECTIONS, see config_connections
  long long max_message;     // bytes of one WebSocket message
  long long frames_in_flight;
  long long max_per_address;
  double max_late;
  long long max_infer_frames, max_infer_bytes, max_sequences; // of the Open Inference Protocol
  double sequence_idle;                                       // seconds
  const char *operator_token_file;
  double ping_interval, idle_timeout, handshake_timeout, transfer_timeout, close_timeout,
      drain_grace, drain_timeout;     // seconds
  struct option_list state_key_files; // none: a key of this process
  double token_max_age;               // seconds
  const char *data_dir;               // NULL: no jobs
  long long job_threads;              // 0: one per core
  long long job_max_bytes, job_max_frames, job_max_waiting;
  double job_ttl;                     // seconds
  struct option_list allowed_origins; // empty: any
  const char *log_level;
  bool check_config, healthcheck, print_config, options_markdown, version;
};

extern const struct option_table config_options;

// Parses argv and the environment. Returns OPTIONS_PARSED or OPTIONS_HELP; otherwise a negative
// code, and the error names the option. config_free also after a failure.
int config_parse(struct config *config, int argc, char *const *argv, struct dsnet_error *error);
void config_free(struct config *config);

// The connection limit in effect.
unsigned config_connections(const struct config *config);

#endif
