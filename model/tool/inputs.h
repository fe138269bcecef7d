// SPDX-License-Identifier: Apache-2.0
// The inputs that several subcommands take: a body, a clip and a model, each from a file or built
// in.
#ifndef DSNET_TOOL_INPUTS_H
#define DSNET_TOOL_INPUTS_H

#include "body/body.h"
#include "motion/clip.h"
#include "net/net.h"

#define INPUT_SAMPLE "sample" // the clip argument that names the built-in clip

// A NULL path means the built-in one; errors name the file.
int input_body_load(struct body **body, const char *path, struct dsnet_error *error);
int input_net_load(struct net **net, const char *path, struct dsnet_error *error);
// `path` may be INPUT_SAMPLE.
int input_clip_load(struct clip **clip, const char *path, struct dsnet_error *error);

// "0.5,-1,2" -> betas [count], at most `max`. DSNET_EVALUE names what is wrong.
int input_betas_parse(const char *text, float *betas, size_t max, size_t *count,
                      struct dsnet_error *error);

// DSNET_EMISMATCH when the model was made for another body than this one.
int input_match(const struct net *net, const struct body *body, struct dsnet_error *error);

#endif
