// SPDX-License-Identifier: Apache-2.0
#include "job_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "job_routes.h"
#include "server.h"

#define WATCHERS_MAX 256
#define LOOK_MS      250
#define COMMENT_MS   15000 // a sign of life, at which a client that has gone is noticed
#define EVENT_MAX    2048

struct job_watcher {
  struct server *server;
  struct request *request;
  struct job_watcher *next, **link;
  struct job job; // as last told
  bool told, ended;
  uint64_t spoke; // loop time, ms
  char text[EVENT_MAX];
  size_t size, sent;
};

static void release(void *state) {
  struct job_watcher *watcher = state;
  if (watcher->link) {
    *watcher->link = watcher->next;
    if (watcher->next)
      watcher->next->link = watcher->link;
    watcher->server->watchers.count--;
  }
  free(watcher);
}

static ssize_t read_events(void *user, uint64_t offset, char *data, size_t size) {
  (void)offset;
  struct job_watcher *watcher = user;
  size_t left = watcher->size - watcher->sent;
  if (!left)
    return watcher->ended ? ANSWER_END : ANSWER_WAIT;
  size = left < size ? left : size;
  memcpy(data, watcher->text + watcher->sent, size);
  watcher->sent += size;
  return (ssize_t)size;
}

static void speak(struct job_watcher *watcher, const char *format, const char *a, const char *b) {
  int size = snprintf(watcher->text, sizeof watcher->text, format, a, b);
  watcher->size = size > 0 && (size_t)size < sizeof watcher->text ? (size_t)size : 0;
  watcher->sent = 0;
  watcher->spoke = uv_now(&watcher->server->loop);
  request_resume(watcher->request);
}

static void tell(struct job_watcher *watcher, const struct job *job) {
  json_t *document = job_describe(job);
  char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
  json_decref(document);
  watcher->job = *job;
  watcher->told = true;
  watcher->ended = job->state != JOB_QUEUED && job->state != JOB_RUNNING;
  speak(watcher, "event: %s\ndata: %s\n\n", job_state_word(job->state), text ? text : "{}");
  free(text);
}

static void look(struct job_watcher *watcher) {
  struct store *store = jobs_store(watcher->server->jobs);
  struct job job;
  if (watcher->sent < watcher->size || watcher->ended)
    return; // the client has not taken the last one yet, and will get the newest
  int result = store->functions->get(store, watcher->job.id, &job, NULL);
  if (result == STORE_NONE) {
    watcher->ended = true;
    speak(watcher, "event: removed\ndata: {}\n\n%s%s", "", "");
  } else if (result == STORE_OK &&
             (!watcher->told || job.state != watcher->job.state ||
              job.frames_done != watcher->job.frames_done || job.frames != watcher->job.frames)) {
    tell(watcher, &job);
  } else if (uv_now(&watcher->server->loop) - watcher->spoke >= COMMENT_MS) {
    speak(watcher, ":\n\n%s%s", "", "");
  }
}

void job_watchers_sweep(struct server *server, bool end) {
  uint64_t now = uv_now(&server->loop);
  if (!end && now - server->watchers.looked < LOOK_MS)
    return;
  server->watchers.looked = now;
  for (struct job_watcher *watcher = server->watchers.first, *next; watcher; watcher = next) {
    next = watcher->next;
    if (end && !watcher->ended) {
      watcher->ended = true;
      request_resume(watcher->request);
    } else {
      look(watcher);
    }
  }
}

void job_answer_events(struct request *request, struct answer *answer) {
  struct server *server = request->server;
  struct job job;
  if (!job_find(request, &job, answer))
    return;
  struct job_watchers *watchers = &server->watchers;
  struct job_watcher *watcher =
      watchers->count < WATCHERS_MAX && !server->finishing ? calloc(1, sizeof *watcher) : NULL;
  if (!watcher) {
    answer_problem(answer, PROBLEM_AT_LIMIT,
                   "no more jobs can be watched now; ask for their state");
    answer_header(answer, "Retry-After", RETRY_AFTER);
    return;
  }
  watcher->server = server;
  watcher->request = request;
  watcher->next = watchers->first;
  watcher->link = &watchers->first;
  if (watchers->first)
    watchers->first->link = &watcher->next;
  watchers->first = watcher;
  watchers->count++;
  request->state = watcher;
  request->release = release;
  tell(watcher, &job);
  const struct answer_source source = {.read = read_events, .user = watcher};
  answer_stream(answer, "text/event-stream", ANSWER_SIZE_UNKNOWN, NULL, &source, EVENT_MAX);
}
