// SPDX-License-Identifier: Apache-2.0
#include "assets.h"

#include <stdlib.h>
#include <string.h>

#include "asset.h"
#include "geometry.h"
#include "server.h"
#include "www.h"

// No script, style or address but the server's own, and nobody may frame the page.
#define POLICY                                                                                     \
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "                \
  "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "                   \
  "frame-ancestors 'none'"

struct assets {
  struct asset files[WWW_FILES], body;
  bool builtin_body;
  struct asset decoders[OPTION_LIST_MAX];
};

static const char file_type[] = "application/vnd.safetensors";

static int load_files(struct assets *assets, struct dsnet_error *error) {
  for (size_t i = 0; i < WWW_FILES; i++) {
    const struct www_file *file = &www_files[i];
    int result = asset_init(&assets->files[i], file->type, file->begin,
                            (size_t)(file->end - file->begin), NULL, error);
    if (result < 0)
      return result;
  }
  return 0;
}

static int load_geometry(struct assets *assets, const struct models *models,
                         struct dsnet_error *error) {
  struct geometry file;
  int result = geometry_write_body(&file, models->body, assets->builtin_body, error);
  if (result < 0)
    return result;
  result = asset_init(&assets->body, file_type, file.bytes, file.size, file.bytes, error);
  for (size_t i = 0; i < models->count && result >= 0; i++) {
    result = geometry_write_decoder(&file, models->items[i].net, models->items[i].name, error);
    if (result >= 0)
      result =
          asset_init(&assets->decoders[i], file_type, file.bytes, file.size, file.bytes, error);
  }
  return result;
}

int assets_new(struct assets **out, const struct models *models, bool builtin_body,
               struct dsnet_error *error) {
  struct assets *assets = calloc(1, sizeof *assets);
  *out = NULL;
  if (!assets)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  assets->builtin_body = builtin_body;
  int result = load_files(assets, error);
  if (result >= 0)
    result = load_geometry(assets, models, error);
  if (result < 0)
    assets_free(assets);
  else
    *out = assets;
  return result;
}

void assets_free(struct assets *assets) {
  if (!assets)
    return;
  for (size_t i = 0; i < WWW_FILES; i++)
    asset_deinit(&assets->files[i]);
  asset_deinit(&assets->body);
  for (size_t i = 0; i < OPTION_LIST_MAX; i++)
    asset_deinit(&assets->decoders[i]);
  free(assets);
}

static bool answer_file(const struct request *request, const char *name, struct answer *answer) {
  const struct assets *assets = request->server->assets;
  for (size_t i = 0; i < WWW_FILES; i++)
    if (!strcmp(www_files[i].name, name) && assets->files[i].plain.size) {
      asset_answer(&assets->files[i], request, answer);
      answer_header(answer, "Content-Security-Policy", POLICY);
      answer_header(answer, "Referrer-Policy", "no-referrer");
      return true;
    }
  return false;
}

void assets_answer_page(struct request *request, struct answer *answer) {
  answer_file(request, "index.html", answer);
  answer_header(answer, "Vary", "Accept");
}

void assets_answer_file(struct request *request, struct answer *answer) {
  if (!answer_file(request, request->parameters[0], answer))
    answer_problem(answer, PROBLEM_NOT_FOUND, "the page has no such file");
}

// Whether the description alone is asked for.
static bool wants_json(const struct request *request, struct answer *answer) {
  size_t format = 0;
  return request_query_choice(request, "format", "safetensors|json", &format, answer) && format;
}

void assets_answer_body(struct request *request, struct answer *answer) {
  const struct assets *assets = request->server->assets;
  if (wants_json(request, answer))
    answer_json(answer, 200,
                geometry_describe_body(request->server->models->body, assets->builtin_body));
  else if (!answer->status)
    asset_answer(&assets->body, request, answer);
}

void assets_answer_decoder(struct request *request, struct answer *answer) {
  const struct models *models = request->server->models;
  int index = models_find(models, request->parameters[0]);
  if (index < 0)
    answer_problem(answer, PROBLEM_NO_MODEL,
                   "there is no model of that name; /v1/models lists them");
  else if (wants_json(request, answer))
    answer_json(answer, 200,
                geometry_describe_decoder(models->items[index].net, models->items[index].name));
  else if (!answer->status)
    asset_answer(&request->server->assets->decoders[index], request, answer);
}
