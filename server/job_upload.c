// SPDX-License-Identifier: Apache-2.0
#include "job_upload.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <uv.h>

#include "job_clip.h"
#include "job_routes.h"
#include "jobs.h"
#include "multipart.h"
#include "negotiate.h"
#include "wire/message.h"

#define FORM_EXTRA 65536 // bytes of a form around its file

struct upload {
  struct request *request;
  struct jobs *jobs;
  struct job job;
  char key[JOB_KEY_MAX + 1]; // empty: none
  int descriptor;            // -1 when closed
  char path[JOB_PATH_SIZE];  // empty when the file is not there (any more)
  uint64_t size, limit;      // bytes of the clip
  bool form;
  struct multipart multipart;
  crypto_generichash_state print;
  uv_work_t work;
  int outcome; // of the work: a store_result
  struct dsnet_error error;
};

static void release(void *state) {
  struct upload *upload = state;
  if (upload->descriptor >= 0)
    close(upload->descriptor);
  if (upload->path[0])
    unlink(upload->path);
  free(upload);
}

// What went wrong with the disk, for the log and for the client.
static void answer_disk(struct upload *upload, int code, const char *what, struct answer *answer) {
  bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  struct server *server = upload->request->server;
  log_client_event(&server->log_limit, uv_now(&server->loop), LOG_LEVEL_ERROR,
                   full ? "jobs_no_space" : "jobs_disk", NULL, "%s: %s: %s", upload->path, what,
                   strerror(code));
  if (full)
    answer_problem(answer, PROBLEM_NO_SPACE, "the server's disk is full");
  else
    answer_problem(answer, PROBLEM_NO_JOBS, "the server's data folder cannot be written");
}

// What is asked for -------------------------------------------------------------------------------

// "1.5,-0.5": up to ten numbers.
static bool read_betas(const char *text, struct job *job, struct answer *answer) {
  size_t count = 0;
  for (const char *at = text; *at || !count; count++) {
    char *end;
    double value = strtod(at, &end);
    if (end == at || !(fabs(value) <= MESSAGE_BETA_LIMIT) || count == MESSAGE_BETAS_MAX ||
        (*end && (*end != ',' || !end[1]))) {
      answer_problem(answer, PROBLEM_BAD_PARAMETER,
                     "betas: numbers within %g, separated by commas, are needed",
                     MESSAGE_BETA_LIMIT);
      return false;
    }
    if (count < JOB_BETAS)
      job->betas[count] = (float)value;
    at = *end ? end + 1 : end;
  }
  job->has_betas = true;
  return true;
}

static bool read_query(struct upload *upload, struct answer *answer) {
  const struct request *request = upload->request;
  const struct models *models = request->server->models;
  const char *model = request_query(request, "model"), *betas = request_query(request, "betas");
  const char *key = request_header(request, "Idempotency-Key");
  if (model && models_find(models, model) < 0) {
    answer_problem(answer, PROBLEM_NO_MODEL,
                   "there is no model of that name; /v1/models lists "
                   "them");
    return false;
  }
  snprintf(upload->job.model, sizeof upload->job.model, "%s",
           model ? model : models->items[0].name);
  if (key && (!*key || strlen(key) > JOB_KEY_MAX)) {
    answer_problem(answer, PROBLEM_BAD_PARAMETER, "Idempotency-Key: 1 to %d characters are needed",
                   JOB_KEY_MAX);
    return false;
  }
  snprintf(upload->key, sizeof upload->key, "%s", key ? key : "");
  return !betas || read_betas(betas, &upload->job, answer);
}

static bool read_type(struct upload *upload, struct answer *answer) {
  const char *type = request_header(upload->request, "Content-Type");
  const char *length = request_header(upload->request, "Content-Length");
  upload->limit = (uint64_t)upload->request->server->config->job_max_bytes;
  if (negotiate_is_type(type, "application/json")) {
    upload->job.clip = JOB_CLIP_JSON;
    if (upload->limit > JOB_JSON_MAX)
      upload->limit = JOB_JSON_MAX;
  }
  upload->form = negotiate_is_type(type, "multipart/form-data");
  if (upload->form && multipart_init(&upload->multipart, type, "clip", &upload->error) < 0)
    answer_problem(answer, PROBLEM_BAD_REQUEST, "%s", upload->error.text);
  else if (!upload->form && length && strtoull(length, NULL, 10) > upload->limit)
    route_too_large(upload->limit, answer);
  return !answer->status;
}

// Whether one more job may wait.
static bool check_room(const struct upload *upload, struct answer *answer) {
  size_t count = 0;
  struct store *store = jobs_store(upload->jobs);
  struct dsnet_error error = {0};
  int result = store->functions->waiting(store, &count, &error);
  if (result < 0) {
    job_answer_store(upload->request->server, result, &error, answer);
    return false;
  }
  if (count < (size_t)upload->request->server->config->job_max_waiting)
    return true;
  answer_problem(answer, PROBLEM_AT_LIMIT, "%zu jobs are waiting, no more are taken", count);
  answer_header(answer, "Retry-After", RETRY_AFTER);
  return false;
}

static void begin(struct request *request, struct answer *answer) {
  struct jobs *jobs = request->server->jobs;
  if (!job_check_available(request, answer))
    return;
  struct upload *upload = calloc(1, sizeof *upload);
  if (!upload) {
    answer_empty(answer, 500);
    return;
  }
  upload->request = request;
  upload->jobs = jobs;
  upload->descriptor = -1;
  request->state = upload;
  request->release = release;
  if (!read_query(upload, answer) || !read_type(upload, answer) || !check_room(upload, answer))
    return;
  job_id_make(upload->job.id);
  job_files_upload(jobs_files(jobs), upload->job.id, upload->path);
  upload->descriptor = open(upload->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (upload->descriptor < 0) {
    answer_disk(upload, errno, "cannot be created", answer);
    upload->path[0] = 0;
  }
  crypto_generichash_init(&upload->print, NULL, 0, JOB_PRINT_SIZE);
}

// The body ----------------------------------------------------------------------------------------

struct sink {
  struct upload *upload;
  struct answer *answer;
};

// A piece of the clip. Anything but 0 stops: the answer is there.
static int take_clip(void *user, const char *data, size_t size) {
  struct sink *sink = user;
  struct upload *upload = sink->upload;
  upload->size += size;
  if (upload->size > upload->limit) {
    route_too_large(upload->limit, sink->answer);
    return -1;
  }
  crypto_generichash_update(&upload->print, (const uint8_t *)data, size);
  for (size_t done = 0; done < size;) {
    ssize_t written = write(upload->descriptor, data + done, size - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      answer_disk(upload, errno, "cannot be written", sink->answer);
      return -1;
    }
    done += (size_t)written;
  }
  return 0;
}

static void take(struct request *request, const void *data, size_t size, struct answer *answer) {
  struct upload *upload = request->state;
  struct sink sink = {upload, answer};
  if (!upload->form)
    take_clip(&sink, data, size);
  else if (multipart_take(&upload->multipart, data, size, take_clip, &sink, &upload->error) < 0 &&
           !answer->status)
    answer_problem(answer, PROBLEM_BAD_REQUEST, "%s", upload->error.text);
}

static uint64_t limit(const struct server *server) {
  return (uint64_t)server->config->job_max_bytes + FORM_EXTRA;
}

const struct route_body job_upload_body = {
    .types = "application/octet-stream application/zip application/json multipart/form-data",
    .limit = limit,
    .begin = begin,
    .take = take,
};

// Keeping it --------------------------------------------------------------------------------------

// On a thread that may wait for the disk.
static void keep(uv_work_t *work) {
  struct upload *upload = work->data;
  struct store *store = jobs_store(upload->jobs);
  char path[JOB_PATH_SIZE];
  job_files_clip(jobs_files(upload->jobs), upload->job.id, path);
  upload->outcome = STORE_FULL;
  int failed = fsync(upload->descriptor);
  close(upload->descriptor);
  upload->descriptor = -1;
  if (failed) {
    dsnet_error_record(&upload->error, DSNET_EIO, "%s cannot be synced: %m", upload->path);
    return;
  }
  if (job_files_keep(upload->path, path, &upload->error) < 0)
    return;
  memcpy(upload->path, path, sizeof path);
  struct job accepted = upload->job;
  upload->outcome =
      store->functions->put(store, &accepted, upload->key[0] ? upload->key : NULL, &upload->error);
  if (upload->outcome == STORE_OK)
    upload->path[0] = 0; // it is the job's now
  else if (upload->outcome == STORE_EXISTS &&
           memcmp(accepted.fingerprint, upload->job.fingerprint, JOB_PRINT_SIZE))
    upload->outcome = STORE_LOST;
  upload->job = accepted;
}

static void kept(uv_work_t *work, int status) {
  (void)status;
  struct upload *upload = work->data;
  struct answer answer = {0};
  char location[64];
  if (upload->outcome == STORE_OK)
    jobs_wake(upload->jobs);
  if (upload->outcome < 0) {
    job_answer_store(upload->request->server, upload->outcome, &upload->error, &answer);
  } else if (upload->outcome == STORE_LOST) {
    answer_problem(&answer, PROBLEM_KEY_REUSED,
                   "an earlier request with this Idempotency-Key had another clip, model or betas");
  } else {
    answer_json(&answer, 202, job_describe(&upload->job));
    snprintf(location, sizeof location, "/v1/jobs/%s", upload->job.id);
    answer_header(&answer, "Location", location);
  }
  request_complete(upload->request, &answer);
}

static void finish_print(struct upload *upload) {
  struct job *job = &upload->job;
  crypto_generichash_update(&upload->print, (const uint8_t *)job->model, sizeof job->model);
  crypto_generichash_update(&upload->print, (const uint8_t *)&job->has_betas,
                            sizeof job->has_betas);
  crypto_generichash_update(&upload->print, (const uint8_t *)job->betas, sizeof job->betas);
  crypto_generichash_final(&upload->print, job->fingerprint, JOB_PRINT_SIZE);
}

void job_upload_answer(struct request *request, struct answer *answer) {
  struct upload *upload = request->state;
  if (upload->form && multipart_finish(&upload->multipart, &upload->error) < 0) {
    answer_problem(answer, PROBLEM_BAD_REQUEST, "%s", upload->error.text);
    return;
  }
  if (!upload->size) {
    answer_problem(answer, PROBLEM_BAD_REQUEST, "the clip is empty");
    return;
  }
  finish_print(upload);
  upload->job.created = job_clock();
  upload->work.data = upload;
  uv_queue_work(&request->server->loop, &upload->work, keep, kept);
  answer_later(answer);
}
