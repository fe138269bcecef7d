// SPDX-License-Identifier: Apache-2.0
#include "job_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const folders[] = {"uploads", "clips", "results"};

int job_files_init(struct job_files *files, const char *folder, struct dsnet_error *error) {
  char path[JOB_PATH_SIZE];
  if (strlen(folder) >= sizeof files->folder)
    return dsnet_error_set(error, DSNET_ELIMIT, "--data-dir: the path is too long");
  snprintf(files->folder, sizeof files->folder, "%s", folder);
  if (mkdir(folder, 0700) && errno != EEXIST)
    return dsnet_error_set(error, DSNET_EIO, "%s cannot be created: %m", folder);
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
    if ((mkdir(path, 0700) && errno != EEXIST) || access(path, W_OK | X_OK))
      return dsnet_error_set(error, DSNET_EIO, "%s cannot be written: %m", path);
  }
  return 0;
}

void job_files_upload(const struct job_files *files, const char *name, char path[JOB_PATH_SIZE]) {
  snprintf(path, JOB_PATH_SIZE, "%s/uploads/%s", files->folder, name);
}

void job_files_clip(const struct job_files *files, const char *id, char path[JOB_PATH_SIZE]) {
  snprintf(path, JOB_PATH_SIZE, "%s/clips/%s", files->folder, id);
}

void job_files_result(const struct job_files *files, const struct job *job,
                      char path[JOB_PATH_SIZE]) {
  snprintf(path, JOB_PATH_SIZE, "%s/results/%s.%" PRIu64, files->folder, job->id, job->attempts);
}

int job_files_keep(const char *from, const char *to, struct dsnet_error *error) {
  char folder[JOB_PATH_SIZE];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(to, '/') - to), to);
  if (rename(from, to))
    return dsnet_error_set(error, DSNET_EIO, "%s cannot be renamed: %m", from);
  int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int result = descriptor < 0 ? -1 : fsync(descriptor);
  if (descriptor >= 0)
    close(descriptor);
  return result ? dsnet_error_set(error, DSNET_EIO, "%s cannot be synced: %m", folder) : 0;
}

void job_files_remove(const struct job_files *files, const struct job *job) {
  char path[JOB_PATH_SIZE];
  job_files_clip(files, job->id, path);
  unlink(path);
  job_files_result(files, job, path);
  unlink(path);
}

// Whether a file of one of the folders belongs to a job that needs it.
static bool is_needed(struct store *store, const char *folder, const char *name) {
  struct job job;
  char id[JOB_ID_SIZE], expected[JOB_ID_SIZE + 24];
  snprintf(id, sizeof id, "%.*s", JOB_ID_SIZE - 1, name);
  int result = store->functions->get(store, id, &job, NULL);
  if (result != STORE_OK)
    return result < 0; // when in doubt, leave it
  if (!strcmp(folder, "clips"))
    return !strcmp(name, id) && (job.state == JOB_QUEUED || job.state == JOB_RUNNING);
  snprintf(expected, sizeof expected, "%s.%" PRIu64, id, job.attempts);
  return job.state == JOB_DONE && !strcmp(name, expected);
}

void job_files_sweep(const struct job_files *files, struct store *store) {
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    char path[JOB_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", files->folder, folders[i]);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
      if (i == 0 || !is_needed(store, folders[i], entry->d_name))
        unlinkat(dirfd(folder), entry->d_name, 0); // of "." and "..", it is refused
    if (folder)
      closedir(folder);
  }
}
