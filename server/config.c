// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct config, member)

static const struct option options[] = {
    {"listen", "ADDRESS", "DSNET_LISTEN", OPTION_TEXT, AT(listen), "127.0.0.1", 0, 0, NULL, 0,
     "Numeric address to listen on; 0.0.0.0 or :: for every interface."},
    {"port", "N", "DSNET_PORT", OPTION_INT, AT(port), "8080", 0, 65535, NULL, 0,
     "TCP port; 0 takes any free one, which is printed."},
    {"body", "FILE", "DSNET_BODY", OPTION_TEXT, AT(body), NULL, 0, 0, NULL, 0,
     "Body in the SMPL npz layout that the models belong to; without it the built-in one."},
    {"model", "NAME=FILE", "DSNET_MODELS", OPTION_LIST, AT(models), NULL, 0, 0, NULL, 0,
     "A model file and the name clients open it by; repeatable. Without it the built-in model is "
     "served as \"default\"."},
    {"threads", "N", "DSNET_THREADS", OPTION_INT, AT(threads), "0", 0, 256, NULL, 0,
     "Compute threads; 0 starts one per core. Sessions are spread over them."},
    {"workers", "N", "DSNET_WORKERS", OPTION_INT, AT(workers), "0", 0, 256, NULL, 0,
     "Threads that own the streams' sockets, each with an equal share of the compute threads; 0 "
     "starts one for each of these, and there are never more."},
    {"max-batch", "N", "DSNET_MAX_BATCH", OPTION_INT, AT(max_batch), "64", 1, 1024, NULL, 0,
     "Most sessions that one thread steps at once. Batches form from what is waiting; there is no "
     "time window."},
    {"max-sessions", "N", "DSNET_MAX_SESSIONS", OPTION_INT, AT(max_sessions), "1024", 1, 100000,
     NULL, 0, "Streams served at once; further ones are refused with 503 and Retry-After."},
    {"max-connections", "N", "DSNET_MAX_CONNECTIONS", OPTION_INT, AT(max_connections), "0", 0,
     200000, NULL, 0,
     "HTTP connections open at once, besides streams; 0 is max-sessions + 64, so that as many "
     "clients may shake hands at once and probes are still answered."},
    {"max-per-address", "N", "DSNET_MAX_PER_ADDRESS", OPTION_INT, AT(max_per_address), "0", 0,
     100000, NULL, 0,
     "Streams of one peer address; further ones are refused with 503. 0 does not count: behind a "
     "balancer all come from one address, so let the balancer limit there."},
    {"max-late", "SHARE", "DSNET_MAX_LATE", OPTION_REAL, AT(max_late), "0.1", 0, 1, NULL, 0,
     "Share of a second's results that may take longer than their frame's period; above it new "
     "streams are refused with 503 until all is calm for three seconds. 1 never refuses."},
    {"max-infer-frames", "N", "DSNET_MAX_INFER_FRAMES", OPTION_INT, AT(max_infer_frames), "600", 1,
     100000, NULL, 0,
     "Frames of one request of the Open Inference Protocol, at its rate and at the model's; longer "
     "clips are for jobs."},
    {"max-infer-bytes", "BYTES", "DSNET_MAX_INFER_BYTES", OPTION_INT, AT(max_infer_bytes),
     "33554432", 65536, 1073741824, NULL, 0,
     "Bytes of such a request, and of its response. All that are under way take at most eight "
     "times this; further ones are refused with 503."},
    {"max-sequences", "N", "DSNET_MAX_SEQUENCES", OPTION_INT, AT(max_sequences), "1024", 1, 16384,
     NULL, 0, "Sequences of such requests that are remembered at once, some 8 kB each."},
    {"sequence-idle", "S", "DSNET_SEQUENCE_IDLE", OPTION_REAL, AT(sequence_idle), "60", 0.1, 86400,
     NULL, 0, "Seconds without a request after which a sequence is forgotten."},
    {"operator-token-file", "FILE", "DSNET_OPERATOR_TOKEN_FILE", OPTION_TEXT,
     AT(operator_token_file), NULL, 0, 0, NULL, 0,
     "File whose first line opens /v1/sessions (Authorization: Bearer ...). Without it nobody may "
     "list sessions."},
    {"max-message", "BYTES", "DSNET_MAX_MESSAGE", OPTION_INT, AT(max_message), "65536", 1024,
     16777216, NULL, 0,
     "Largest WebSocket message accepted, counted over all its fragments; a larger one closes with "
     "1009. An open message that resumes carries a state token, of some 10 kB for the built-in "
     "model."},
    {"frames-in-flight", "N", "DSNET_FRAMES_IN_FLIGHT", OPTION_INT, AT(frames_in_flight), "4", 1,
     1024, NULL, 0,
     "Frames of one session that may be waiting, computed or unsent; at that number its socket is "
     "no longer read."},
    {"ping-interval", "S", "DSNET_PING_INTERVAL", OPTION_REAL, AT(ping_interval), "20", 0, 3600,
     NULL, 0,
     "Seconds without a byte from a stream after which it is pinged; after three times as long it "
     "is "
     "taken for gone. 0 pings none."},
    {"idle-timeout", "S", "DSNET_IDLE_TIMEOUT", OPTION_REAL, AT(idle_timeout), "60", 0.1, 86400,
     NULL, 0,
     "Seconds after which a stream that has sent no message is closed; pings do not count."},
    {"handshake-timeout", "S", "DSNET_HANDSHAKE_TIMEOUT", OPTION_REAL, AT(handshake_timeout), "10",
     0.1, 3600, NULL, 0,
     "Seconds a connection has to deliver a whole HTTP request, however slowly it trickles."},
    {"transfer-timeout", "S", "DSNET_TRANSFER_TIMEOUT", OPTION_REAL, AT(transfer_timeout), "30",
     0.1, 3600, NULL, 0,
     "Seconds in which an upload must bring 64 kB, and a download take the next piece, before the "
     "connection is cut."},
    {"close-timeout", "S", "DSNET_CLOSE_TIMEOUT", OPTION_REAL, AT(close_timeout), "3", 0.1, 600,
     NULL, 0,
     "Seconds a peer has to take its last frames and answer the close before its socket is cut."},
    {"drain-grace", "S", "DSNET_DRAIN_GRACE", OPTION_REAL, AT(drain_grace), "3", 0, 3600, NULL, 0,
     "Seconds after SIGTERM in which the server still serves and accepts, while whoever routes to "
     "it "
     "learns from /readyz that it is leaving. SIGINT and a second SIGTERM do without."},
    {"drain-timeout", "S", "DSNET_DRAIN_TIMEOUT", OPTION_REAL, AT(drain_timeout), "10", 0.1, 3600,
     NULL, 0, "Seconds after SIGTERM by which the process has ended, whatever its clients do."},
    {"state-key-file", "FILE", "DSNET_STATE_KEY_FILES", OPTION_LIST, AT(state_key_files), NULL, 0,
     0, NULL, 0,
     "File of 32 random bytes under which state tokens are sealed; repeatable: the first seals, "
     "all "
     "open. Replicas share it. Without it tokens end with the process."},
    {"token-max-age", "S", "DSNET_TOKEN_MAX_AGE", OPTION_REAL, AT(token_max_age), "3600", 1,
     31536000, NULL, 0, "Seconds after which a state token is refused as expired."},
    {"data-dir", "DIR", "DSNET_DATA_DIR", OPTION_TEXT, AT(data_dir), NULL, 0, 0, NULL, 0,
     "Folder in which jobs are kept, made if it is missing; one process at a time. Without it jobs "
     "are refused."},
    {"job-threads", "N", "DSNET_JOB_THREADS", OPTION_INT, AT(job_threads), "0", 0, 256, NULL, 0,
     "Threads that compute jobs with what sessions leave of the cores; 0 starts one per core."},
    {"job-max-bytes", "BYTES", "DSNET_JOB_MAX_BYTES", OPTION_INT, AT(job_max_bytes), "268435456",
     1024, 1099511627776, NULL, 0, "Largest body of a job; a larger one is refused with 413."},
    {"job-max-frames", "N", "DSNET_JOB_MAX_FRAMES", OPTION_INT, AT(job_max_frames), "300000", 1,
     10000000, NULL, 0,
     "Longest clip of a job, at its own rate and at the model's. A thread needs up to 2 kB of "
     "memory a frame."},
    {"job-max-waiting", "N", "DSNET_JOB_MAX_WAITING", OPTION_INT, AT(job_max_waiting), "1000", 1,
     1000000, NULL, 0, "Jobs queued or running at once; further ones are refused with 503."},
    {"job-ttl", "S", "DSNET_JOB_TTL", OPTION_REAL, AT(job_ttl), "86400", 0.1, 31536000, NULL, 0,
     "Seconds after its end for which a job and its result are kept."},
    {"allowed-origin", "ORIGIN", "DSNET_ALLOWED_ORIGINS", OPTION_LIST, AT(allowed_origins), NULL, 0,
     0, NULL, 0,
     "Origin whose pages may open streams; repeatable. Without it any may. Clients that send no "
     "Origin are not browsers and are not held to it."},
    {"log-level", "LEVEL", "DSNET_LOG_LEVEL", OPTION_TEXT, AT(log_level), "info", 0, 0,
     "debug|info|warn|error", 0, "Least severe events that are logged."},
    {"check-config", NULL, NULL, OPTION_FLAG, AT(check_config), NULL, 0, 0, NULL, 0,
     "Load the body and the models, report, and exit."},
    {"healthcheck", NULL, NULL, OPTION_FLAG, AT(healthcheck), NULL, 0, 0, NULL, 0,
     "Ask the server of these settings on this machine whether it is ready, and exit: 0 when it "
     "is."},
    {"print-config", NULL, NULL, OPTION_FLAG, AT(print_config), NULL, 0, 0, NULL, 0,
     "Print the settings in effect and exit."},
    {"options-markdown", NULL, NULL, OPTION_FLAG, AT(options_markdown), NULL, 0, 0, NULL, 0,
     "Print this table as Markdown and exit."},
    {"version", NULL, NULL, OPTION_FLAG, AT(version), NULL, 0, 0, NULL, 0,
     "Print the version and exit."},
};

const struct option_table config_options = {
    .usage = "dsnetd [options]",
    .about = "Serves learned soft-tissue motion: takes body poses over WebSocket and streams the\n"
             "displacement of every vertex back, batching all sessions that have a frame waiting.",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

// What one option's bounds cannot say.
static int check_together(const struct config *config, struct dsnet_error *error) {
  if (config->drain_grace >= config->drain_timeout)
    return dsnet_error_set(error, DSNET_EVALUE,
                           "--drain-grace: %g seconds leave nothing of --drain-timeout %g to "
                           "finish streams in",
                           config->drain_grace, config->drain_timeout);
  for (size_t i = 0; i < config->models.count; i++) {
    const char *item = config->models.items[i], *equals = strchr(item, '=');
    if (!equals || equals == item || !equals[1])
      return dsnet_error_set(error, DSNET_EVALUE, "--model: \"%s\" is not of the form NAME=FILE",
                             item);
  }
  return 0;
}

int config_parse(struct config *config, int argc, char *const *argv, struct dsnet_error *error) {
  memset(config, 0, sizeof *config);
  int outcome = options_parse(&config_options, argc, argv, config, error);
  if (outcome == OPTIONS_PARSED) {
    int result = check_together(config, error);
    if (result < 0)
      return result;
  }
  return outcome;
}

void config_free(struct config *config) {
  free(config->models.storage);
  free(config->state_key_files.storage);
  free(config->allowed_origins.storage);
  config->models.storage = config->state_key_files.storage = NULL;
  config->allowed_origins.storage = NULL;
}

unsigned config_connections(const struct config *config) {
  return (unsigned)(config->max_connections ? config->max_connections
                                            : config->max_sessions + CONFIG_SPARE_CONNECTIONS);
}
