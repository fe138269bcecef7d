// SPDX-License-Identifier: Apache-2.0
// dsnet predict: runs a model over a clip, frame by frame as the server does, and writes what it
// says of every frame to an npz or a point cache. Holds one frame at a time, whatever the clip's
// length.
#include "command.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "body/pose.h"
#include "inputs.h"
#include "io/file.h"
#include "io/npz.h"
#include "io/pc2.h"

struct settings {
  struct option_list clip;
  const char *output, *model, *body, *betas, *kind;
};

static const struct option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, output),
     .help = "The file to write: an npz, or a PC2 point cache if its name ends in .pc2."},
    {.name = "kind",
     .argument = "KIND",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, kind),
     .fallback = "displacement",
     .choices = "displacement|vertices|latent",
     .help = "What to write of each frame."},
    {.name = "model",
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, model),
     .help = "A safetensors model; without it the built-in one."},
    {.name = "body",
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, body),
     .help = "The SMPL-layout body for vertices; without it the built-in one."},
    {.name = "betas",
     .argument = "LIST",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, betas),
     .help = "Shape coefficients such as 0.5,-1,2 in place of the clip's."},
};

static const struct option_table table = {
    .usage = "dsnet predict CLIP -o FILE [options]",
    .about =
        "Predicts the soft-tissue displacement of every frame of an AMASS-layout clip, resampled "
        "to\n"
        "the model's rate, and writes it as one array [T][V][3] (latent: [T][Z]) of float32 with\n"
        "`fps` and `betas` beside it. CLIP may be \"sample\", the built-in clip.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .positionals_offset = offsetof(struct settings, clip),
    .positionals_min = 1,
    .positionals_max = 1,
};

// Everything one run holds. Zeroed before use, so that it can be released at any point.
struct prediction {
  struct net *net;
  struct net_scratch *scratch;
  struct clip *clip;
  float betas[FEATURES_BETAS];
  float *state, *latent, *displacement;
  // Only for vertices:
  struct body *body;
  float *shaped, *rest;
  float joints[BODY_JOINTS * 3];
};

static void prediction_free(struct prediction *run) {
  net_scratch_free(run->scratch);
  net_free(run->net);
  clip_free(run->clip);
  body_free(run->body);
  free(run->state);
  free(run->latent);
  free(run->displacement);
  free(run->shaped);
  free(run->rest);
}

static int load_clip(struct prediction *run, const struct settings *settings,
                     struct dsnet_error *error) {
  struct clip *raw;
  int result = input_clip_load(&raw, settings->clip.items[0], error);
  if (result < 0)
    return result;
  result = clip_resample(raw, net_config(run->net)->rate, &run->clip, error);
  clip_free(raw);
  if (result < 0)
    return result;
  memcpy(run->betas, run->clip->betas, sizeof run->betas);
  if (!settings->betas)
    return 0;
  size_t count;
  memset(run->betas, 0, sizeof run->betas);
  return input_betas_parse(settings->betas, run->betas, FEATURES_BETAS, &count, error);
}

static int load_body(struct prediction *run, const char *path, struct dsnet_error *error) {
  int result = input_body_load(&run->body, path, error);
  if (result == 0)
    result = input_match(run->net, run->body, error);
  if (result < 0)
    return result;
  size_t vertices = body_vertices(run->body);
  run->shaped = memory_alloc(vertices, 3 * sizeof(float));
  run->rest = memory_alloc(vertices, 3 * sizeof(float));
  if (!run->shaped || !run->rest)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  body_shape(run->body, run->betas, FEATURES_BETAS, run->shaped, run->joints);
  return 0;
}

static int prepare(struct prediction *run, const struct settings *settings,
                   struct dsnet_error *error) {
  int result = input_net_load(&run->net, settings->model, error);
  if (result == 0)
    result = load_clip(run, settings, error);
  if (result == 0 && !strcmp(settings->kind, "vertices"))
    result = load_body(run, settings->body, error);
  if (result == 0)
    result = net_scratch_new(&run->scratch, run->net, 1, error);
  if (result < 0)
    return result;
  const struct net_config *config = net_config(run->net);
  run->state = memory_alloc(net_state_size(run->net), sizeof(float));
  run->latent = memory_alloc(config->latent, sizeof(float));
  run->displacement = memory_alloc(config->vertices, 3 * sizeof(float));
  if (!run->state || !run->latent || !run->displacement)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  return 0;
}

// Turns the displacement of the frame into posed vertices, in place.
static void pose_frame(struct prediction *run, const float *pose, const float *trans) {
  float transforms[BODY_JOINTS * 12];
  memcpy(run->rest, run->shaped, body_vertices(run->body) * 3 * sizeof(float));
  body_add_pose_part(run->body, pose, run->rest);
  body_transforms(run->body, run->joints, pose, trans, transforms, NULL);
  body_skin(run->body, transforms, run->rest, run->displacement, run->displacement);
}

// Where frames go: an npz array, or a PC2 point cache when the name ends in .pc2. Exactly one of
// the two writers is open.
struct sink {
  struct npz_writer *npz;
  struct file_writer *pc2;
};

static bool is_pc2(const char *path) {
  size_t length = strlen(path);
  return length > 4 && !strcasecmp(path + length - 4, ".pc2");
}

static int sink_open(struct sink *sink, const struct prediction *run,
                     const struct settings *settings, struct dsnet_error *error) {
  const struct net_config *config = net_config(run->net);
  size_t frames = run->clip->frames;
  if (is_pc2(settings->output)) {
    uint8_t header[PC2_HEADER_SIZE];
    pc2_header_write((uint32_t)config->vertices, (uint32_t)frames, header);
    int result = file_writer_open(&sink->pc2, settings->output, error);
    return result < 0 ? result : file_writer_append(sink->pc2, header, sizeof header, error);
  }
  bool latent = !strcmp(settings->kind, "latent");
  size_t shape[] = {frames, latent ? config->latent : config->vertices, 3};
  int result = npz_writer_open(&sink->npz, settings->output, false, error);
  return result < 0
             ? result
             : npz_writer_begin(sink->npz, settings->kind, "<f4", latent ? 2 : 3, shape, error);
}

static int sink_append(struct sink *sink, const float *values, size_t count,
                       struct dsnet_error *error) {
  return sink->pc2 ? file_writer_append(sink->pc2, values, count * sizeof *values, error)
                   : npz_writer_append(sink->npz, values, count * sizeof *values, error);
}

static int sink_close(struct sink *sink, const struct prediction *run, struct dsnet_error *error) {
  if (sink->pc2) {
    struct file_writer *pc2 = sink->pc2;
    sink->pc2 = NULL;
    return file_writer_commit(pc2, error);
  }
  int result = npz_writer_end(sink->npz, error);
  if (result == 0)
    result = npz_writer_add(sink->npz, "fps", "<f8", 0, NULL, &net_config(run->net)->rate, error);
  if (result == 0)
    result =
        npz_writer_add(sink->npz, "betas", "<f4", 1, (size_t[]){FEATURES_BETAS}, run->betas, error);
  if (result < 0)
    return result;
  struct npz_writer *npz = sink->npz;
  sink->npz = NULL;
  return npz_writer_close(npz, error);
}

static int write_frames(struct prediction *run, bool latent, struct sink *sink,
                        struct dsnet_error *error) {
  const struct net_config *config = net_config(run->net);
  int result = 0;
  for (size_t t = 0; result == 0 && t < run->clip->frames; t++) {
    const float *pose = run->clip->pose + t * CLIP_POSE_SIZE, *trans = run->clip->trans + t * 3;
    struct net_item item = {.state = run->state,
                            .pose = pose,
                            .trans = trans,
                            .betas = run->betas,
                            .latent = run->latent,
                            .displacement = latent ? NULL : run->displacement};
    net_step(run->net, run->scratch, &item, 1);
    if (run->body)
      pose_frame(run, pose, trans);
    result = latent ? sink_append(sink, run->latent, config->latent, error)
                    : sink_append(sink, run->displacement, config->vertices * 3, error);
  }
  return result;
}

static int write_result(struct prediction *run, const struct settings *settings,
                        struct dsnet_error *error) {
  struct sink sink = {0};
  int result = sink_open(&sink, run, settings, error);
  if (result == 0)
    result = write_frames(run, !strcmp(settings->kind, "latent"), &sink, error);
  if (result == 0)
    result = sink_close(&sink, run, error);
  file_writer_abort(sink.pc2);
  npz_writer_abort(sink.npz);
  return result;
}

int command_predict(int argc, char **argv) {
  struct settings settings;
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  struct dsnet_error error = {0};
  if (!settings.output) {
    fprintf(stderr, "dsnet predict: -o FILE is needed\n");
    return COMMAND_USAGE;
  }
  if (is_pc2(settings.output) && !strcmp(settings.kind, "latent")) {
    fprintf(stderr, "dsnet predict: a point cache holds vertices or displacements, not latents\n");
    return COMMAND_USAGE;
  }
  struct prediction run = {0};
  int result = prepare(&run, &settings, &error);
  if (result == 0)
    result = write_result(&run, &settings, &error);
  if (result == 0) {
    fprintf(stderr, "%s: %zu frames at %g frames/s, %s of %zu vertices\n", settings.output,
            run.clip->frames, net_config(run.net)->rate, settings.kind,
            net_config(run.net)->vertices);
    if (!net_config(run.net)->trained)
      fputs("The model is not trained: its motion means nothing.\n", stderr);
  }
  prediction_free(&run);
  return result == 0 ? COMMAND_OK : command_fail("predict", &error);
}
