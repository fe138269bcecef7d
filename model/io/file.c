// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define BUFFER_SIZE 65536

struct file_writer {
  int descriptor;
  char *target;    // the file to replace, links resolved
  char *temporary; // beside it
  uint64_t flushed;
  size_t buffered;
  struct dsnet_error failure; // the first one
  uint8_t buffer[BUFFER_SIZE];
};

static int set_system_error(struct dsnet_error *error, const char *path, const char *what) {
  return dsnet_error_set(error, errno == ENOMEM ? DSNET_ENOMEM : DSNET_EIO, "%.160s: %s: %s", path,
                         what, strerror(errno));
}

// Where the bytes shall end up in *target (malloc), and the permissions to give them: those of the
// file that is there, or 0 when there is none.
static int resolve_target(const char *path, char **target, mode_t *mode,
                          struct dsnet_error *error) {
  struct stat status;
  *mode = 0;
  *target = NULL;
  if (stat(path, &status) == 0) {
    if (!S_ISREG(status.st_mode))
      return dsnet_error_set(error, DSNET_EIO, "%.160s: is not a regular file", path);
    *mode = status.st_mode & 07777;
    *target = realpath(path, NULL);
  } else if (errno == ENOENT) {
    *target = strdup(path);
  }
  return *target ? 0 : set_system_error(error, path, "cannot be written");
}

// A name in the folder of `target` that nobody else uses: hidden, and 64 random bits.
static char *temporary_name(const char *target) {
  uint64_t bits;
  if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
    return NULL;
  const char *slash = strrchr(target, '/');
  int folder = slash ? (int)(slash - target) + 1 : 0;
  char *name;
  if (asprintf(&name, "%.*s.dsnet-%016llx.tmp", folder, target, (unsigned long long)bits) < 0)
    return NULL;
  return name;
}

static void free_writer(struct file_writer *writer) {
  free(writer->temporary);
  free(writer->target);
  free(writer);
}

int file_writer_open(struct file_writer **writer, const char *path, struct dsnet_error *error) {
  *writer = NULL;
  struct file_writer *w = calloc(1, sizeof *w);
  if (!w)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  mode_t mode;
  int result = resolve_target(path, &w->target, &mode, error);
  if (result < 0)
    goto fail;
  w->temporary = temporary_name(w->target);
  if (!w->temporary) {
    result = set_system_error(error, path, "cannot name a temporary file");
    goto fail;
  }
  w->descriptor = open(w->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode ? mode : 0666);
  if (w->descriptor < 0) {
    result = set_system_error(error, path, "cannot be created");
    goto fail;
  }
  if (mode && fchmod(w->descriptor, mode) < 0) {
    result = set_system_error(error, path, "cannot set its permissions");
    goto fail_created;
  }
  *writer = w;
  return 0;

fail_created:
  close(w->descriptor);
  unlink(w->temporary);
fail:
  free_writer(w);
  return result;
}

// All of `size` bytes at `offset`; what the system writes short is continued.
static int write_fully(struct file_writer *w, uint64_t offset, const uint8_t *data, size_t size) {
  while (size) {
    ssize_t written = pwrite(w->descriptor, data, size, (off_t)offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written == 0)
      errno = EIO; // a regular file has no reason to take nothing
    if (written <= 0)
      return set_system_error(&w->failure, w->target, "cannot be written");
    data += written;
    size -= (size_t)written;
    offset += (uint64_t)written;
  }
  return 0;
}

static int flush(struct file_writer *w) {
  if (w->failure.code == DSNET_OK && write_fully(w, w->flushed, w->buffer, w->buffered) == 0) {
    w->flushed += w->buffered;
    w->buffered = 0;
  }
  return w->failure.code;
}

// The remembered failure as the answer of this call.
static int answer(const struct file_writer *w, struct dsnet_error *error) {
  if (w->failure.code == DSNET_OK)
    return 0;
  return dsnet_error_set(error, w->failure.code, "%s", w->failure.text);
}

int file_writer_append(struct file_writer *w, const void *data, size_t size,
                       struct dsnet_error *error) {
  if (w->failure.code == DSNET_OK && size > BUFFER_SIZE - w->buffered)
    flush(w);
  if (w->failure.code != DSNET_OK)
    return answer(w, error);
  if (size > BUFFER_SIZE) {
    if (write_fully(w, w->flushed, data, size) == 0)
      w->flushed += size;
  } else if (size) {
    memcpy(w->buffer + w->buffered, data, size);
    w->buffered += size;
  }
  return answer(w, error);
}

int file_writer_patch(struct file_writer *w, uint64_t offset, const void *data, size_t size,
                      struct dsnet_error *error) {
  uint64_t end = file_writer_size(w);
  if (offset > end || size > end - offset)
    return dsnet_error_set(error, DSNET_EUSAGE, "%.160s: patched beyond its end", w->target);
  if (flush(w) == 0)
    write_fully(w, offset, data, size);
  return answer(w, error);
}

uint64_t file_writer_size(const struct file_writer *w) {
  return w->flushed + w->buffered;
}

// Makes the rename itself survive a crash. A folder that cannot be opened or synced (some network
// file systems) is no reason to call a complete file a failure.
static void sync_folder(const char *target) {
  const char *slash = strrchr(target, '/');
  char *folder =
      slash ? strndup(target, slash == target ? 1 : (size_t)(slash - target)) : strdup(".");
  int descriptor = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
  free(folder);
}

int file_writer_commit(struct file_writer *w, struct dsnet_error *error) {
  flush(w);
  if (w->failure.code == DSNET_OK && fsync(w->descriptor) < 0)
    set_system_error(&w->failure, w->target, "cannot be synced");
  if (close(w->descriptor) < 0 && w->failure.code == DSNET_OK)
    set_system_error(&w->failure, w->target, "cannot be closed");
  if (w->failure.code == DSNET_OK && rename(w->temporary, w->target) < 0)
    set_system_error(&w->failure, w->target, "cannot be replaced");
  int result = answer(w, error);
  if (result == 0)
    sync_folder(w->target);
  else
    unlink(w->temporary);
  free_writer(w);
  return result;
}

void file_writer_abort(struct file_writer *w) {
  if (!w)
    return;
  close(w->descriptor);
  unlink(w->temporary);
  free_writer(w);
}

int file_write(const char *path, const void *data, size_t size, struct dsnet_error *error) {
  struct file_writer *writer;
  int result = file_writer_open(&writer, path, error);
  if (result < 0)
    return result;
  file_writer_append(writer, data, size, NULL); // a failure stays and commit returns it
  return file_writer_commit(writer, error);
}

int file_open_regular(const char *path, int *descriptor, uint64_t *size,
                      struct dsnet_error *error) {
  *descriptor = -1;
  *size = 0;
  // O_NONBLOCK, so that a pipe that nobody writes to is refused and not waited for.
  int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0)
    return set_system_error(error, path, "cannot be opened");
  struct stat status;
  int result = 0;
  if (fstat(opened, &status) < 0)
    result = set_system_error(error, path, "cannot be read");
  else if (!S_ISREG(status.st_mode))
    result = dsnet_error_set(error, DSNET_EIO, "%.160s: is not a regular file", path);
  if (result < 0) {
    close(opened);
    return result;
  }
  *descriptor = opened;
  *size = (uint64_t)status.st_size;
  return 0;
}

int file_read_at(int descriptor, uint64_t offset, void *data, size_t size,
                 struct dsnet_error *error) {
  uint8_t *at = data;
  while (size) {
    ssize_t got = pread(descriptor, at, size, (off_t)offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return dsnet_error_set(error, DSNET_EIO, "cannot be read: %s", strerror(errno));
    if (got == 0)
      return dsnet_error_set(error, DSNET_EIO, "has become shorter while it was read");
    at += got;
    size -= (size_t)got;
    offset += (uint64_t)got;
  }
  return 0;
}

int file_read(const char *path, size_t limit, uint8_t **data, size_t *size,
              struct dsnet_error *error) {
  *data = NULL;
  *size = 0;
  int descriptor;
  uint64_t bytes;
  int result = file_open_regular(path, &descriptor, &bytes, error);
  if (result < 0)
    return result;
  uint8_t *block = NULL;
  if (bytes > limit)
    result = dsnet_error_set(error, DSNET_ELIMIT, "%.160s: %llu bytes, more than %zu", path,
                             (unsigned long long)bytes, limit);
  else if (!(block = memory_alloc((size_t)bytes, 1)))
    result = dsnet_error_set(error, DSNET_ENOMEM, "%.160s: out of memory", path);
  else if ((result = file_read_at(descriptor, 0, block, (size_t)bytes, error)) < 0)
    dsnet_error_prefix(error, "%.160s", path);
  close(descriptor);
  if (result < 0) {
    free(block);
    return result;
  }
  *data = block;
  *size = (size_t)bytes;
  return 0;
}
