// SPDX-License-Identifier: Apache-2.0
#include "routes.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "assets.h"
#include "documents.h"
#include "infer_http.h"
#include "job_download.h"
#include "job_routes.h"
#include "job_upload.h"
#include "jobs.h"
#include "negotiate.h"
#include "upgrade.h"
#include "wire/message.h"

static void answer_index(struct request *request, struct answer *answer);

static void answer_live(struct request *request, struct answer *answer) {
  (void)request;
  answer_text(answer, 200, "alive\n");
}

static void answer_ready(struct request *request, struct answer *answer) {
  if (server_ready(request->server)) {
    answer_text(answer, 200, "ready\n");
    return;
  }
  answer_problem(answer, PROBLEM_NOT_READY,
                 request->server->draining ? "the server is shutting down"
                                           : "the models are being warmed up");
  answer_header(answer, "Retry-After", RETRY_AFTER);
}

static json_t *describe_model(const struct server *server, size_t index) {
  const struct net_config *net = net_config(server->models->items[index].net);
  return json_pack("{s:s, s:b, s:s, s:I, s:I, s:f, s:s, s:s}", "name",
                   server->models->items[index].name, "trained", net->trained, "note",
                   net->trained ? "trained"
                                : "not trained: random weights, the motion means nothing",
                   "vertices", (json_int_t)net->vertices, "latents", (json_int_t)net->latent,
                   "rate", net->rate, "features", net->features->name, "decoder", "linear");
}

static json_t *describe_models(const struct server *server) {
  json_t *list = json_array();
  for (size_t i = 0; i < server->models->count; i++)
    if (json_array_append_new(list, describe_model(server, i))) {
      json_decref(list);
      return NULL;
    }
  return list;
}

static void answer_models(struct request *request, struct answer *answer) {
  answer_json(answer, 200, json_pack("{s:o}", "models", describe_models(request->server)));
}

static void answer_model(struct request *request, struct answer *answer) {
  int index = models_find(request->server->models, request->parameters[0]);
  if (index < 0)
    answer_problem(answer, PROBLEM_NO_MODEL,
                   "there is no model of that name; /v1/models lists them");
  else
    answer_json(answer, 200, describe_model(request->server, (size_t)index));
}

static void answer_counts(struct request *request, struct answer *answer) {
  const struct server *server = request->server;
  struct metrics metrics = server->metrics;
  struct batcher_counts counts = {0};
  struct metrics_gauges gauges = {.streams = workers_streams(server->workers),
                                  .max_sessions = (size_t)server->config->max_sessions,
                                  .ready = server_ready(server),
                                  .overloaded = workers_overloaded(server->workers),
                                  .started = server->started};
  workers_count(server->workers, &metrics, &gauges, &counts);
  struct infer_counts infer;
  infer_counts(server->infer, &infer);
  struct jobs_counts jobs;
  jobs_count(server->jobs, &jobs);
  answer_metrics(answer, metrics_write(&metrics, &gauges, &counts, &infer, &jobs));
}

static void answer_sessions(struct request *request, struct answer *answer) {
  answer_json(answer, 200,
              json_pack("{s:o}", "sessions", workers_describe(request->server->workers)));
}

static void answer_problems(struct request *request, struct answer *answer) {
  (void)request;
  json_t *list = json_array();
  for (enum problem i = 0; i < PROBLEM_COUNT; i++)
    json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "type", problem_type(i), "status",
                                          (int)problem_status(i), "title", problem_title(i)));
  answer_json(answer, 200, json_pack("{s:o}", "problems", list));
}

static const struct route routes[] = {
    {METHOD_GET, "/", ROUTE_OPEN, NULL, NULL, answer_index},
    {METHOD_GET, "/www/*", ROUTE_OPEN, NULL, NULL, assets_answer_file},
    {METHOD_GET, "/livez", ROUTE_OPEN, NULL, NULL, answer_live},
    {METHOD_GET, "/readyz", ROUTE_OPEN, NULL, NULL, answer_ready},
    {METHOD_GET, "/v1/models", ROUTE_OPEN, NULL, NULL, answer_models},
    {METHOD_GET, "/v1/models/*", ROUTE_OPEN, NULL, NULL, answer_model},
    {METHOD_GET, "/v1/models/*/decoder", ROUTE_OPEN, "format", NULL, assets_answer_decoder},
    {METHOD_GET, "/v1/body", ROUTE_OPEN, "format", NULL, assets_answer_body},
    {METHOD_GET, "/metrics", ROUTE_OPEN, NULL, NULL, answer_counts},
    {METHOD_GET, "/problems", ROUTE_OPEN, NULL, NULL, answer_problems},
    {METHOD_GET, "/openapi.json", ROUTE_OPEN, NULL, NULL, document_answer_openapi},
    {METHOD_GET, "/asyncapi.yaml", ROUTE_OPEN, NULL, NULL, document_answer_asyncapi},
    {METHOD_GET, "/v1/jobs", ROUTE_LISTING, "state limit after", NULL, job_answer_list},
    {METHOD_POST, "/v1/jobs", ROUTE_OPEN, "model betas", &job_upload_body, job_upload_answer},
    {METHOD_GET, "/v1/jobs/*", ROUTE_OPEN, NULL, NULL, job_answer_get},
    {METHOD_DELETE, "/v1/jobs/*", ROUTE_OPEN, NULL, NULL, job_answer_delete},
    {METHOD_GET, "/v1/jobs/*/events", ROUTE_OPEN, NULL, NULL, job_answer_events},
    {METHOD_GET, "/v1/jobs/*/result", ROUTE_OPEN, "format kind encoding fps from to", NULL,
     job_answer_result},
    {METHOD_GET, "/v1/sessions", ROUTE_OPERATOR, NULL, NULL, answer_sessions},
    {METHOD_GET, "/v2", ROUTE_OPEN, NULL, NULL, infer_answer_server},
    {METHOD_GET, "/v2/health/live", ROUTE_OPEN, NULL, NULL, infer_answer_live},
    {METHOD_GET, "/v2/health/ready", ROUTE_OPEN, NULL, NULL, infer_answer_ready},
    {METHOD_GET, "/v2/models/*", ROUTE_OPEN, NULL, NULL, infer_answer_model},
    {METHOD_GET, "/v2/models/*/ready", ROUTE_OPEN, NULL, NULL, infer_answer_model_ready},
    {METHOD_POST, "/v2/models/*/infer", ROUTE_OPEN, NULL, &infer_body, infer_answer_infer},
    {METHOD_GET, "/v2/models/*/versions/*", ROUTE_OPEN, NULL, NULL, infer_answer_model},
    {METHOD_GET, "/v2/models/*/versions/*/ready", ROUTE_OPEN, NULL, NULL, infer_answer_model_ready},
    {METHOD_POST, "/v2/models/*/versions/*/infer", ROUTE_OPEN, NULL, &infer_body,
     infer_answer_infer},
    {METHOD_GET, "/v1/stream", ROUTE_STREAM, NULL, NULL, NULL},
};
#define ROUTES (sizeof routes / sizeof routes[0])

// Each path once, though it may have several rows, which stand together.
static json_t *list_links(void) {
  json_t *links = json_array();
  for (size_t i = 0; i < ROUTES; i++)
    if (!i || strcmp(routes[i].path, routes[i - 1].path))
      json_array_append_new(links, json_string(routes[i].path));
  return links;
}

// The page for browsers, a document for programs.
static void answer_index(struct request *request, struct answer *answer) {
  const struct server *server = request->server;
  if (negotiate_prefers(request_header(request, "Accept"), "text/html", "application/json")) {
    assets_answer_page(request, answer);
    return;
  }
  answer_json(answer, 200,
              json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:o}", "name", "dsnetd", "version",
                        DSNET_VERSION, "about",
                        "learned soft-tissue motion of skinned bodies, streamed over WebSocket",
                        "ready", server_ready(server), "subprotocol", WIRE_SUBPROTOCOL, "models",
                        describe_models(server), "paths", list_links()));
  answer_header(answer, "Vary", "Accept");
}

// Finding ----------------------------------------------------------------------------------------

enum method route_method(const char *method) {
  static const struct {
    const char *name;
    enum method method;
  } methods[] = {{"GET", METHOD_GET},
                 {"HEAD", METHOD_HEAD},
                 {"POST", METHOD_POST},
                 {"DELETE", METHOD_DELETE},
                 {"OPTIONS", METHOD_OPTIONS}};
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
    if (!strcmp(method, methods[i].name))
      return methods[i].method;
  return METHOD_NONE;
}

static bool path_matches(const char *pattern, const char *path, struct request *request) {
  size_t parameters = 0;
  while (*pattern) {
    if (*pattern != '*') {
      if (*pattern++ != *path++)
        return false;
      continue;
    }
    size_t length = strcspn(path, "/");
    if (!length || length >= REQUEST_PARAMETER_SIZE)
      return false;
    memcpy(request->parameters[parameters], path, length);
    request->parameters[parameters++][length] = 0;
    path += length;
    pattern++;
  }
  return !*path;
}

// The handshake's own rules decide about every method but OPTIONS.
static bool takes(const struct route *route, enum method method) {
  if (route->kind == ROUTE_STREAM)
    return method != METHOD_OPTIONS;
  return route->method == (method == METHOD_HEAD ? METHOD_GET : method);
}

const struct route *route_find(enum method method, const char *path, struct request *request,
                               unsigned *allowed) {
  const struct route *found = NULL, *last = NULL;
  *allowed = 0;
  for (size_t i = 0; i < ROUTES; i++) {
    // An address belongs to the first pattern that it matches.
    if (last ? strcmp(routes[i].path, last->path) != 0
             : !path_matches(routes[i].path, path, request))
      continue;
    last = &routes[i];
    *allowed |= routes[i].method;
    if (routes[i].method == METHOD_GET && routes[i].kind != ROUTE_STREAM)
      *allowed |= METHOD_HEAD;
    if (takes(&routes[i], method))
      found = &routes[i];
  }
  return found;
}

void route_allow(unsigned allowed, char text[ROUTE_ALLOW_SIZE]) {
  snprintf(text, ROUTE_ALLOW_SIZE, "%s%s%s%sOPTIONS", allowed & METHOD_GET ? "GET, " : "",
           allowed & METHOD_HEAD ? "HEAD, " : "", allowed & METHOD_POST ? "POST, " : "",
           allowed & METHOD_DELETE ? "DELETE, " : "");
}

// Refusing before the body -----------------------------------------------------------------------

// Compares all of the token whatever it finds, so that time tells nothing about it.
static bool is_operator(const struct server *server, const char *authorization) {
  static const char scheme[] = "Bearer ";
  if (!server->operator_token || !authorization ||
      strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
    return false;
  const char *given = authorization + sizeof scheme - 1;
  size_t length = strlen(server->operator_token);
  return strlen(given) == length && sodium_memcmp(given, server->operator_token, length) == 0;
}

static bool check_operator(const struct request *request, struct answer *answer) {
  if (is_operator(request->server, request_header(request, "Authorization")))
    return true;
  if (!request->server->operator_token) {
    answer_problem(answer, PROBLEM_OPERATOR,
                   "this server has no --operator-token-file, so nobody may see this");
    return false;
  }
  answer_problem(answer, PROBLEM_TOKEN,
                 "the operator's token is needed (Authorization: Bearer ...)");
  answer_header(answer, "WWW-Authenticate", "Bearer");
  return false;
}

void route_too_large(uint64_t limit, struct answer *answer) {
  answer_problem(answer, PROBLEM_TOO_LARGE, "at most %llu bytes are taken",
                 (unsigned long long)limit);
}

static bool check_body(const struct request *request, const struct route_body *body,
                       struct answer *answer) {
  const char *type = request_header(request, "Content-Type");
  const char *encoding = request_header(request, "Content-Encoding");
  const char *length = request_header(request, "Content-Length");
  bool chunked = request_header(request, "Transfer-Encoding");
  uint64_t limit = body->limit(request->server);
  if (!length && !chunked)
    answer_problem(answer, PROBLEM_LENGTH, "there is no body");
  else if (length && chunked)
    answer_problem(answer, PROBLEM_BAD_REQUEST,
                   "Content-Length and Transfer-Encoding contradict each other");
  else if (encoding && strcasecmp(encoding, "identity") != 0)
    answer_problem(answer, PROBLEM_MEDIA_TYPE, "no Content-Encoding is taken");
  else if (type ? !negotiate_is_type(type, body->types) : !body->untyped)
    answer_problem(answer, PROBLEM_MEDIA_TYPE, "Content-Type must be one of: %s", body->types);
  else if (length && strtoull(length, NULL, 10) > limit)
    route_too_large(limit, answer);
  return !answer->status;
}

// What a page of another origin may not do, even where the browser asks nobody's leave: a plain
// form can post anything anywhere. Programs send no Origin.
static bool check_origin(const struct request *request, struct answer *answer) {
  const char *origin = request_header(request, "Origin");
  if (!origin || origin_listed(origin, &request->server->config->allowed_origins))
    return true;
  const char *host = request_header(request, "Host"), *authority = strstr(origin, "://");
  if (host && authority && !strcasecmp(authority + 3, host))
    return true;
  answer_problem(
      answer, PROBLEM_ORIGIN,
      "pages of this origin may not change anything here; --allowed-origin lists others");
  return false;
}

static bool check(const struct request *request, const struct route *route, struct answer *answer) {
  bool operators = route->kind == ROUTE_OPERATOR ||
                   (route->kind == ROUTE_LISTING && request->server->operator_token);
  return (!operators || check_operator(request, answer)) &&
         (route->method == METHOD_GET || check_origin(request, answer)) &&
         (!route->query || request_check_query(request, route->query, answer)) &&
         (!route->body || check_body(request, route->body, answer));
}

const struct route *route_begin(struct request *request, const char *method, const char *path,
                                struct answer *answer) {
  unsigned allowed;
  enum method number = route_method(method);
  const struct route *route = route_find(number, path, request, &allowed);
  if (route)
    return check(request, route, answer) ? route : NULL;
  char allow[ROUTE_ALLOW_SIZE];
  route_allow(allowed, allow);
  if (number == METHOD_OPTIONS && (allowed || !strcmp(path, "*"))) {
    answer_empty(answer, 204);
    answer_header(answer, "Allow", allow);
  } else if (!allowed) {
    answer_problem(answer, PROBLEM_NOT_FOUND,
                   "there is nothing at this address; / lists what there is");
  } else {
    answer_problem(answer, PROBLEM_METHOD, "this address takes: %s", allow);
    answer_header(answer, "Allow", allow);
  }
  return NULL;
}
