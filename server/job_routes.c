// SPDX-License-Identifier: Apache-2.0
#include "job_routes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "server.h"

#define LIST_MAX     1000
#define LIST_DEFAULT 100

// Sharing -----------------------------------------------------------------------------------------

// RFC 3339, or null for a time that has not come.
static json_t *describe_time(double seconds) {
  char text[40];
  struct tm utc;
  if (seconds <= 0)
    return json_null();
  time_t whole = (time_t)floor(seconds);
  gmtime_r(&whole, &utc);
  size_t size = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(text + size, sizeof text - size, ".%03dZ", (int)((seconds - (double)whole) * 1000));
  return json_string(text);
}

json_t *job_describe(const struct job *job) {
  char path[64], result[80], events[80];
  snprintf(path, sizeof path, "/v1/jobs/%s", job->id);
  snprintf(result, sizeof result, "%s/result", path);
  snprintf(events, sizeof events, "%s/events", path);
  json_t *document = json_pack(
      "{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:{s:s, s:s, s:s}}", "id", job->id, "state",
      job_state_word(job->state), "model", job->model, "frames_done", (json_int_t)job->frames_done,
      "frames", job->frames ? json_integer((json_int_t)job->frames) : json_null(), "created",
      describe_time(job->created), "started", describe_time(job->started), "finished",
      describe_time(job->finished), "links", "self", path, "result", result, "events", events);
  if (document && job->state == JOB_FAILED)
    json_object_set_new(document, "error", json_string(job->error));
  return document;
}

bool job_check_available(const struct request *request, struct answer *answer) {
  const char *reason = jobs_unavailable(request->server->jobs);
  if (reason)
    answer_problem(answer, PROBLEM_NO_JOBS, "%s", reason);
  return !reason;
}

void job_answer_store(struct server *server, int result, const struct dsnet_error *error,
                      struct answer *answer) {
  log_client_event(&server->log_limit, uv_now(&server->loop), LOG_LEVEL_ERROR,
                   result == STORE_FULL ? "jobs_no_space" : "jobs_store", NULL, "%s", error->text);
  if (result == STORE_FULL)
    answer_problem(answer, PROBLEM_NO_SPACE, "the server's disk is full");
  else
    answer_problem(answer, PROBLEM_NO_JOBS, "the server's store of jobs has failed");
}

static void answer_none(struct answer *answer) {
  answer_problem(answer, PROBLEM_NO_JOB, "there is no job of that name; finished ones expire");
}

bool job_find(const struct request *request, struct job *job, struct answer *answer) {
  struct dsnet_error error = {0};
  if (!job_check_available(request, answer))
    return false;
  struct store *store = jobs_store(request->server->jobs);
  int result = store->functions->get(store, request->parameters[0], job, &error);
  if (result < 0)
    job_answer_store(request->server, result, &error, answer);
  else if (result != STORE_OK)
    answer_none(answer);
  return result == STORE_OK;
}

// Reading -----------------------------------------------------------------------------------------

void job_answer_get(struct request *request, struct answer *answer) {
  struct job job;
  if (job_find(request, &job, answer))
    answer_json(answer, 200, job_describe(&job));
}

// The number of the job that a page goes on after.
static bool read_after(const struct request *request, uint64_t *after, struct answer *answer) {
  struct store *store = jobs_store(request->server->jobs);
  const char *id = request_query(request, "after");
  struct job job;
  *after = 0;
  if (!id)
    return true;
  if (store->functions->get(store, id, &job, NULL) != STORE_OK) {
    answer_problem(answer, PROBLEM_BAD_PARAMETER, "after: there is no job of that name");
    return false;
  }
  *after = job.number;
  return true;
}

static json_t *describe_page(const struct job *jobs, size_t count, size_t limit) {
  json_t *list = json_array();
  for (size_t i = 0; i < count; i++)
    json_array_append_new(list, job_describe(&jobs[i]));
  return json_pack("{s:o, s:o}", "jobs", list, "next",
                   count == limit ? json_string(jobs[count - 1].id) : json_null());
}

void job_answer_list(struct request *request, struct answer *answer) {
  size_t state = JOB_STATE_COUNT, count;
  uint64_t limit = LIST_DEFAULT, after;
  if (!job_check_available(request, answer) ||
      !request_query_choice(request, "state", "queued|running|done|failed|cancelled", &state,
                            answer) ||
      !request_query_number(request, "limit", 1, LIST_MAX, &limit, answer) ||
      !read_after(request, &after, answer))
    return;
  struct job *jobs = calloc(limit, sizeof *jobs);
  if (!jobs) {
    answer_empty(answer, 500);
    return;
  }
  struct store *store = jobs_store(request->server->jobs);
  struct dsnet_error error = {0};
  int result =
      store->functions->list(store, (enum job_state)state, after, limit, jobs, &count, &error);
  if (result < 0)
    job_answer_store(request->server, result, &error, answer);
  else
    answer_json(answer, 200, describe_page(jobs, count, limit));
  free(jobs);
}

// Cancelling and removing -------------------------------------------------------------------------

struct removal {
  struct request *request;
  struct job job;
  bool was_over; // the job had ended before, so that it was removed and not cancelled
  int outcome;
  struct dsnet_error error;
  uv_work_t work;
};

// On a thread that may wait for the disk. What is known of the job may be old by now.
static void remove_job(uv_work_t *work) {
  struct removal *removal = work->data;
  struct jobs *jobs = removal->request->server->jobs;
  struct store *store = jobs_store(jobs);
  removal->was_over = removal->job.state != JOB_QUEUED && removal->job.state != JOB_RUNNING;
  if (removal->was_over) {
    removal->outcome = store->functions->remove(store, removal->job.id, &removal->error);
    if (removal->outcome == STORE_OK)
      job_files_remove(jobs_files(jobs), &removal->job);
    return;
  }
  removal->outcome =
      store->functions->cancel(store, removal->job.id, job_clock(), &removal->job, &removal->error);
  if (removal->outcome != STORE_OK || removal->job.state != JOB_CANCELLED)
    return;
  jobs_interrupt(jobs, removal->job.id);
  job_files_remove(jobs_files(jobs), &removal->job);
}

static void removed(uv_work_t *work, int status) {
  (void)status;
  struct removal *removal = work->data;
  struct answer answer = {0};
  if (removal->outcome < 0)
    job_answer_store(removal->request->server, removal->outcome, &removal->error, &answer);
  else if (removal->outcome != STORE_OK)
    answer_none(&answer); // somebody else was faster
  else if (removal->was_over)
    answer_empty(&answer, 204);
  else
    answer_json(&answer, 200, job_describe(&removal->job));
  request_complete(removal->request, &answer);
}

void job_answer_delete(struct request *request, struct answer *answer) {
  struct removal *removal = calloc(1, sizeof *removal);
  if (!removal) {
    answer_empty(answer, 500);
    return;
  }
  request->state = removal;
  request->release = free;
  removal->request = request;
  removal->work.data = removal;
  if (!job_find(request, &removal->job, answer))
    return;
  uv_queue_work(&request->server->loop, &removal->work, remove_job, removed);
  answer_later(answer);
}
