// SPDX-License-Identifier: Apache-2.0
#include "jobs.h"

#include <pthread.h>
#include <sched.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "job_run.h"
#include "log.h"

#define LEASE_SECONDS  30.0
#define PROGRESS_EVERY 0.5 // seconds
#define LOOK_EVERY     1   // seconds between looks for jobs that nobody told of
#define RETRY_EVERY    5   // seconds after the store has failed
#define EXPIRED_MAX    64  // jobs removed at once

struct job_thread {
  struct jobs *jobs;
  pthread_t thread;
  struct job job; // at hand; its id is under the lock
  bool working;   // under the lock
  atomic_bool interrupted;
  double told; // when progress was last noted
};

struct jobs {
  const struct config *config;
  const struct models *models;
  char unavailable[JOB_ERROR_SIZE]; // empty: there are jobs
  struct store *store;
  struct job_files files;
  char owner[JOB_OWNER_SIZE];
  size_t count;
  struct job_thread *threads;

  pthread_mutex_t lock;
  pthread_cond_t news; // a job waits, or the end has come
  bool waiting;        // a job has been announced
  atomic_bool stopping;
  atomic_uint_fast64_t done, failed, frames;
};

void job_id_make(char id[JOB_ID_SIZE]) {
  uint8_t bytes[(JOB_ID_SIZE - 1) / 2];
  randombytes_buf(bytes, sizeof bytes);
  sodium_bin2hex(id, JOB_ID_SIZE, bytes, sizeof bytes);
}

double job_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Working ----------------------------------------------------------------------------------------

// Waits for news or so many seconds.
static void wait_for_news(struct jobs *jobs, int seconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += seconds;
  pthread_mutex_lock(&jobs->lock);
  while (!jobs->waiting && !jobs->stopping)
    if (pthread_cond_timedwait(&jobs->news, &jobs->lock, &until))
      break;
  jobs->waiting = false;
  pthread_mutex_unlock(&jobs->lock);
}

// Between stretches of a job: whether to go on.
static bool go_on(void *user, uint64_t frames, uint64_t done) {
  struct job_thread *thread = user;
  struct jobs *jobs = thread->jobs;
  if (jobs->stopping || thread->interrupted)
    return false;
  double now = job_clock();
  if (now - thread->told < PROGRESS_EVERY && done)
    return true;
  thread->told = now;
  thread->job.frames = frames;
  thread->job.frames_done = done;
  // A store that fails for a moment does not stop the work.
  return jobs->store->functions->progress(jobs->store, &thread->job, jobs->owner, LEASE_SECONDS,
                                          NULL) != STORE_LOST;
}

static void discard_result(const struct jobs *jobs, const struct job *job) {
  char path[JOB_PATH_SIZE];
  job_files_result(&jobs->files, job, path);
  unlink(path);
}

// Says how the job has ended, however long the store takes to keep it. Whether it was told.
static bool tell_end(struct jobs *jobs, const struct job *job) {
  for (;;) {
    struct dsnet_error error = {0};
    int result = jobs->store->functions->finish(jobs->store, job, jobs->owner, &error);
    if (result >= 0)
      return result == STORE_OK;
    log_event(LOG_LEVEL_ERROR, "jobs_store", NULL, "%s; trying again", error.text);
    if (jobs->stopping)
      return false;
    wait_for_news(jobs, RETRY_EVERY);
  }
}

static void end_job(struct jobs *jobs, struct job *job, int result,
                    const struct dsnet_error *error) {
  char path[JOB_PATH_SIZE];
  job->state = result < 0 ? JOB_FAILED : JOB_DONE;
  job->finished = job_clock();
  if (result == DSNET_EIO || result == DSNET_ENOMEM) {
    log_event(LOG_LEVEL_ERROR, "job_trouble", NULL, "%s: %s", job->id, error->text);
    snprintf(job->error, sizeof job->error, "the server ran out of %s",
             result == DSNET_EIO ? "disk, or its disk failed" : "memory");
  } else if (result < 0) {
    snprintf(job->error, sizeof job->error, "%s", error->text);
  } else {
    job->frames_done = job->frames;
  }
  if (!tell_end(jobs, job)) {
    discard_result(jobs, job);
    return;
  }
  job_files_clip(&jobs->files, job->id, path);
  unlink(path);
  if (result < 0) {
    jobs->failed++;
    log_event(LOG_LEVEL_WARN, "job_failed", NULL, "%s: %s", job->id, job->error);
    return;
  }
  jobs->done++;
  jobs->frames += job->frames;
  log_event(LOG_LEVEL_INFO, "job_done", NULL, "%s: %llu frames in %.3f s", job->id,
            (unsigned long long)job->frames, job->finished - job->started);
}

static void run_job(struct job_thread *thread) {
  struct jobs *jobs = thread->jobs;
  struct dsnet_error error = {0};
  struct job *job = &thread->job;
  const struct job_run_settings settings = {.models = jobs->models,
                                            .files = &jobs->files,
                                            .frames_max = (size_t)jobs->config->job_max_frames,
                                            .go_on = go_on,
                                            .user = thread};
  thread->told = 0;
  int result = job_run(&settings, job, &error);
  if (result != DSNET_ECANCELLED) {
    end_job(jobs, job, result, &error);
    return;
  }
  if (jobs->stopping)
    jobs->store->functions->release(jobs->store, job, jobs->owner, NULL);
}

static bool claim_job(struct job_thread *thread) {
  struct jobs *jobs = thread->jobs;
  struct dsnet_error error = {0};
  struct job job;
  int result = jobs->store->functions->claim(jobs->store, jobs->owner, job_clock(), LEASE_SECONDS,
                                             &job, &error);
  if (result < 0)
    log_event(LOG_LEVEL_ERROR, "jobs_store", NULL, "%s", error.text);
  if (result != STORE_OK) {
    wait_for_news(jobs, result < 0 ? RETRY_EVERY : LOOK_EVERY);
    return false;
  }
  pthread_mutex_lock(&jobs->lock);
  thread->job = job;
  thread->working = true;
  thread->interrupted = false;
  pthread_mutex_unlock(&jobs->lock);
  jobs_wake(jobs); // there may be another
  return true;
}

static void *work(void *user) {
  struct job_thread *thread = user;
  struct jobs *jobs = thread->jobs;
  if (pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0}))
    log_event(LOG_LEVEL_WARN, "jobs_priority", NULL,
              "jobs run at the priority of sessions: SCHED_IDLE is refused");
  while (!jobs->stopping) {
    if (!claim_job(thread))
      continue;
    run_job(thread);
    pthread_mutex_lock(&jobs->lock);
    thread->working = false;
    pthread_mutex_unlock(&jobs->lock);
  }
  return NULL;
}

void jobs_wake(struct jobs *jobs) {
  pthread_mutex_lock(&jobs->lock);
  jobs->waiting = true;
  pthread_cond_signal(&jobs->news);
  pthread_mutex_unlock(&jobs->lock);
}

void jobs_interrupt(struct jobs *jobs, const char *id) {
  pthread_mutex_lock(&jobs->lock);
  for (size_t i = 0; i < jobs->count; i++)
    if (jobs->threads[i].working && !strcmp(jobs->threads[i].job.id, id))
      jobs->threads[i].interrupted = true;
  pthread_mutex_unlock(&jobs->lock);
}

void jobs_expire(struct jobs *jobs) {
  struct job *ended = calloc(EXPIRED_MAX, sizeof *ended);
  size_t count = 0;
  if (!ended)
    return;
  jobs->store->functions->expired(jobs->store, job_clock() - jobs->config->job_ttl, EXPIRED_MAX,
                                  ended, &count, NULL);
  for (size_t i = 0; i < count; i++)
    if (jobs->store->functions->remove(jobs->store, ended[i].id, NULL) == STORE_OK)
      job_files_remove(&jobs->files, &ended[i]);
  free(ended);
}

void jobs_count(struct jobs *jobs, struct jobs_counts *counts) {
  *counts = (struct jobs_counts){
      .available = !jobs->unavailable[0],
      .done = jobs->done,
      .failed = jobs->failed,
      .frames = jobs->frames,
  };
  if (counts->available)
    jobs->store->functions->waiting(jobs->store, &counts->waiting, NULL);
}

// Starting and ending ----------------------------------------------------------------------------

static int start_threads(struct jobs *jobs, struct dsnet_error *error) {
  size_t count =
      jobs->config->job_threads ? (size_t)jobs->config->job_threads : uv_available_parallelism();
  jobs->threads = calloc(count, sizeof *jobs->threads);
  if (!jobs->threads)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  for (size_t i = 0; i < count; i++) {
    jobs->threads[i].jobs = jobs;
    if (pthread_create(&jobs->threads[i].thread, NULL, work, &jobs->threads[i]))
      return dsnet_error_set(error, DSNET_EIO, "cannot start a job thread");
    jobs->count++;
  }
  return 0;
}

static int open_folder(struct jobs *jobs, const char *folder, struct dsnet_error *error) {
  int result = job_files_init(&jobs->files, folder, error);
  if (result == 0)
    result = store_sqlite_open(&jobs->store, folder, error);
  if (result == 0)
    job_files_sweep(&jobs->files, jobs->store);
  return result;
}

int jobs_new(struct jobs **out, const struct config *config, const struct models *models,
             struct dsnet_error *error) {
  *out = NULL;
  struct jobs *jobs = calloc(1, sizeof *jobs);
  if (!jobs)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  jobs->config = config;
  jobs->models = models;
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&jobs->lock, NULL);
  pthread_cond_init(&jobs->news, &clock);
  pthread_condattr_destroy(&clock);
  job_id_make(jobs->owner);
  struct dsnet_error unusable = {0};
  if (!config->data_dir) {
    snprintf(jobs->unavailable, sizeof jobs->unavailable,
             "this server has no --data-dir to keep jobs in");
  } else if (open_folder(jobs, config->data_dir, &unusable) < 0) {
    log_event(LOG_LEVEL_ERROR, "jobs_unavailable", NULL, "%s", unusable.text);
    snprintf(jobs->unavailable, sizeof jobs->unavailable, "the data folder cannot be used");
  } else {
    int result = start_threads(jobs, error);
    if (result < 0) {
      jobs_free(jobs);
      return result;
    }
  }
  *out = jobs;
  return 0;
}

void jobs_stop(struct jobs *jobs) {
  pthread_mutex_lock(&jobs->lock);
  jobs->stopping = true;
  pthread_cond_broadcast(&jobs->news);
  pthread_mutex_unlock(&jobs->lock);
}

void jobs_free(struct jobs *jobs) {
  if (!jobs)
    return;
  jobs_stop(jobs);
  for (size_t i = 0; i < jobs->count; i++)
    pthread_join(jobs->threads[i].thread, NULL);
  if (jobs->store)
    jobs->store->functions->close(jobs->store);
  pthread_cond_destroy(&jobs->news);
  pthread_mutex_destroy(&jobs->lock);
  free(jobs->threads);
  free(jobs);
}

const char *jobs_unavailable(const struct jobs *jobs) {
  return jobs->unavailable[0] ? jobs->unavailable : NULL;
}

struct store *jobs_store(const struct jobs *jobs) {
  return jobs->store;
}

const struct job_files *jobs_files(const struct jobs *jobs) {
  return &jobs->files;
}
