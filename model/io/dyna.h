// SPDX-License-Identifier: Apache-2.0
// Mesh sequences in the layout of the Dyna and DFAUST data sets (dyna.is.tue.mpg.de,
// dfaust.is.tue.mpg.de): one HDF5 file with `faces` [F][3] and, per sequence,
// `<subject>_<motion>` [V][3][T] float32, the posed vertices of each frame in metres at 60 Hz.
// A sequence's poses and shape lie beside the file as an AMASS npz of the sequence's name.
//
// Debian's libhdf5 is not safe for threads, so every function here runs under one lock of the
// process: readers and writers may be used from any threads, each object by one thread at a time.
#ifndef DSNET_IO_DYNA_H
#define DSNET_IO_DYNA_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DYNA_NAME_SIZE 128 // bytes of a sequence's name with its NUL
#define DYNA_CHUNK_FRAMES                                                                          \
  32 // frames of one stored chunk: reads that start on a multiple are fastest
#define DYNA_FPS 60.0

// What a reader knows of one sequence.
struct dyna_sequence {
  char name[DYNA_NAME_SIZE];    // "<subject>_<motion>"
  char subject[DYNA_NAME_SIZE]; // up to the first underscore; the whole name when there is none
  char motion[DYNA_NAME_SIZE];  // after it; "" when there is none
  size_t frames;                // T, at least 1
  const char *clip;             // path of the npz: "<folder>/<name>.npz", or AMASS's
                                // "<folder>/<name>_poses.npz" where only that exists
};

struct dyna;

// Opens a file, or all *.h5 and *.hdf5 files of a folder as one set (in the order of their names).
// All must share faces and vertex count. Symbolic and external links are refused, not followed.
// Nothing of the vertices is read yet. The error names the file and the data set.
int dyna_open(struct dyna **dyna, const char *path, struct dsnet_error *error);
void dyna_close(struct dyna *dyna);

size_t dyna_vertices(const struct dyna *dyna);           // V
size_t dyna_faces(const struct dyna *dyna);              // F
const uint32_t *dyna_triangles(const struct dyna *dyna); // [F][3], each under V
size_t dyna_count(const struct dyna *dyna);
const struct dyna_sequence *dyna_at(const struct dyna *dyna, size_t index);

// posed [count][V][3]: frames first .. first + count - 1 of a sequence, in frame order (the file's
// order is transposed). Non-finite values are DSNET_EVALUE, naming the frame.
int dyna_read(struct dyna *dyna, size_t index, size_t first, size_t count, float *posed,
              struct dsnet_error *error);

// A file being written. It appears under its name only when dyna_writer_close succeeds: until then
// it is "<path>.part", which a later run overwrites. So whatever has the final name is complete,
// and a run that was interrupted is resumed by writing one file per sequence and skipping those
// that exist.
struct dyna_writer;

// `deflate` 0 stores, 1..9 compresses (with byte shuffling).
int dyna_writer_open(struct dyna_writer **writer, const char *path, const uint32_t *triangles,
                     size_t faces, size_t vertices, int deflate, struct dsnet_error *error);
// Begins "<subject>_<motion>"; its length grows as frames are appended. Letters, digits, '_', '-'
// and '.' only, since the name also names the npz.
int dyna_writer_begin(struct dyna_writer *writer, const char *name, struct dsnet_error *error);
// posed [count][V][3] metres, in frame order.
int dyna_writer_append(struct dyna_writer *writer, const float *posed, size_t count,
                       struct dsnet_error *error);
// At least one frame must have been appended.
int dyna_writer_end(struct dyna_writer *writer, struct dsnet_error *error);
// Flushes to the disk and renames. The writer is gone afterwards, whatever is returned; on failure
// the partial file is removed and a file that had the name before is untouched.
int dyna_writer_close(struct dyna_writer *writer, struct dsnet_error *error);
// Gives up: removes the partial file. NULL is allowed.
void dyna_writer_abort(struct dyna_writer *writer);

#endif
