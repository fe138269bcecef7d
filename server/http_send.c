// SPDX-License-Identifier: Apache-2.0
// Answers on their way out: header fields, conditions and ranges, CORS, and bodies that are read
// while they are sent.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http_private.h"
#include "negotiate.h"
#include "upgrade.h"

#define EARLY_MAX 4096 // bytes of an early answer's header fields

// Header fields ----------------------------------------------------------------------------------

typedef void add_field(void *sink, const char *name, const char *value);

// What a page of an allowed origin may see (fetch.spec.whatwg.org, "HTTP extensions").
static void add_cors(const struct exchange *exchange, add_field *add, void *sink) {
  const struct config *config = exchange->client->http->server->config;
  const char *origin = request_header(&exchange->request, "Origin");
  if (!config->allowed_origins.count)
    return;
  add(sink, "Vary", "Origin");
  if (!origin || !origin_listed(origin, &config->allowed_origins))
    return;
  add(sink, "Access-Control-Allow-Origin", origin);
  if (!exchange->preflight) {
    add(sink, "Access-Control-Expose-Headers",
        "Accept-Ranges, Content-Range, ETag, Inference-Header-Content-Length, Location, "
        "Retry-After");
    return;
  }
  add(sink, "Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE");
  add(sink, "Access-Control-Allow-Headers",
      "Authorization, Content-Type, Idempotency-Key, If-None-Match, If-Range, "
      "Inference-Header-Content-Length, Last-Event-ID, Range");
  add(sink, "Access-Control-Max-Age", "600");
}

static void add_fields(const struct exchange *exchange, add_field *add, void *sink) {
  const struct answer *answer = &exchange->answer;
  if (answer->type)
    add(sink, "Content-Type", answer->type);
  if (answer->etag[0]) {
    add(sink, "ETag", answer->etag);
    add(sink, "Accept-Ranges", "bytes");
    add(sink, "Cache-Control", "private, no-cache"); // keep it, but ask whether it is still there
  } else {
    add(sink, "Cache-Control", "no-store");
  }
  add(sink, "X-Content-Type-Options", "nosniff");
  for (size_t i = 0; i < answer->header_count; i++)
    add(sink, answer->headers[i].name, answer_header_value(answer, i));
  add_cors(exchange, add, sink);
}

// Bodies that are read while they are sent -------------------------------------------------------

struct reader {
  struct exchange *exchange;
  struct answer_source source;
  uint64_t first; // of the document's bytes, the first that is sent
};

static ssize_t read_body(void *user, uint64_t position, char *data, size_t size) {
  struct reader *reader = user;
  struct exchange *exchange = reader->exchange;
  ssize_t got = reader->source.read(reader->source.user, reader->first + position, data, size);
  if (got == ANSWER_END)
    return MHD_CONTENT_READER_END_OF_STREAM;
  if (got < 0)
    return MHD_CONTENT_READER_END_WITH_ERROR;
  if (got == ANSWER_WAIT)
    exchange_sleep(exchange);
  else
    client_owe(exchange->client, &exchange->client->http->transfers);
  return got;
}

static void close_body(void *user) {
  struct reader *reader = user;
  if (reader->source.close)
    reader->source.close(reader->source.user);
  free(reader);
}

// The source is the reader's from here on, and closed when there can be none.
static struct MHD_Response *respond_reading(struct exchange *exchange, uint64_t first,
                                            uint64_t size) {
  struct answer *answer = &exchange->answer;
  struct reader *reader = calloc(1, sizeof *reader);
  if (!reader)
    return NULL;
  *reader = (struct reader){.exchange = exchange, .source = answer->source, .first = first};
  struct MHD_Response *response =
      MHD_create_response_from_callback(size == ANSWER_SIZE_UNKNOWN ? MHD_SIZE_UNKNOWN : size,
                                        answer->block, read_body, reader, close_body);
  if (response)
    answer->source = (struct answer_source){0};
  else
    free(reader);
  return response;
}

// A whole body changes hands without a copy: it may have megabytes, and the loop has streams.
static struct MHD_Response *respond_from_memory(struct answer *answer, uint64_t first,
                                                uint64_t size) {
  if (first)
    return MHD_create_response_from_buffer(size, answer->body + first, MHD_RESPMEM_MUST_COPY);
  struct MHD_Response *response =
      MHD_create_response_from_buffer(size, answer->body, MHD_RESPMEM_MUST_FREE);
  if (response)
    answer->body = NULL;
  return response;
}

// Choosing what is sent --------------------------------------------------------------------------

// What is asked about a document that has an entity tag. `*size` becomes 0 when nothing is sent.
static void apply_conditions(struct exchange *exchange, uint64_t *first, uint64_t *size) {
  const struct request *request = &exchange->request;
  struct answer *answer = &exchange->answer;
  uint64_t last = 0, whole = answer->size;
  char range[80];
  if (negotiate_matches(request_header(request, "If-None-Match"), answer->etag)) {
    char etag[ANSWER_ETAG_MAX];
    memcpy(etag, answer->etag, sizeof etag);
    answer_deinit(answer);
    answer_empty(answer, 304);
    memcpy(answer->etag, etag, sizeof etag);
    *size = 0;
    return;
  }
  switch (negotiate_range(request_header(request, "Range"), request_header(request, "If-Range"),
                          answer->etag, whole, first, &last)) {
  case NEGOTIATE_WHOLE:
    return;
  case NEGOTIATE_PART:
    *size = last - *first + 1;
    answer->status = 206;
    snprintf(range, sizeof range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, *first, last, whole);
    break;
  case NEGOTIATE_NO_PART:
    answer_deinit(answer);
    answer_problem(answer, PROBLEM_RANGE, "there are %" PRIu64 " bytes", whole);
    *size = answer->size;
    snprintf(range, sizeof range, "bytes */%" PRIu64, whole);
    break;
  }
  answer_header(answer, "Content-Range", range);
}

static void add_to_response(void *sink, const char *name, const char *value) {
  MHD_add_response_header(sink, name, value);
}

static void check_acceptable(struct exchange *exchange) {
  struct answer *answer = &exchange->answer;
  bool document = exchange->route && exchange->route->method == METHOD_GET;
  if (!document || answer->status != 200 || !answer->type ||
      negotiate_accepts(request_header(&exchange->request, "Accept"), answer->type))
    return;
  char type[64];
  snprintf(type, sizeof type, "%s", answer->type);
  answer_deinit(answer);
  answer_problem(answer, PROBLEM_NOT_ACCEPTABLE, "this is %s", type);
}

enum MHD_Result http_send(struct exchange *exchange) {
  struct answer *answer = &exchange->answer;
  struct MHD_Response *response;
  check_acceptable(exchange);
  uint64_t first = 0, size = answer->size;
  if (answer->etag[0])
    apply_conditions(exchange, &first, &size);
  if (answer->source.read)
    response = respond_reading(exchange, first, size);
  else
    response = respond_from_memory(answer, first, size);
  enum MHD_Result result = MHD_NO;
  if (response) {
    add_fields(exchange, add_to_response, response);
    result = MHD_queue_response(exchange->client->connection, answer->status, response);
    MHD_destroy_response(response);
  }
  client_owe(exchange->client, &exchange->client->http->transfers);
  answer_deinit(answer);
  return result;
}

struct head {
  char text[EARLY_MAX];
  size_t size;
};

static void add_to_head(void *sink, const char *name, const char *value) {
  struct head *head = sink;
  int size =
      snprintf(head->text + head->size, sizeof head->text - head->size, "%s: %s\r\n", name, value);
  if (size > 0 && (size_t)size < sizeof head->text - head->size)
    head->size += (size_t)size;
}

void http_send_early(struct exchange *exchange) {
  struct client *client = exchange->client;
  struct answer *answer = &exchange->answer;
  struct head head = {.size = 0};
  char length[24];
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  exchange->cut_short = true;
  exchange->route = NULL;
  head.size = (size_t)snprintf(head.text, sizeof head.text, "HTTP/1.1 %u %s\r\n", answer->status,
                               MHD_get_reason_phrase_for(answer->status));
  add_fields(exchange, add_to_head, &head);
  add_to_head(&head, "Connection", "close");
  snprintf(length, sizeof length, "%" PRIu64, answer->size);
  add_to_head(&head, "Content-Length", length);
  struct iovec parts[] = {{head.text, head.size},
                          {"\r\n", 2},
                          {answer->body, exchange->head ? 0 : (size_t)answer->size}};
  const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
  // Nothing else is on its way to this client, so its socket has room. One that has gone is noticed
  // by the next read.
  if (info && sendmsg(info->connect_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
    shutdown(info->connect_fd, SHUT_WR);
  client_owe(client, &client->http->requests);
  answer_deinit(answer);
}
