// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/npz.h"

#define RECORD_FIELDS (sizeof(struct epoch_record) / sizeof(double))

// Order of the array "counts".
enum { COUNT_UPDATES, COUNT_EPOCH, COUNT_BEST, COUNT_SEED, COUNTS };

static int add_floats(struct npz_writer *writer, const char *name, const float *data, size_t count,
                      struct dsnet_error *error) {
  return npz_writer_add(writer, name, "<f4", 1, &count, data, error);
}

int checkpoint_save(const struct trainer *trainer, const char *path, struct dsnet_error *error) {
  size_t total = trainer->layout.total, counts_size = COUNTS;
  size_t records[2] = {trainer->epoch, RECORD_FIELDS};
  int64_t counts[COUNTS] = {(int64_t)trainer->updates, (int64_t)trainer->epoch,
                            (int64_t)trainer->best_epoch, (int64_t)trainer->options.seed};
  struct npz_writer *writer;
  int result = npz_writer_open(&writer, path, false, error);
  if (result < 0)
    return result;
  if (result == 0)
    result = npz_writer_add(writer, "counts", "<i8", 1, &counts_size, counts, error);
  if (result == 0)
    result = npz_writer_add(writer, "records", "<f8", 2, records, trainer->records, error);
  if (result == 0)
    result = add_floats(writer, "mean", trainer->mean, trainer->layout.inputs, error);
  if (result == 0)
    result = add_floats(writer, "weights", trainer->weights, total, error);
  if (result == 0)
    result = add_floats(writer, "best", trainer->best, total, error);
  if (result == 0)
    result = add_floats(writer, "m", trainer->m, total, error);
  if (result == 0)
    result = add_floats(writer, "v", trainer->v, total, error);
  if (result < 0) {
    npz_writer_abort(writer);
    return result;
  }
  return npz_writer_close(writer, error);
}

// Reads an array that must have `count` floats into a place that has room for them.
static int read_floats(struct npz *npz, const char *name, size_t count, float *out,
                       struct dsnet_error *error) {
  float *data;
  struct npy_info info;
  int result = npz_read_f32(npz, name, count, &data, &info, error);
  if (result < 0)
    return result;
  if (info.count == count)
    memcpy(out, data, count * sizeof *out);
  else
    result = dsnet_error_set(error, DSNET_EMISMATCH, "%s: %zu numbers instead of %zu", name,
                             info.count, count);
  free(data);
  return result;
}

static int read_counts(struct trainer *trainer, struct npz *npz, struct dsnet_error *error) {
  int64_t *counts;
  struct npy_info info;
  int result = npz_read_i64(npz, "counts", COUNTS, &counts, &info, error);
  if (result < 0)
    return result;
  if (info.count != COUNTS || counts[COUNT_UPDATES] < 0 || counts[COUNT_EPOCH] < 0 ||
      counts[COUNT_BEST] < 0 || counts[COUNT_BEST] > counts[COUNT_EPOCH])
    result = dsnet_error_set(error, DSNET_EVALUE, "counts: not those of a training run");
  else if (counts[COUNT_SEED] != (int64_t)trainer->options.seed)
    result = dsnet_error_set(error, DSNET_EMISMATCH, "the run's seed is %lld",
                             (long long)counts[COUNT_SEED]);
  else if ((size_t)counts[COUNT_EPOCH] > trainer->options.epochs)
    result = dsnet_error_set(error, DSNET_EMISMATCH, "the run has %lld epochs already",
                             (long long)counts[COUNT_EPOCH]);
  if (result == 0) {
    trainer->updates = (uint64_t)counts[COUNT_UPDATES];
    trainer->epoch = (size_t)counts[COUNT_EPOCH];
    trainer->best_epoch = (size_t)counts[COUNT_BEST];
  }
  free(counts);
  return result;
}

static int read_records(struct trainer *trainer, struct npz *npz, struct dsnet_error *error) {
  double *records;
  struct npy_info info;
  size_t wanted = trainer->epoch * RECORD_FIELDS;
  int result = npz_read_f64(npz, "records", wanted, &records, &info, error);
  if (result < 0)
    return result;
  if (info.count == wanted)
    memcpy(trainer->records, records, wanted * sizeof *records);
  else
    result = dsnet_error_set(error, DSNET_EMISMATCH, "records: not one an epoch");
  free(records);
  return result;
}

// The normalisation is computed from the data, so it tells whether these are the same.
static int check_data(const struct trainer *trainer, struct npz *npz, struct dsnet_error *error) {
  size_t inputs = trainer->layout.inputs;
  float *mean = calloc(inputs, sizeof *mean);
  if (!mean)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = read_floats(npz, "mean", inputs, mean, error);
  if (result == 0 && memcmp(mean, trainer->mean, inputs * sizeof *mean) != 0)
    result = dsnet_error_set(error, DSNET_EMISMATCH, "the run was on other data or features");
  free(mean);
  return result;
}

int checkpoint_load(struct trainer *trainer, const char *path, struct dsnet_error *error) {
  struct npz *npz;
  size_t total = trainer->layout.total;
  int result = npz_open(&npz, path, error);
  if (result < 0)
    return result;
  result = check_data(trainer, npz, error);
  if (result == 0)
    result = read_counts(trainer, npz, error);
  if (result == 0)
    result = read_records(trainer, npz, error);
  if (result == 0)
    result = read_floats(npz, "weights", total, trainer->weights, error);
  if (result == 0)
    result = read_floats(npz, "best", total, trainer->best, error);
  if (result == 0)
    result = read_floats(npz, "m", total, trainer->m, error);
  if (result == 0)
    result = read_floats(npz, "v", total, trainer->v, error);
  npz_close(npz);
  if (result < 0)
    dsnet_error_prefix(error, "%s", path);
  return result;
}
