// SPDX-License-Identifier: Apache-2.0
// What every store promises, on the one in SQLite; and what that one does with bad folders.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store.h"

static char folder[64];

static struct store *open_store(void) {
  struct store *store;
  struct dsnet_error error = {0};
  if (store_sqlite_open(&store, folder, &error) < 0)
    fail_msg("%s", error.text);
  return store;
}

static int set_up(void **state) {
  strcpy(folder, "/tmp/dsnet-store-XXXXXX");
  assert_non_null(mkdtemp(folder));
  *state = open_store();
  return 0;
}

static int tear_down(void **state) {
  char command[128];
  struct store *store = *state;
  store->functions->close(store);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static struct job make_job(const char *id) {
  struct job job = {.created = 100, .clip = JOB_CLIP_JSON};
  snprintf(job.id, sizeof job.id, "%s", id);
  strcpy(job.model, "default");
  memset(job.fingerprint, 7, sizeof job.fingerprint);
  return job;
}

static void put(struct store *store, const char *id) {
  struct job job = make_job(id);
  assert_int_equal(store->functions->put(store, &job, NULL, NULL), STORE_OK);
}

static struct job get(struct store *store, const char *id) {
  struct job job;
  assert_int_equal(store->functions->get(store, id, &job, NULL), STORE_OK);
  return job;
}

static void a_job_comes_back_as_it_was_put(void **state) {
  struct store *store = *state;
  struct job job = make_job("a"), other;
  job.has_betas = true;
  for (int i = 0; i < JOB_BETAS; i++)
    job.betas[i] = 0.1f * (float)i;
  assert_int_equal(store->functions->put(store, &job, NULL, NULL), STORE_OK);
  assert_true(job.number > 0);
  other = get(store, "a");
  assert_memory_equal(&other, &job, sizeof job);
  assert_int_equal(store->functions->get(store, "b", &other, NULL), STORE_NONE);
  put(store, "plain");
  assert_false(get(store, "plain").has_betas);
  assert_int_equal(store->functions->put(store, &job, NULL, NULL), STORE_BROKEN); // same id
}

static void a_key_belongs_to_one_job(void **state) {
  struct store *store = *state;
  struct job first = make_job("a"), second = make_job("b");
  assert_int_equal(store->functions->put(store, &first, "key", NULL), STORE_OK);
  assert_int_equal(store->functions->put(store, &second, "key", NULL), STORE_EXISTS);
  assert_string_equal(second.id, "a");
  assert_int_equal(store->functions->get(store, "b", &second, NULL), STORE_NONE);
}

static void jobs_are_claimed_once_and_in_order(void **state) {
  struct store *store = *state;
  struct job job;
  put(store, "a");
  put(store, "b");
  assert_int_equal(store->functions->claim(store, "me", 5, 30, &job, NULL), STORE_OK);
  assert_string_equal(job.id, "a");
  assert_int_equal(job.state, JOB_RUNNING);
  assert_int_equal(job.attempts, 1);
  assert_true(job.started == 5);
  assert_int_equal(store->functions->claim(store, "me", 5, 30, &job, NULL), STORE_OK);
  assert_string_equal(job.id, "b");
  assert_int_equal(store->functions->claim(store, "me", 5, 30, &job, NULL), STORE_NONE);
  size_t count;
  assert_int_equal(store->functions->waiting(store, &count, NULL), STORE_OK);
  assert_int_equal(count, 2);
}

static void only_the_owner_tells_of_a_job(void **state) {
  struct store *store = *state;
  struct job job;
  put(store, "a");
  store->functions->claim(store, "me", 5, 30, &job, NULL);
  job.frames = 10;
  job.frames_done = 4;
  assert_int_equal(store->functions->progress(store, &job, "you", 30, NULL), STORE_LOST);
  assert_int_equal(store->functions->progress(store, &job, "me", 30, NULL), STORE_OK);
  assert_int_equal(get(store, "a").frames_done, 4);
  assert_int_equal(store->functions->release(store, &job, "me", NULL), STORE_OK);
  assert_int_equal(get(store, "a").state, JOB_QUEUED);
  assert_int_equal(store->functions->progress(store, &job, "me", 30, NULL), STORE_LOST);
  struct job again;
  store->functions->claim(store, "me", 6, 30, &again, NULL);
  job.state = again.state = JOB_FAILED;
  strcpy(again.error, "poses: frame 3 is bad");
  again.finished = 9;
  assert_int_equal(store->functions->finish(store, &job, "me", NULL), STORE_LOST); // attempt 1
  assert_int_equal(store->functions->finish(store, &again, "me", NULL), STORE_OK);
  assert_int_equal(store->functions->finish(store, &again, "me", NULL), STORE_LOST); // once
  job = get(store, "a");
  assert_int_equal(job.state, JOB_FAILED);
  assert_string_equal(job.error, "poses: frame 3 is bad");
}

static void cancelling_ends_what_has_not_ended(void **state) {
  struct store *store = *state;
  struct job job, running;
  put(store, "a");
  put(store, "b");
  store->functions->claim(store, "me", 5, 30, &running, NULL);
  assert_int_equal(store->functions->remove(store, "a", NULL), STORE_LOST);
  assert_int_equal(store->functions->cancel(store, "a", 8, &job, NULL), STORE_OK);
  assert_int_equal(job.state, JOB_CANCELLED);
  assert_true(job.finished == 8);
  assert_int_equal(store->functions->progress(store, &running, "me", 30, NULL), STORE_LOST);
  assert_int_equal(store->functions->cancel(store, "a", 9, &job, NULL), STORE_OK);
  assert_true(job.finished == 8);
  assert_int_equal(store->functions->cancel(store, "x", 9, &job, NULL), STORE_NONE);
  assert_int_equal(store->functions->remove(store, "a", NULL), STORE_OK);
  assert_int_equal(store->functions->remove(store, "a", NULL), STORE_NONE);
}

static void lists_go_on_where_they_ended(void **state) {
  struct store *store = *state;
  struct job jobs[4], job;
  size_t count;
  put(store, "a");
  put(store, "b");
  put(store, "c");
  store->functions->cancel(store, "b", 8, &job, NULL);
  store->functions->list(store, JOB_STATE_COUNT, 0, 2, jobs, &count, NULL);
  assert_int_equal(count, 2);
  assert_string_equal(jobs[1].id, "b");
  store->functions->list(store, JOB_STATE_COUNT, jobs[1].number, 2, jobs, &count, NULL);
  assert_int_equal(count, 1);
  assert_string_equal(jobs[0].id, "c");
  store->functions->list(store, JOB_QUEUED, 0, 4, jobs, &count, NULL);
  assert_int_equal(count, 2);
  store->functions->expired(store, 8, 4, jobs, &count, NULL);
  assert_int_equal(count, 0);
  store->functions->expired(store, 8.5, 4, jobs, &count, NULL);
  assert_int_equal(count, 1);
  assert_string_equal(jobs[0].id, "b");
}

static void a_reopened_store_has_all_and_queues_what_ran(void **state) {
  struct store *store = *state, *second;
  struct job job;
  struct dsnet_error error = {0};
  put(store, "a");
  put(store, "b");
  store->functions->claim(store, "me", 5, 30, &job, NULL);
  assert_int_equal(store_sqlite_open(&second, folder, &error), DSNET_EIO); // in use
  assert_non_null(strstr(error.text, "in use"));
  store->functions->close(store);
  *state = store = open_store();
  assert_int_equal(get(store, "a").state, JOB_QUEUED);
  assert_int_equal(get(store, "a").attempts, 1);
  assert_int_equal(get(store, "b").state, JOB_QUEUED);
}

static void damage(const char *bytes, size_t size, long offset) {
  char path[128];
  snprintf(path, sizeof path, "%s/jobs.sqlite", folder);
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, offset, SEEK_SET);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static void a_damaged_database_is_refused(void **state) {
  struct store *store = *state, *again;
  static const char noise[8192] = {'x'};
  put(store, "a");
  store->functions->close(store);
  damage(noise, 100, 4096); // inside a table
  struct dsnet_error error = {0};
  assert_true(store_sqlite_open(&again, folder, &error) < 0);
  assert_non_null(strstr(error.text, "jobs.sqlite"));
  damage(noise, sizeof noise, 0); // no database at all
  assert_true(store_sqlite_open(&again, folder, NULL) < 0);
  char path[128];
  snprintf(path, sizeof path, "%s/jobs.sqlite", folder);
  unlink(path);
  *state = open_store();
}

static void a_folder_that_is_none_is_refused(void **state) {
  (void)state;
  struct store *store;
  struct dsnet_error error = {0};
  assert_int_equal(store_sqlite_open(&store, "/nonexistent/folder", &error), DSNET_EIO);
  assert_null(store);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_job_comes_back_as_it_was_put),
      TEST(a_key_belongs_to_one_job),
      TEST(jobs_are_claimed_once_and_in_order),
      TEST(only_the_owner_tells_of_a_job),
      TEST(cancelling_ends_what_has_not_ended),
      TEST(lists_go_on_where_they_ended),
      TEST(a_reopened_store_has_all_and_queues_what_ran),
      TEST(a_damaged_database_is_refused),
      TEST(a_folder_that_is_none_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
