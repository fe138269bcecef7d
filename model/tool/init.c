// SPDX-License-Identifier: Apache-2.0
// dsnet init: a model file with random weights, for trying out everything but the motion itself.
#include "command.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "inputs.h"

struct settings {
  const char *output, *body;
  long long vertices, layers, hidden, latent, seed;
  bool f16;
};

#define MEMBER(name) .offset = offsetof(struct settings, name)

static const struct option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = OPTION_TEXT,
     MEMBER(output),
     .help = "Model file to write (safetensors)."},
    {.name = "body",
     .argument = "FILE",
     .type = OPTION_TEXT,
     MEMBER(body),
     .help = "Body (SMPL-layout npz) the model is for; without it the built-in one."},
    {.name = "vertices",
     .argument = "N",
     .type = OPTION_INT,
     MEMBER(vertices),
     .fallback = "0",
     .min = 0,
     .max = NET_VERTICES_MAX,
     .help = "Vertices, for a model bound to no body; 0 takes the body's."},
    {.name = "layers",
     .argument = "N",
     .type = OPTION_INT,
     MEMBER(layers),
     .fallback = "2",
     .min = 1,
     .max = NET_LAYERS_MAX,
     .help = "LSTM layers."},
    {.name = "hidden",
     .argument = "N",
     .type = OPTION_INT,
     MEMBER(hidden),
     .fallback = "256",
     .min = NET_HIDDEN_MIN,
     .max = NET_HIDDEN_MAX,
     .help = "Units of a layer."},
    {.name = "latent",
     .argument = "N",
     .type = OPTION_INT,
     MEMBER(latent),
     .fallback = "64",
     .min = 1,
     .max = NET_LATENT_MAX,
     .help = "Latents, the decoder's inputs."},
    {.name = "seed",
     .argument = "N",
     .type = OPTION_INT,
     MEMBER(seed),
     .fallback = "1",
     .min = 0,
     .max = 9007199254740992.0,
     .help = "Seed; the same seed and sizes give the same file."},
    {.name = "f16",
     .type = OPTION_FLAG,
     MEMBER(f16),
     .help = "Store the weights in half precision."},
};

static const struct option_table table = {
    .usage = "dsnet init -o FILE [options]",
    .about =
        "Writes a model with random weights. It has every size and property of a trained model\n"
        "but one: its motion means nothing, and it says so (\"trained\": false).",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static int choose_vertices(const struct settings *settings, struct net_config *config,
                           struct dsnet_error *error) {
  struct body *body;
  if (settings->vertices) {
    config->vertices = (size_t)settings->vertices;
    return 0;
  }
  int code = input_body_load(&body, settings->body, error);
  if (code)
    return code;
  config->vertices = body_vertices(body);
  config->has_body_hash = true;
  memcpy(config->body_hash, body_hash(body), sizeof config->body_hash);
  body_free(body);
  return 0;
}

static int write_model(const struct settings *settings, struct dsnet_error *error) {
  struct net_config config = {.layers = (size_t)settings->layers,
                              .hidden = (size_t)settings->hidden,
                              .latent = (size_t)settings->latent,
                              .features = feature_set_find("paper"),
                              .rate = 60};
  struct net *net;
  int code = choose_vertices(settings, &config, error);
  if (code)
    return code;
  code = net_new_random(&net, &config, (uint64_t)settings->seed, error);
  if (code)
    return code;
  code = net_save(net, settings->output, settings->f16 ? NET_F16 : NET_F32, error);
  if (!code)
    printf("%s: %zu vertices, %zu layers of %zu, %zu latents, %s\n"
           "Its weights are random: whatever it moves means nothing.\n",
           settings->output, config.vertices, config.layers, config.hidden, config.latent,
           settings->f16 ? "f16" : "f32");
  net_free(net);
  return code;
}

int command_init(int argc, char **argv) {
  struct settings settings;
  struct dsnet_error error = {0};
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  if (!settings.output || (settings.body && settings.vertices)) {
    fprintf(stderr, "dsnet init: %s\n",
            settings.output ? "--body and --vertices exclude each other" : "-o FILE is needed");
    return COMMAND_USAGE;
  }
  return write_model(&settings, &error) ? command_fail("init", &error) : COMMAND_OK;
}
