// SPDX-License-Identifier: Apache-2.0
// Writing mesh sequences: see dyna.h for the layout. Frames are gathered into chunks of
// [V][3][DYNA_CHUNK_FRAMES], because the file keeps time as the fastest axis and a frame is given
// at once.
#include "io/dyna.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/dyna_lock.h"

struct dyna_writer {
  char *path, *part;
  hid_t file, data; // negative while there is none
  size_t vertices;
  int deflate;
  size_t written, held; // frames in the file, frames in `chunk`
  float *chunk;         // [V][3][DYNA_CHUNK_FRAMES]
};

static int write_triangles(hid_t file, const uint32_t *triangles, size_t faces) {
  hsize_t shape[2] = {faces, 3};
  hid_t space = H5Screate_simple(2, shape, NULL);
  hid_t data =
      H5Dcreate2(file, "faces", H5T_STD_U32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  herr_t result =
      data < 0 ? -1 : H5Dwrite(data, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, triangles);
  if (data >= 0)
    H5Dclose(data);
  if (space >= 0)
    H5Sclose(space);
  return result < 0 ? -1 : 0;
}

static void writer_free(struct dyna_writer *writer) {
  if (!writer)
    return;
  free(writer->chunk);
  free(writer->part);
  free(writer->path);
  free(writer);
}

int dyna_writer_open(struct dyna_writer **out, const char *path, const uint32_t *triangles,
                     size_t faces, size_t vertices, int deflate, struct dsnet_error *error) {
  *out = NULL;
  if (!vertices || !faces)
    return dsnet_error_set(error, DSNET_EVALUE, "%s: a mesh needs vertices and faces", path);
  struct dyna_writer *writer = calloc(1, sizeof *writer);
  size_t values;
  if (!writer)
    goto no_memory;
  writer->file = writer->data = -1;
  writer->vertices = vertices;
  writer->deflate = deflate;
  writer->path = strdup(path);
  if (asprintf(&writer->part, "%s.part", path) < 0)
    writer->part = NULL;
  if (!memory_multiply(vertices, (size_t)3 * DYNA_CHUNK_FRAMES, &values))
    goto no_memory;
  writer->chunk = memory_alloc(values, sizeof *writer->chunk);
  if (!writer->path || !writer->part || !writer->chunk)
    goto no_memory;
  dyna_lock();
  errno = 0;
  writer->file = H5Fcreate(writer->part, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  int reason = errno;
  int result = writer->file < 0 ? -1 : write_triangles(writer->file, triangles, faces);
  dyna_unlock();
  if (result < 0) {
    dsnet_error_set(error, DSNET_EIO, "%s: cannot be created: %s", writer->part,
                    reason ? strerror(reason) : "HDF5 failed");
    dyna_writer_abort(writer);
    return DSNET_EIO;
  }
  *out = writer;
  return 0;

no_memory:
  writer_free(writer);
  return dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
}

static int check_name(const char *name, struct dsnet_error *error) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  size_t length = strlen(name);
  if (!length || length >= DYNA_NAME_SIZE || name[0] == '.' || strspn(name, allowed) != length ||
      !strcmp(name, "faces"))
    return dsnet_error_set(error, DSNET_EVALUE, "\"%.128s\" cannot be the name of a sequence",
                           name);
  return 0;
}

static hid_t create_sequence(const struct dyna_writer *writer, const char *name) {
  hsize_t shape[3] = {writer->vertices, 3, 0};
  hsize_t most[3] = {writer->vertices, 3, H5S_UNLIMITED};
  hsize_t chunk[3] = {writer->vertices, 3, DYNA_CHUNK_FRAMES};
  hid_t data = -1;
  hid_t space = H5Screate_simple(3, shape, most);
  hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  if (space < 0 || plist < 0 || H5Pset_chunk(plist, 3, chunk) < 0)
    goto done;
  if (writer->deflate > 0 &&
      (H5Pset_shuffle(plist) < 0 || H5Pset_deflate(plist, (unsigned)writer->deflate) < 0))
    goto done;
  data = H5Dcreate2(writer->file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
done:
  if (plist >= 0)
    H5Pclose(plist);
  if (space >= 0)
    H5Sclose(space);
  return data;
}

int dyna_writer_begin(struct dyna_writer *writer, const char *name, struct dsnet_error *error) {
  if (writer->data >= 0)
    return dsnet_error_set(error, DSNET_EUSAGE, "%s: a sequence is being written already",
                           writer->path);
  int result = check_name(name, error);
  if (result < 0) {
    dsnet_error_prefix(error, "%s", writer->path);
    return result;
  }
  dyna_lock();
  writer->data = create_sequence(writer, name);
  dyna_unlock();
  writer->written = writer->held = 0;
  if (writer->data < 0)
    return dsnet_error_set(error, DSNET_EIO,
                           "%s: sequence %s cannot be created (is it there twice?)", writer->path,
                           name);
  return 0;
}

// Puts the held frames behind those in the file.
static int write_chunk(struct dyna_writer *writer, struct dsnet_error *error) {
  hsize_t extent[3] = {writer->vertices, 3, writer->written + writer->held};
  hsize_t start[3] = {0, 0, writer->written}, count[3] = {writer->vertices, 3, writer->held};
  hsize_t memory_shape[3] = {writer->vertices, 3, DYNA_CHUNK_FRAMES}, zero[3] = {0, 0, 0};
  hid_t space = -1, memory = -1;
  herr_t result = -1;
  dyna_lock();
  errno = 0;
  if (H5Dset_extent(writer->data, extent) < 0)
    goto done;
  space = H5Dget_space(writer->data);
  memory = H5Screate_simple(3, memory_shape, NULL);
  if (space < 0 || memory < 0 ||
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
      H5Sselect_hyperslab(memory, H5S_SELECT_SET, zero, NULL, count, NULL) < 0)
    goto done;
  result = H5Dwrite(writer->data, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, writer->chunk);
done:
  if (memory >= 0)
    H5Sclose(memory);
  if (space >= 0)
    H5Sclose(space);
  int reason = errno;
  dyna_unlock();
  if (result < 0)
    return dsnet_error_set(error, DSNET_EIO, "%s: cannot be written: %s", writer->part,
                           reason ? strerror(reason) : "HDF5 failed");
  writer->written += writer->held;
  writer->held = 0;
  return 0;
}

int dyna_writer_append(struct dyna_writer *writer, const float *posed, size_t count,
                       struct dsnet_error *error) {
  if (writer->data < 0)
    return dsnet_error_set(error, DSNET_EUSAGE, "%s: no sequence was begun", writer->path);
  size_t values = writer->vertices * 3;
  for (size_t f = 0; f < count; f++) {
    const float *frame = posed + f * values;
    for (size_t i = 0; i < values; i++)
      writer->chunk[i * DYNA_CHUNK_FRAMES + writer->held] = frame[i];
    if (++writer->held < DYNA_CHUNK_FRAMES)
      continue;
    int result = write_chunk(writer, error);
    if (result < 0)
      return result;
  }
  return 0;
}

int dyna_writer_end(struct dyna_writer *writer, struct dsnet_error *error) {
  if (writer->data < 0)
    return dsnet_error_set(error, DSNET_EUSAGE, "%s: no sequence was begun", writer->path);
  if (!writer->written && !writer->held)
    return dsnet_error_set(error, DSNET_EUSAGE, "%s: a sequence without frames", writer->path);
  int result = writer->held ? write_chunk(writer, error) : 0;
  dyna_lock();
  herr_t closed = H5Dclose(writer->data);
  dyna_unlock();
  writer->data = -1;
  if (result == 0 && closed < 0)
    result = dsnet_error_set(error, DSNET_EIO, "%s: cannot be written: HDF5 failed", writer->part);
  return result;
}

// Closes what is open. The file is flushed first, since that is where a full disk shows.
static int close_file(struct dyna_writer *writer) {
  int result = 0;
  dyna_lock();
  if (writer->data >= 0 && H5Dclose(writer->data) < 0)
    result = -1;
  if (writer->file >= 0) {
    if (H5Fflush(writer->file, H5F_SCOPE_GLOBAL) < 0)
      result = -1;
    if (H5Fclose(writer->file) < 0)
      result = -1;
  }
  dyna_unlock();
  writer->data = writer->file = -1;
  return result;
}

static int sync_file(const char *path) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return -1;
  int result = fsync(descriptor);
  close(descriptor);
  return result;
}

int dyna_writer_close(struct dyna_writer *writer, struct dsnet_error *error) {
  int result = 0;
  if (writer->data >= 0)
    result =
        dsnet_error_set(error, DSNET_EUSAGE, "%s: the last sequence was not ended", writer->path);
  errno = 0;
  if (close_file(writer) < 0 && result == 0)
    result = dsnet_error_set(error, DSNET_EIO, "%s: cannot be written: %s", writer->part,
                             errno ? strerror(errno) : "HDF5 failed");
  if (result == 0 && (sync_file(writer->part) < 0 || rename(writer->part, writer->path) < 0))
    result = dsnet_error_set(error, DSNET_EIO, "%s: %s", writer->path, strerror(errno));
  if (result < 0)
    unlink(writer->part);
  writer_free(writer);
  return result;
}

void dyna_writer_abort(struct dyna_writer *writer) {
  if (!writer)
    return;
  close_file(writer);
  unlink(writer->part);
  writer_free(writer);
}
