// SPDX-License-Identifier: Apache-2.0
// Reading mesh sequences: see dyna.h for the layout. The directory of every file is checked when
// the set is opened; vertices are read by ranges of frames, with one file open at a time.
#include "io/dyna.h"

#include <dirent.h>
#include <hdf5.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/dyna_lock.h"

#define VERTICES_MAX  200000
#define FACES_MAX     1000000
#define FRAMES_MAX    10000000
#define SEQUENCES_MAX 100000
// Holds the chunks of one range of frames for any sensible chunking of another writer.
#define CHUNK_CACHE_BYTES ((size_t)64 << 20)
#define CHUNK_CACHE_SLOTS 12421

struct entry {
  struct dyna_sequence sequence;
  size_t file; // index into files
};

struct dyna {
  char **files;
  size_t file_count;
  struct entry *entries;
  size_t count, capacity;
  size_t vertices, faces;
  uint32_t *triangles;
  hid_t open_file; // negative when none
  size_t open_index;
  float *buffer; // [V][3][DYNA_CHUNK_FRAMES]
};

size_t dyna_vertices(const struct dyna *dyna) {
  return dyna->vertices;
}

size_t dyna_faces(const struct dyna *dyna) {
  return dyna->faces;
}

const uint32_t *dyna_triangles(const struct dyna *dyna) {
  return dyna->triangles;
}

size_t dyna_count(const struct dyna *dyna) {
  return dyna->count;
}

const struct dyna_sequence *dyna_at(const struct dyna *dyna, size_t index) {
  return &dyna->entries[index].sequence;
}

// Shape and kind of one data set.
struct shape {
  int rank;
  hsize_t size[3];
  H5T_class_t kind;
  bool elsewhere; // its values lie in other files, which are not opened
};

static bool refers_elsewhere(hid_t data) {
  hid_t plist = H5Dget_create_plist(data);
  if (plist < 0)
    return false;
  bool elsewhere = H5Pget_external_count(plist) > 0 || H5Pget_layout(plist) == H5D_VIRTUAL;
  H5Pclose(plist);
  return elsewhere;
}

static int read_shape(hid_t data, struct shape *shape) {
  hid_t space = H5Dget_space(data), type = H5Dget_type(data);
  int result = -1;
  shape->elsewhere = refers_elsewhere(data);
  if (space >= 0 && type >= 0) {
    shape->rank = H5Sget_simple_extent_ndims(space);
    shape->kind = H5Tget_class(type);
    result = shape->rank < 0 ? -1 : 0;
    if (shape->rank > 0 && shape->rank <= 3)
      H5Sget_simple_extent_dims(space, shape->size, NULL);
  }
  if (type >= 0)
    H5Tclose(type);
  if (space >= 0)
    H5Sclose(space);
  return result;
}

static int open_file(struct dyna *dyna, size_t index, struct dsnet_error *error) {
  if (dyna->open_file >= 0 && dyna->open_index == index)
    return 0;
  if (dyna->open_file >= 0)
    H5Fclose(dyna->open_file);
  const char *path = dyna->files[index];
  dyna->open_file = -1;
  if (access(path, R_OK) < 0)
    return dsnet_error_set(error, DSNET_EIO, "%s: cannot be read", path);
  if (H5Fis_hdf5(path) <= 0)
    return dsnet_error_set(error, DSNET_EFORMAT, "%s: not an HDF5 file", path);
  hid_t access_list = H5Pcreate(H5P_FILE_ACCESS);
  if (access_list >= 0) {
    H5Pset_cache(access_list, 0, CHUNK_CACHE_SLOTS, CHUNK_CACHE_BYTES, 0.75);
    dyna->open_file = H5Fopen(path, H5F_ACC_RDONLY, access_list);
    H5Pclose(access_list);
  }
  if (dyna->open_file < 0)
    return dsnet_error_set(error, DSNET_EFORMAT,
                           "%s: truncated, damaged, or still open for writing", path);
  dyna->open_index = index;
  return 0;
}

static int check_triangles(const uint32_t *triangles, size_t faces, size_t vertices,
                           const char *path, struct dsnet_error *error) {
  for (size_t i = 0; i < faces * 3; i++)
    if (triangles[i] >= vertices)
      return dsnet_error_set(error, DSNET_EVALUE, "%s: faces: index %u of %zu vertices", path,
                             triangles[i], vertices);
  return 0;
}

static int read_triangles(struct dyna *dyna, const char *path, struct dsnet_error *error) {
  uint32_t *triangles = NULL;
  struct shape shape = {0};
  int result = 0;
  hid_t data = H5Dopen2(dyna->open_file, "faces", H5P_DEFAULT);
  if (data < 0 || read_shape(data, &shape) < 0) {
    result = dsnet_error_set(error, DSNET_EMISSING, "%s: no data set \"faces\"", path);
    goto done;
  }
  if (shape.elsewhere || shape.rank != 2 || shape.size[1] != 3 || !shape.size[0] ||
      shape.kind != H5T_INTEGER) {
    result = dsnet_error_set(error, DSNET_EFORMAT, "%s: faces is not [F][3] of integers", path);
    goto done;
  }
  if (shape.size[0] > FACES_MAX) {
    result = dsnet_error_set(error, DSNET_ELIMIT, "%s: more than %d faces", path, FACES_MAX);
    goto done;
  }
  size_t faces = shape.size[0];
  triangles = memory_alloc(faces * 3, sizeof *triangles);
  if (!triangles) {
    result = dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
    goto done;
  }
  if (H5Dread(data, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, triangles) < 0) {
    result = dsnet_error_set(error, DSNET_EFORMAT, "%s: faces cannot be read", path);
    goto done;
  }
  if (!dyna->triangles) {
    dyna->triangles = triangles;
    dyna->faces = faces;
    triangles = NULL;
  } else if (dyna->faces != faces ||
             memcmp(dyna->triangles, triangles, faces * 3 * sizeof *triangles) != 0) {
    result = dsnet_error_set(error, DSNET_EMISMATCH, "%s: faces differ from those of %s", path,
                             dyna->files[0]);
  }
done:
  free(triangles);
  if (data >= 0)
    H5Dclose(data);
  return result;
}

static void split_name(struct dyna_sequence *sequence, const char *name) {
  snprintf(sequence->name, sizeof sequence->name, "%s", name);
  snprintf(sequence->subject, sizeof sequence->subject, "%s", name);
  char *underscore = strchr(sequence->subject, '_');
  if (underscore) {
    *underscore = 0;
    snprintf(sequence->motion, sizeof sequence->motion, "%s", strchr(sequence->name, '_') + 1);
  }
}

// The npz beside the file. Only looked up here; loading it is the caller's.
static char *clip_path(const char *file, const char *name) {
  const char *slash = strrchr(file, '/');
  int folder = slash ? (int)(slash - file) + 1 : 0;
  char *plain = NULL, *amass = NULL;
  if (asprintf(&plain, "%.*s%s.npz", folder, file, name) < 0)
    return NULL;
  if (access(plain, F_OK) == 0 || asprintf(&amass, "%.*s%s_poses.npz", folder, file, name) < 0)
    return plain;
  if (access(amass, F_OK) == 0) {
    free(plain);
    return amass;
  }
  free(amass);
  return plain;
}

static int new_entry(struct dyna *dyna, const char *path, struct entry **out,
                     struct dsnet_error *error) {
  if (dyna->count == SEQUENCES_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "%s: more than %d sequences", path, SEQUENCES_MAX);
  if (dyna->count == dyna->capacity) {
    size_t capacity = dyna->capacity ? dyna->capacity * 2 : 16;
    struct entry *entries = realloc(dyna->entries, capacity * sizeof *entries);
    if (!entries)
      return dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
    dyna->entries = entries;
    dyna->capacity = capacity;
  }
  *out = &dyna->entries[dyna->count];
  memset(*out, 0, sizeof **out);
  return 0;
}

static int check_sequence(struct dyna *dyna, const char *path, const char *name,
                          const struct shape *shape, struct dsnet_error *error) {
  if (shape->elsewhere)
    return dsnet_error_set(error, DSNET_EUNSUPPORTED, "%s: %s lies in other files", path, name);
  if (shape->rank != 3 || shape->size[1] != 3 || shape->kind != H5T_FLOAT)
    return dsnet_error_set(error, DSNET_EFORMAT, "%s: %s is not [V][3][T] of floats", path, name);
  if (!shape->size[0] || !shape->size[2])
    return dsnet_error_set(error, DSNET_EVALUE, "%s: %s is empty", path, name);
  if (shape->size[0] > VERTICES_MAX || shape->size[2] > FRAMES_MAX)
    return dsnet_error_set(error, DSNET_ELIMIT, "%s: %s: over %d vertices or %d frames", path, name,
                           VERTICES_MAX, FRAMES_MAX);
  if (dyna->vertices && dyna->vertices != shape->size[0])
    return dsnet_error_set(error, DSNET_EMISMATCH, "%s: %s has %zu vertices, others have %zu", path,
                           name, (size_t)shape->size[0], dyna->vertices);
  for (size_t i = 0; i < dyna->count; i++)
    if (!strcmp(dyna->entries[i].sequence.name, name))
      return dsnet_error_set(error, DSNET_EMISMATCH, "%s: %s is also in %s", path, name,
                             dyna->files[dyna->entries[i].file]);
  return 0;
}

static int add_sequence(struct dyna *dyna, size_t file, const char *name,
                        struct dsnet_error *error) {
  const char *path = dyna->files[file];
  if (strlen(name) >= DYNA_NAME_SIZE || strchr(name, '/'))
    return dsnet_error_set(error, DSNET_EFORMAT, "%s: a sequence's name is too long", path);
  struct shape shape = {0};
  hid_t data = H5Dopen2(dyna->open_file, name, H5P_DEFAULT);
  int readable = data < 0 ? -1 : read_shape(data, &shape);
  if (data >= 0)
    H5Dclose(data);
  if (readable < 0)
    return dsnet_error_set(error, DSNET_EFORMAT, "%s: %s cannot be read", path, name);
  int result = check_sequence(dyna, path, name, &shape, error);
  if (result < 0)
    return result;
  struct entry *entry = NULL;
  result = new_entry(dyna, path, &entry, error);
  if (result < 0)
    return result;
  split_name(&entry->sequence, name);
  entry->file = file;
  entry->sequence.frames = shape.size[2];
  entry->sequence.clip = clip_path(path, name);
  if (!entry->sequence.clip)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  dyna->vertices = shape.size[0];
  dyna->count++;
  return 0;
}

// One link of a file's root.
struct visit {
  struct dyna *dyna;
  size_t file;
  struct dsnet_error *error;
  int result;
};

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *info, void *context) {
  struct visit *visit = context;
  const char *path = visit->dyna->files[visit->file];
  if (info->type != H5L_TYPE_HARD) {
    visit->result = dsnet_error_set(visit->error, DSNET_EUNSUPPORTED,
                                    "%s: %.64s is a link, which is not followed", path, name);
    return -1;
  }
  H5O_info_t object;
  if (H5Oget_info_by_name2(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
    visit->result =
        dsnet_error_set(visit->error, DSNET_EFORMAT, "%s: %.64s cannot be read", path, name);
    return -1;
  }
  if (object.type != H5O_TYPE_DATASET || !strcmp(name, "faces"))
    return 0;
  visit->result = add_sequence(visit->dyna, visit->file, name, visit->error);
  return visit->result < 0 ? -1 : 0;
}

static int scan_file(struct dyna *dyna, size_t file, struct dsnet_error *error) {
  int result = open_file(dyna, file, error);
  if (result < 0)
    return result;
  const char *path = dyna->files[file];
  result = read_triangles(dyna, path, error);
  if (result < 0)
    return result;
  size_t before = dyna->count;
  struct visit visit = {dyna, file, error, 0};
  if (H5Literate(dyna->open_file, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_link, &visit) < 0)
    return visit.result < 0 ? visit.result
                            : dsnet_error_set(error, DSNET_EFORMAT, "%s: cannot be listed", path);
  if (dyna->count == before)
    return dsnet_error_set(error, DSNET_EMISSING, "%s: no sequence", path);
  return check_triangles(dyna->triangles, dyna->faces, dyna->vertices, path, error);
}

static int is_hdf5_name(const struct dirent *item) {
  const char *dot = strrchr(item->d_name, '.');
  return item->d_name[0] != '.' && dot && (!strcmp(dot, ".h5") || !strcmp(dot, ".hdf5"));
}

static int list_folder(struct dyna *dyna, const char *path, struct dsnet_error *error) {
  struct dirent **items = NULL;
  int count = scandir(path, &items, is_hdf5_name, alphasort);
  if (count < 0)
    return dsnet_error_set(error, DSNET_EIO, "%s: cannot be listed", path);
  int result = 0;
  dyna->files = calloc((size_t)count + 1, sizeof *dyna->files);
  for (int i = 0; i < count; i++) {
    if (dyna->files &&
        asprintf(&dyna->files[dyna->file_count], "%s/%s", path, items[i]->d_name) > 0)
      dyna->file_count++;
    free(items[i]);
  }
  free(items);
  if (dyna->file_count != (size_t)count)
    result = dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
  else if (!count)
    result = dsnet_error_set(error, DSNET_EMISSING, "%s: no *.h5 or *.hdf5 file in it", path);
  return result;
}

static int list_files(struct dyna *dyna, const char *path, struct dsnet_error *error) {
  struct stat status;
  if (stat(path, &status) < 0)
    return dsnet_error_set(error, DSNET_EIO, "%s: no such file or folder", path);
  if (S_ISDIR(status.st_mode))
    return list_folder(dyna, path, error);
  dyna->files = calloc(1, sizeof *dyna->files);
  if (!dyna->files || !(dyna->files[0] = strdup(path)))
    return dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
  dyna->file_count = 1;
  return 0;
}

int dyna_open(struct dyna **out, const char *path, struct dsnet_error *error) {
  *out = NULL;
  struct dyna *dyna = calloc(1, sizeof *dyna);
  if (!dyna)
    return dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
  dyna->open_file = -1;
  int result = list_files(dyna, path, error);
  dyna_lock();
  for (size_t i = 0; result == 0 && i < dyna->file_count; i++)
    result = scan_file(dyna, i, error);
  dyna_unlock();
  if (result < 0)
    goto fail;
  dyna->buffer = memory_alloc(dyna->vertices * 3 * DYNA_CHUNK_FRAMES, sizeof *dyna->buffer);
  if (!dyna->buffer) {
    result = dsnet_error_set(error, DSNET_ENOMEM, "%s: out of memory", path);
    goto fail;
  }
  *out = dyna;
  return 0;
fail:
  dyna_close(dyna);
  return result;
}

void dyna_close(struct dyna *dyna) {
  if (!dyna)
    return;
  if (dyna->open_file >= 0) {
    dyna_lock();
    H5Fclose(dyna->open_file);
    dyna_unlock();
  }
  for (size_t i = 0; i < dyna->count; i++)
    free((char *)dyna->entries[i].sequence.clip);
  for (size_t i = 0; i < dyna->file_count; i++)
    free(dyna->files[i]);
  free(dyna->files);
  free(dyna->entries);
  free(dyna->triangles);
  free(dyna->buffer);
  free(dyna);
}

// Up to DYNA_CHUNK_FRAMES frames into the buffer as [V][3][DYNA_CHUNK_FRAMES].
static int read_piece(struct dyna *dyna, hid_t data, size_t first, size_t count) {
  hsize_t start[3] = {0, 0, first}, size[3] = {dyna->vertices, 3, count}, zero[3] = {0, 0, 0};
  hsize_t memory_shape[3] = {dyna->vertices, 3, DYNA_CHUNK_FRAMES};
  hid_t space = H5Dget_space(data), memory = H5Screate_simple(3, memory_shape, NULL);
  herr_t result = -1;
  if (space >= 0 && memory >= 0 &&
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL) >= 0 &&
      H5Sselect_hyperslab(memory, H5S_SELECT_SET, zero, NULL, size, NULL) >= 0)
    result = H5Dread(data, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, dyna->buffer);
  if (memory >= 0)
    H5Sclose(memory);
  if (space >= 0)
    H5Sclose(space);
  return result < 0 ? -1 : 0;
}

// The buffer's frame as [V][3]; false when a value is not finite.
static bool copy_frame(const struct dyna *dyna, size_t frame, float *posed) {
  float sum = 0;
  for (size_t i = 0; i < dyna->vertices * 3; i++) {
    posed[i] = dyna->buffer[i * DYNA_CHUNK_FRAMES + frame];
    sum += 0 * posed[i];
  }
  return isfinite(sum);
}

static int read_range(struct dyna *dyna, hid_t data, const struct entry *entry, size_t first,
                      size_t count, float *posed, struct dsnet_error *error) {
  const char *path = dyna->files[entry->file], *name = entry->sequence.name;
  for (size_t done = 0; done < count;) {
    // Pieces end on the stored chunks' borders, so that no chunk is read twice.
    size_t piece = DYNA_CHUNK_FRAMES - (first + done) % DYNA_CHUNK_FRAMES;
    if (piece > count - done)
      piece = count - done;
    if (read_piece(dyna, data, first + done, piece) < 0)
      return dsnet_error_set(error, DSNET_EFORMAT, "%s: %s: frames %zu to %zu cannot be read", path,
                             name, first + done, first + done + piece - 1);
    for (size_t f = 0; f < piece; f++, done++)
      if (!copy_frame(dyna, f, posed + done * dyna->vertices * 3))
        return dsnet_error_set(error, DSNET_EVALUE, "%s: %s: frame %zu is not finite", path, name,
                               first + done);
  }
  return 0;
}

int dyna_read(struct dyna *dyna, size_t index, size_t first, size_t count, float *posed,
              struct dsnet_error *error) {
  const struct entry *entry = &dyna->entries[index];
  size_t frames = entry->sequence.frames;
  if (first > frames || count > frames - first)
    return dsnet_error_set(error, DSNET_EVALUE, "%s: %s has %zu frames", dyna->files[entry->file],
                           entry->sequence.name, frames);
  dyna_lock();
  int result = open_file(dyna, entry->file, error);
  if (result == 0) {
    struct shape shape = {0};
    hid_t data = H5Dopen2(dyna->open_file, entry->sequence.name, H5P_DEFAULT);
    // The file may have been replaced since it was scanned.
    if (data < 0 || read_shape(data, &shape) < 0 || shape.rank != 3 ||
        shape.size[0] != dyna->vertices || shape.size[1] != 3 || shape.size[2] != frames)
      result = dsnet_error_set(error, DSNET_EFORMAT, "%s: %s has changed since it was opened",
                               dyna->files[entry->file], entry->sequence.name);
    else
      result = read_range(dyna, data, entry, first, count, posed, error);
    if (data >= 0)
      H5Dclose(data);
  }
  dyna_unlock();
  return result;
}
