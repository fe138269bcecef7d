// SPDX-License-Identifier: Apache-2.0
#include "infer_http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "infer.h"
#include "infer/response.h"

#define BODY_START    4096
#define BLOCK         65536 // of a response, sent at once
#define LENGTH_HEADER "Inference-Header-Content-Length"

// A request from its header fields to its answer.
struct infer_exchange {
  struct request *request;
  struct infer_job *job;
  size_t capacity;
  bool submitted;
};

void infer_answer_server(struct request *request, struct answer *answer) {
  (void)request;
  answer_json(answer, 200, infer_server_metadata("dsnetd", DSNET_VERSION));
}

void infer_answer_live(struct request *request, struct answer *answer) {
  (void)request;
  answer_json(answer, 200, json_pack("{s:b}", "live", 1));
}

void infer_answer_ready(struct request *request, struct answer *answer) {
  bool ready = server_ready(request->server);
  answer_json(answer, ready ? 200 : 503, json_pack("{s:b}", "ready", ready));
}

// The model of the path, or -1 with the answer filled.
static int find_model(const struct request *request, struct answer *answer) {
  int index = models_find(request->server->models, request->parameters[0]);
  const char *version = request->parameters[1];
  if (index < 0)
    answer_problem(answer, PROBLEM_NO_MODEL,
                   "there is no model of that name; /v1/models lists them");
  else if (*version && strcmp(version, INFER_MODEL_VERSION) != 0)
    answer_problem(answer, PROBLEM_NO_MODEL,
                   "the only version of every model is " INFER_MODEL_VERSION);
  return answer->status ? -1 : index;
}

void infer_answer_model(struct request *request, struct answer *answer) {
  int index = find_model(request, answer);
  if (index < 0)
    return;
  const struct net_config *net = net_config(request->server->models->items[index].net);
  answer_json(
      answer, 200,
      infer_model_metadata(request->server->models->items[index].name, net->vertices, net->latent));
}

void infer_answer_model_ready(struct request *request, struct answer *answer) {
  int index = find_model(request, answer);
  if (index < 0)
    return;
  bool ready = server_ready(request->server);
  answer_json(
      answer, ready ? 200 : 503,
      json_pack("{s:s, s:b}", "name", request->server->models->items[index].name, "ready", ready));
}

// Requests ---------------------------------------------------------------------------------------

static uint64_t body_limit(const struct server *server) {
  return (uint64_t)server->config->max_infer_bytes;
}

static void release(void *state) {
  struct infer_exchange *exchange = state;
  if (exchange->submitted)
    infer_abandon(exchange->request->server->infer, exchange->job);
  else if (exchange->job)
    infer_job_free(exchange->request->server->infer, exchange->job);
  free(exchange);
}

static void begin_body(struct request *request, struct answer *answer) {
  int model = find_model(request, answer);
  if (model < 0)
    return;
  struct infer_exchange *exchange = calloc(1, sizeof *exchange);
  struct infer_job *job = calloc(1, sizeof *job);
  if (!exchange || !job) {
    free(exchange);
    free(job);
    answer_problem(answer, PROBLEM_INTERNAL, "out of memory");
    return;
  }
  job->model = (size_t)model;
  exchange->request = request;
  exchange->job = job;
  request->state = exchange;
  request->release = release;
}

static void take_body(struct request *request, const void *data, size_t size,
                      struct answer *answer) {
  struct infer_exchange *exchange = request->state;
  struct infer_job *job = exchange->job;
  size_t needed = job->size + size; // the limit was checked
  if (needed > exchange->capacity) {
    size_t capacity = exchange->capacity ? exchange->capacity : BODY_START;
    while (capacity < needed)
      capacity *= 2;
    if (!infer_hold(request->server->infer, job, capacity)) {
      answer_problem(answer, PROBLEM_AT_LIMIT,
                     "the requests under way take all the memory they may");
      answer_header(answer, "Retry-After", RETRY_AFTER);
      return;
    }
    char *grown = realloc(job->body, capacity);
    if (!grown) {
      answer_problem(answer, PROBLEM_INTERNAL, "out of memory");
      return;
    }
    job->body = grown;
    exchange->capacity = capacity;
  }
  memcpy(job->body + job->size, data, size);
  job->size = needed;
}

const struct route_body infer_body = {
    .types =
        "application/json application/octet-stream application/vnd.sagemaker-triton.binary+json",
    .untyped = true, // as Triton's client sends it
    .limit = body_limit,
    .begin = begin_body,
    .take = take_body,
};

// How much of the body is JSON. False with the answer filled.
static bool read_json_size(const struct request *request, struct infer_job *job,
                           struct answer *answer) {
  const char *text = request_header(request, LENGTH_HEADER);
  job->json_size = job->size;
  if (!text)
    return true;
  char *end;
  errno = 0;
  unsigned long long size = strtoull(text, &end, 10);
  bool number = *text >= '0' && *text <= '9' && !*end && !errno;
  if (number && size <= job->size) {
    job->json_size = (size_t)size;
    return true;
  }
  if (number)
    answer_problem(answer, PROBLEM_BAD_REQUEST, LENGTH_HEADER " is %llu, the body has %zu bytes",
                   size, job->size);
  else
    answer_problem(answer, PROBLEM_BAD_PARAMETER, LENGTH_HEADER " is not a number of bytes");
  return false;
}

static ssize_t read_response(void *user, uint64_t offset, char *data, size_t size) {
  const struct infer_job *job = user;
  size_t rest = job->response_size - (size_t)offset;
  size_t part = size < rest ? size : rest;
  memcpy(data, job->response + offset, part);
  return (ssize_t)part;
}

// The job lives as long as the request. Its response is sent in blocks, each with its own time to
// be taken: the whole may be megabytes, and the client slow.
static void answer_response(struct infer_job *job, struct answer *answer) {
  const struct answer_source source = {.read = read_response, .user = job};
  char length[24];
  bool binary = job->response_json_size != job->response_size;
  answer_stream(answer, binary ? "application/octet-stream" : "application/json",
                job->response_size, NULL, &source, BLOCK);
  snprintf(length, sizeof length, "%zu", job->response_json_size);
  if (binary)
    answer_header(answer, LENGTH_HEADER, length);
}

static void answer_done(struct infer_job *job, struct answer *answer) {
  switch (job->outcome) {
  case INFER_DONE:
    answer_response(job, answer);
    break;
  case INFER_BAD:
    answer_problem(answer, PROBLEM_BAD_REQUEST, "%s", job->why);
    break;
  case INFER_TOO_LARGE:
    answer_problem(answer, PROBLEM_TOO_LARGE, "%s", job->why);
    break;
  case INFER_FULL:
  case INFER_BUSY:
    answer_problem(answer, PROBLEM_AT_LIMIT, "%s", job->why);
    answer_header(answer, "Retry-After", RETRY_AFTER);
    break;
  case INFER_FAILED:
    answer_problem(answer, PROBLEM_INTERNAL, "%s", job->why);
    break;
  }
}

static void on_done(void *user, struct infer_job *job) {
  struct infer_exchange *exchange = user;
  struct answer answer = {0};
  exchange->submitted = false; // the job is the exchange's again
  answer_done(job, &answer);
  request_complete(exchange->request, &answer);
}

void infer_answer_infer(struct request *request, struct answer *answer) {
  struct infer_exchange *exchange = request->state;
  struct infer_job *job = exchange->job;
  if (!read_json_size(request, job, answer))
    return;
  job->done = on_done;
  job->user = exchange;
  exchange->submitted = infer_submit(request->server->infer, job);
  if (exchange->submitted) {
    answer_later(answer);
    return;
  }
  answer_problem(answer, PROBLEM_AT_LIMIT, "too many requests wait");
  answer_header(answer, "Retry-After", RETRY_AFTER);
}
