// SPDX-License-Identifier: Apache-2.0
#include "routes.h"

#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "wire/message.h"

static void answer_index(const struct server *server, const char *parameter, struct answer *answer);

static void answer_live(const struct server *server, const char *parameter, struct answer *answer) {
  (void)server;
  (void)parameter;
  answer_text(answer, 200, "alive\n");
}

static void answer_ready(const struct server *server, const char *parameter,
                         struct answer *answer) {
  (void)parameter;
  if (server_ready(server)) {
    answer_text(answer, 200, "ready\n");
    return;
  }
  answer_problem(answer, 503,
                 server->draining ? "the server is shutting down"
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

static void answer_models(const struct server *server, const char *parameter,
                          struct answer *answer) {
  (void)parameter;
  answer_json(answer, 200, json_pack("{s:o}", "models", describe_models(server)));
}

static void answer_model(const struct server *server, const char *parameter,
                         struct answer *answer) {
  int index = models_find(server->models, parameter);
  if (index < 0)
    answer_problem(answer, 404, "there is no model of that name; /v1/models lists them");
  else
    answer_json(answer, 200, describe_model(server, (size_t)index));
}

static void answer_counts(const struct server *server, const char *parameter,
                          struct answer *answer) {
  (void)parameter;
  struct metrics metrics = server->metrics;
  struct batcher_counts counts = {0};
  struct metrics_gauges gauges = {.streams = workers_streams(server->workers),
                                  .max_sessions = (size_t)server->config->max_sessions,
                                  .ready = server_ready(server),
                                  .overloaded = workers_overloaded(server->workers),
                                  .started = server->started};
  workers_count(server->workers, &metrics, &gauges, &counts);
  answer_metrics(answer, metrics_write(&metrics, &gauges, &counts));
}

static void answer_sessions(const struct server *server, const char *parameter,
                            struct answer *answer) {
  (void)parameter;
  answer_json(answer, 200, json_pack("{s:o}", "sessions", workers_describe(server->workers)));
}

static const struct route routes[] = {
    {"/", ROUTE_DOCUMENT, answer_index},
    {"/livez", ROUTE_DOCUMENT, answer_live},
    {"/readyz", ROUTE_DOCUMENT, answer_ready},
    {"/v1/models", ROUTE_DOCUMENT, answer_models},
    {"/v1/models/*", ROUTE_DOCUMENT, answer_model},
    {"/metrics", ROUTE_DOCUMENT, answer_counts},
    {"/v1/sessions", ROUTE_OPERATOR, answer_sessions},
    {"/v1/stream", ROUTE_STREAM, NULL},
};

static json_t *list_links(void) {
  json_t *links = json_array();
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
    json_array_append_new(links, json_string(routes[i].path));
  return links;
}

static void answer_index(const struct server *server, const char *parameter,
                         struct answer *answer) {
  (void)parameter;
  answer_json(answer, 200,
              json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:o}", "name", "dsnetd", "version",
                        DSNET_VERSION, "about",
                        "learned soft-tissue motion of skinned bodies, streamed over WebSocket",
                        "ready", server_ready(server), "subprotocol", WIRE_SUBPROTOCOL, "models",
                        describe_models(server), "paths", list_links()));
}

const struct route *route_find(const char *path, const char **parameter) {
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
    size_t length = strlen(routes[i].path);
    bool open_ended = routes[i].path[length - 1] == '*';
    if (!open_ended && !strcmp(path, routes[i].path))
      return &routes[i];
    if (!open_ended || strncmp(path, routes[i].path, length - 1))
      continue;
    *parameter = path + length - 1;
    if (**parameter && !strchr(*parameter, '/'))
      return &routes[i];
  }
  return NULL;
}

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

static void refuse_operator(const struct server *server, struct answer *answer) {
  if (!server->operator_token) {
    answer_problem(answer, 403, "this server has no --operator-token-file, so nobody may see this");
    return;
  }
  answer_problem(answer, 401, "the operator's token is needed (Authorization: Bearer ...)");
  answer_header(answer, "WWW-Authenticate", "Bearer");
}

void route_answer(const struct server *server, const char *method, const char *path,
                  const char *authorization, struct answer *answer) {
  const char *parameter = "";
  const struct route *route = route_find(path, &parameter);
  if (!route) {
    answer_problem(answer, 404, "there is nothing at this address; / lists what there is");
  } else if (strcmp(method, "GET") && strcmp(method, "HEAD")) {
    answer_problem(answer, 405, "this address is only read");
    answer_header(answer, "Allow", route->kind == ROUTE_STREAM ? "GET" : "GET, HEAD");
  } else if (route->kind == ROUTE_OPERATOR && !is_operator(server, authorization)) {
    refuse_operator(server, answer);
  } else {
    route->answer(server, parameter, answer);
  }
}
