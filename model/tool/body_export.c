// SPDX-License-Identifier: Apache-2.0
// dsnet body export: a body as a mesh, in a shape and, if a clip is given, in one of its poses.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/pose.h"
#include "command.h"
#include "inputs.h"
#include "io/obj.h"

struct settings {
  struct option_list body;
  const char *output, *betas, *clip;
  long long frame;
};

static const struct option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, output),
     .help = "The OBJ to write."},
    {.name = "betas",
     .argument = "LIST",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, betas),
     .help = "Shape coefficients such as 0.5,-1,2."},
    {.name = "clip",
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, clip),
     .help = "Pose the body (z-up) as a frame of this clip; without it the rest pose (y-up)."},
    {.name = "frame",
     .argument = "N",
     .type = OPTION_INT,
     .offset = offsetof(struct settings, frame),
     .max = CLIP_FRAMES_MAX,
     .help = "The clip's frame, from 0."},
};

static const struct option_table table = {
    .usage = "dsnet body export [BODY] -o FILE [options]",
    .about =
        "Writes the mesh of a body (without BODY the built-in one) as Wavefront OBJ, its vertices\n"
        "in the order that displacements and point caches have.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .positionals_offset = offsetof(struct settings, body),
    .positionals_max = 1,
};

// Poses vertices [V][3] in place.
static int pose_vertices(const struct settings *settings, const struct body *body,
                         const float *joints, float *vertices, struct dsnet_error *error) {
  struct clip *clip;
  int result = input_clip_load(&clip, settings->clip, error);
  if (result < 0)
    return result;
  if ((size_t)settings->frame >= clip->frames) {
    result = dsnet_error_set(error, DSNET_EVALUE, "--frame: %lld, but the clip has %zu frames",
                             settings->frame, clip->frames);
  } else {
    float transforms[BODY_JOINTS * 12];
    const float *pose = clip->pose + (size_t)settings->frame * CLIP_POSE_SIZE;
    body_add_pose_part(body, pose, vertices);
    body_transforms(body, joints, pose, clip->trans + 3 * settings->frame, transforms, NULL);
    body_skin(body, transforms, vertices, NULL, vertices);
  }
  clip_free(clip);
  return result;
}

static int export_body(const struct settings *settings, const struct body *body,
                       struct dsnet_error *error) {
  float betas[BODY_SHAPES_MAX], joints[BODY_JOINTS * 3];
  size_t count = 0;
  int result = 0;
  if (settings->betas)
    result = input_betas_parse(settings->betas, betas, BODY_SHAPES_MAX, &count, error);
  if (result < 0)
    return result;
  float *vertices = memory_alloc(body_vertices(body), 3 * sizeof(float));
  if (!vertices)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  body_shape(body, betas, count, vertices, joints);
  if (settings->clip)
    result = pose_vertices(settings, body, joints, vertices, error);
  if (result == 0)
    result = obj_write(settings->output, vertices, body_vertices(body), body_triangles(body),
                       body_faces(body), error);
  free(vertices);
  return result;
}

int command_body_export(int argc, char **argv) {
  struct settings settings;
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  if (!settings.output) {
    fprintf(stderr, "dsnet body export: -o FILE is needed\n");
    return COMMAND_USAGE;
  }
  struct dsnet_error error = {0};
  struct body *body;
  int result = input_body_load(&body, settings.body.count ? settings.body.items[0] : NULL, &error);
  if (result < 0)
    return command_fail("body export", &error);
  result = export_body(&settings, body, &error);
  body_free(body);
  return result == 0 ? COMMAND_OK : command_fail("body export", &error);
}
