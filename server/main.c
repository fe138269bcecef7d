// SPDX-License-Identifier: Apache-2.0
// dsnetd: parses its settings, loads the models and runs the server. Only wires.
#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "config.h"
#include "healthcheck.h"
#include "log.h"
#include "models.h"
#include "server.h"
#include "token.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static int fail(int status, const struct dsnet_error *error) {
  fprintf(stderr, "dsnetd: %s\n", error->text);
  return status;
}

// The options that print and end. Returns whether one was given.
static bool print_only(const struct config *config) {
  if (config->version)
    puts("dsnetd " DSNET_VERSION);
  else if (config->options_markdown)
    options_print_markdown(&config_options, stdout);
  else if (config->print_config)
    options_print_values(&config_options, config, stdout);
  else
    return false;
  return true;
}

static void report_models(const struct models *models) {
  for (size_t i = 0; i < models->count; i++) {
    const struct net_config *net = net_config(models->items[i].net);
    log_event(LOG_LEVEL_INFO, "model", NULL, "%s: %zu vertices, %zu latents, features %s",
              models->items[i].name, net->vertices, net->latent, net->features->name);
    if (!net->trained)
      log_event(LOG_LEVEL_WARN, "untrained", NULL,
                "model \"%s\" is not trained: its weights are random and its motion means nothing",
                models->items[i].name);
  }
}

static int serve(const struct config *config, const struct models *models,
                 const struct token_keys *keys) {
  struct dsnet_error error = {0};
  struct server *server;
  if (server_new(&server, config, models, keys, &error) < 0)
    return fail(EXIT_FAILED, &error);
  printf("dsnetd: listening on %s\n", server_url(server));
  fflush(stdout);
  int status = server_run(server);
  server_free(server);
  log_event(LOG_LEVEL_INFO, "stopped", NULL, "status %d", status);
  return status;
}

int main(int argc, char **argv) {
  struct dsnet_error error = {0};
  struct config config;
  struct models models;
  struct token_keys *keys = NULL;
  int status = EXIT_OK;
  int outcome = config_parse(&config, argc, argv, &error);
  if (outcome == OPTIONS_HELP)
    options_print_help(&config_options, stdout);
  if (outcome < 0)
    status = fail(EXIT_USAGE, &error);
  if (outcome != OPTIONS_PARSED || print_only(&config)) {
    config_free(&config);
    return status;
  }
  if (config.healthcheck) {
    status = healthcheck(&config, &error) < 0 ? fail(EXIT_FAILED, &error) : EXIT_OK;
    config_free(&config);
    return status;
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error like any other
  json_object_seed(0);      // before any thread, as Jansson asks
  log_set_level(config.log_level);
  if (models_load(&models, &config, &error) < 0 ||
      token_keys_load(&keys, &config.state_key_files, &error) < 0) {
    status = fail(EXIT_FAILED, &error);
  } else {
    report_models(&models);
    if (!config.check_config)
      status = serve(&config, &models, keys);
  }
  token_keys_free(keys);
  models_free(&models);
  config_free(&config);
  return status;
}
