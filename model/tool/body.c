// SPDX-License-Identifier: Apache-2.0
// dsnet body: its subcommands, and the one that makes the built-in body.
#include <stdio.h>

#include "body/build/build.h"
#include "body/save.h"
#include "command.h"

struct build_settings {
  const char *output;
};

static int run_build(int argc, char **argv) {
  static const struct option options[] = {
      {.name = "output",
       .letter = 'o',
       .argument = "FILE",
       .type = OPTION_TEXT,
       .offset = offsetof(struct build_settings, output),
       .help = "The npz to write."},
  };
  static const struct option_table table = {
      .usage = "dsnet body build -o FILE",
      .about = "Makes the built-in body from its implicit surface and writes it in SMPL's npz "
               "layout. The same program writes the same bytes every time.",
      .options = options,
      .count = sizeof options / sizeof options[0],
  };
  struct build_settings settings;
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  if (!settings.output) {
    fputs("dsnet body build: -o FILE is missing\n", stderr);
    return COMMAND_USAGE;
  }
  struct dsnet_error error = {0};
  struct body *body;
  if (body_build(&body, &error))
    return command_fail("body build", &error);
  if (body_save(body, settings.output, &error)) {
    body_free(body);
    return command_fail("body build", &error);
  }
  printf("%s: %zu vertices, %zu triangles; shapes:", settings.output, body_vertices(body),
         body_faces(body));
  for (int i = 0; i < BODY_BUILD_SHAPES; i++)
    printf(" %s", body_build_shape_name(i));
  putchar('\n');
  body_free(body);
  return COMMAND_OK;
}

int command_body(int argc, char **argv) {
  static const struct command commands[] = {
      {"build", "make the built-in body", run_build},
      {"export", "write a body's mesh in a shape and pose", command_body_export},
      {NULL, NULL, NULL},
  };
  return command_dispatch("dsnet body", "Bodies in SMPL's layout.", commands, argc, argv);
}
