// SPDX-License-Identifier: Apache-2.0
// Files written whole or not at all: everything goes to a temporary beside the target, which is
// synced and renamed over it at the end. Until then, and after any failure, what was there before
// stays as it was. One thread at a time per writer.
#ifndef DSNET_IO_FILE_H
#define DSNET_IO_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct file_writer;

// Creates the temporary in the folder of `path`. A symbolic link is followed, so that its target is
// replaced and not the link; a target that exists and is not a regular file (a device, a folder) is
// DSNET_EIO. The file keeps the permissions of the one it replaces, or gets those of the umask.
int file_writer_open(struct file_writer **writer, const char *path, struct dsnet_error *error);

// Appends. Writes are buffered, so a full disk may show in a later call; a failure is remembered
// and every later call returns it.
int file_writer_append(struct file_writer *writer, const void *data, size_t size,
                       struct dsnet_error *error);

// Writes over bytes that have been appended already (offset + size <= file_writer_size).
int file_writer_patch(struct file_writer *writer, uint64_t offset, const void *data, size_t size,
                      struct dsnet_error *error);

// Bytes appended so far.
uint64_t file_writer_size(const struct file_writer *writer);

// Syncs, renames, syncs the folder. The writer is gone afterwards, whatever is returned.
int file_writer_commit(struct file_writer *writer, struct dsnet_error *error);

// Removes the temporary. NULL is allowed.
void file_writer_abort(struct file_writer *writer);

// A whole file in one call.
int file_write(const char *path, const void *data, size_t size, struct dsnet_error *error);

// Opens a regular file for reading and tells its size; anything else (a folder, a pipe, a device)
// is DSNET_EIO. *descriptor is the caller's to close.
int file_open_regular(const char *path, int *descriptor, uint64_t *size, struct dsnet_error *error);

// Exactly `size` bytes at `offset`; fewer, because the file has shrunk, is DSNET_EIO.
int file_read_at(int descriptor, uint64_t offset, void *data, size_t size,
                 struct dsnet_error *error);

// A whole regular file of at most `limit` bytes (DSNET_ELIMIT), into a block that the caller frees.
int file_read(const char *path, size_t limit, uint8_t **data, size_t *size,
              struct dsnet_error *error);

#endif
