// SPDX-License-Identifier: Apache-2.0
// io/npz: archives that lie, are cut off or damaged; what the writer promises.
#include "io/npz.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "archive.h"
#include "io/file.h"

#define F4_2X3 "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"

static const float six[6] = {0, 1, 2, 3, 4, 5};
static struct archive archive;

static int reset_archive(void **state) {
  (void)state;
  archive.size = archive.count = 0;
  return 0;
}

// Opens the bytes and reads array "a"; the code of the first thing that failed.
static int read_a(const void *bytes, size_t size, float **data, struct dsnet_error *error) {
  struct npz *npz;
  *data = NULL;
  memset(error, 0, sizeof *error);
  int result = npz_open_memory(&npz, bytes, size, error);
  if (result < 0)
    return result;
  result = npz_read_f32(npz, "a", 1000, data, NULL, error);
  npz_close(npz);
  return result;
}

static void expect_a(int code, const char *mentions) {
  float *data;
  struct dsnet_error error;
  int result = read_a(archive.bytes, archive.size, &data, &error);
  if (result != code || !strstr(error.text, mentions))
    fail_msg("got %d \"%s\", expected %d \"%s\"", result, error.text, code, mentions);
  if (result == 0)
    assert_memory_equal(data, six, sizeof six);
  free(data);
}

static void stored_and_deflated_entries_are_read(void **state) {
  (void)state;
  for (int method = 0; method <= 8; method += 8) {
    archive.size = archive.count = 0;
    archive_add_npy(&archive, "a.npy", method, F4_2X3, six, sizeof six);
    archive_finish(&archive);
    expect_a(0, "");
  }
}

static void entries_that_are_no_arrays_are_passed_over(void **state) {
  (void)state;
  archive_add(&archive, "../../etc/passwd", 0, "x", 1);
  archive_add(&archive, "folder/", 0, "", 0);
  archive_add(&archive, ".npy", 0, "", 0);
  archive_add(&archive, "damaged.npy", 0, "not npy", 7);
  archive_add_npy(&archive, "a.npy", 0, F4_2X3, six, sizeof six);
  archive.entries[0].method = 99;
  archive_finish(&archive);
  struct npz *npz;
  struct dsnet_error error = {0};
  zip_put16(archive.bytes + 8, 99);
  assert_int_equal(npz_open_memory(&npz, archive.bytes, archive.size, &error), 0);
  assert_int_equal(npz_count(npz), 2);
  assert_string_equal(npz_name(npz, 0), "damaged");
  assert_string_equal(npz_name(npz, 1), "a");
  assert_null(npz_name(npz, 2));
  assert_true(npz_has(npz, "a"));
  assert_false(npz_has(npz, "a.npy"));
  npz_close(npz);
  expect_a(0, "");
}

static void a_missing_array_is_named(void **state) {
  (void)state;
  archive_add_npy(&archive, "b.npy", 0, F4_2X3, six, sizeof six);
  archive_finish(&archive);
  expect_a(DSNET_EMISSING, "a: ");
}

// A small archive with a stored and a deflated entry and a second array that is not asked for.
static void make_small(void) {
  archive_add_npy(&archive, "a.npy", 8, F4_2X3, six, sizeof six);
  archive_add_npy(&archive, "b.npy", 0, F4_2X3, six, sizeof six);
  archive_finish(&archive);
}

static void truncation_at_every_byte_is_an_error(void **state) {
  (void)state;
  make_small();
  for (size_t size = 0; size < archive.size; size++) {
    uint8_t *exact = malloc(size ? size : 1); // so that a sanitizer sees a read past the end
    float *data;
    struct dsnet_error error;
    memcpy(exact, archive.bytes, size);
    assert_true(read_a(exact, size, &data, &error) < 0);
    assert_true(error.text[0]);
    assert_null(data);
    free(exact);
  }
}

// Whatever is changed, the answer is an error or the right numbers: the CRC covers the data, and
// the directory's copies cover the local header.
static void a_flipped_byte_gives_an_error_or_the_right_numbers(void **state) {
  (void)state;
  make_small();
  uint8_t *bytes = malloc(archive.size);
  size_t refused = 0;
  for (size_t at = 0; at < archive.size; at++)
    for (int mask = 1; mask < 256; mask = mask == 128 ? 255 : mask == 255 ? 256 : mask * 2) {
      float *data;
      struct dsnet_error error;
      memcpy(bytes, archive.bytes, archive.size);
      bytes[at] ^= (uint8_t)mask;
      if (read_a(bytes, archive.size, &data, &error) == 0)
        assert_memory_equal(data, six, sizeof six);
      else
        refused++;
      free(data);
    }
  assert_true(refused > archive.size);
  free(bytes);
}

static void lies_about_sizes_are_refused(void **state) {
  (void)state;
  // Both headers say one byte less, and more, than there is.
  for (int delta = -1; delta <= 1; delta += 2) {
    archive.size = archive.count = 0;
    struct archive_entry *entry = archive_add_npy(&archive, "a.npy", 8, F4_2X3, six, sizeof six);
    entry->size += (uint32_t)delta;
    zip_put32(archive.bytes + 22, entry->size);
    archive_finish(&archive);
    expect_a(DSNET_EFORMAT, "a: holds");
  }
  // The headers disagree.
  reset_archive(NULL);
  archive_add_npy(&archive, "a.npy", 8, F4_2X3, six, sizeof six)->size++;
  archive_finish(&archive);
  expect_a(DSNET_EFORMAT, "contradicts");
  // The member's own header promises more, then fewer, elements than there are.
  reset_archive(NULL);
  archive_add_npy(&archive, "a.npy", 8, F4_2X3, six, sizeof six - 4);
  archive_finish(&archive);
  expect_a(DSNET_EFORMAT, "its header says 24");
  reset_archive(NULL);
  archive_add_npy(&archive, "a.npy", 0, F4_2X3, six, 0);
  archive_finish(&archive);
  expect_a(DSNET_EFORMAT, "holds 0 bytes");
}

// The directory says what the npy header implies, but the deflated stream goes on, or stops short.
static void a_stream_that_does_not_end_where_it_should_is_refused(void **state) {
  (void)state;
  uint8_t member[10 + sizeof F4_2X3 - 1 + sizeof six + 500] = "\x93NUMPY\x01";
  size_t right = sizeof member - 500;
  member[8] = sizeof F4_2X3 - 1;
  memcpy(member + 10, F4_2X3, sizeof F4_2X3 - 1);
  memcpy(member + 10 + sizeof F4_2X3 - 1, six, sizeof six);
  const size_t lengths[] = {right - 1, right, right + 1, right + 500};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    reset_archive(NULL);
    struct archive_entry *entry = archive_add(&archive, "a.npy", 8, member, lengths[i]);
    entry->size = (uint32_t)right;
    entry->crc = (uint32_t)crc32(0, member, (unsigned)right);
    zip_put32(archive.bytes + 14, entry->crc);
    zip_put32(archive.bytes + 22, entry->size);
    archive_finish(&archive);
    if (lengths[i] == right)
      expect_a(0, "");
    else
      expect_a(DSNET_EFORMAT, lengths[i] < right ? "fewer bytes" : "more bytes");
  }
}

static void a_wrong_checksum_is_refused(void **state) {
  (void)state;
  for (int method = 0; method <= 8; method += 8) {
    reset_archive(NULL);
    struct archive_entry *entry =
        archive_add_npy(&archive, "a.npy", method, F4_2X3, six, sizeof six);
    entry->crc ^= 1;
    zip_put32(archive.bytes + 14, entry->crc);
    archive_finish(&archive);
    expect_a(DSNET_EFORMAT, "CRC");
  }
}

static void an_array_that_cannot_fit_is_refused_before_memory_is_asked_for(void **state) {
  (void)state;
  static const struct {
    const char *shape;
    uint32_t size; // that the zip headers claim
    int code;
    const char *mentions;
  } cases[] = {
      // More than deflate can hold in so few bytes, whatever the caller's limit.
      {"(1000000000,)", 4000000000u, DSNET_EFORMAT, "cannot hold"},
      {"(4611686018427387904, 2)", 100, DSNET_EFORMAT, "larger than memory"},
      {"(4294967296, 4294967296)", 100, DSNET_EFORMAT, "larger than memory"},
      {"(99999999999999999999999999,)", 100, DSNET_EFORMAT, "malformed"},
      {"(0, 18446744073709551615, 2)", 0, 0, ""},
      {"(3000,)", 12000, DSNET_ELIMIT, "more than 1000"},
  };
  static const uint8_t zeros[12000];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char header[200];
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\n",
             cases[i].shape);
    reset_archive(NULL);
    size_t data = cases[i].size < sizeof zeros ? cases[i].size : sizeof zeros;
    struct archive_entry *entry = archive_add_npy(&archive, "a.npy", 8, header, zeros, data);
    entry->size += cases[i].size - (uint32_t)data;
    zip_put32(archive.bytes + 22, entry->size);
    archive_finish(&archive);
    float *result;
    struct dsnet_error error;
    int code = read_a(archive.bytes, archive.size, &result, &error);
    if (code != cases[i].code || !strstr(error.text, cases[i].mentions))
      fail_msg("%s: got %d \"%s\"", cases[i].shape, code, error.text);
    free(result);
  }
}

static void entries_that_share_bytes_are_refused(void **state) {
  (void)state;
  // The data of the first entry holds a whole second one, which the directory lists too.
  static struct archive inner;
  inner.size = inner.count = 0;
  archive_add_npy(&inner, "b.npy", 0, F4_2X3, six, sizeof six);
  archive_add(&archive, "a.npy", 0, inner.bytes, inner.size);
  archive.entries[1] = inner.entries[0];
  archive.entries[1].header = ZIP_LOCAL_SIZE + 5;
  archive.count = 2;
  archive_finish(&archive);
  expect_a(DSNET_EFORMAT, "overlap");
}

static void two_entries_of_one_name_are_refused(void **state) {
  (void)state;
  archive_add_npy(&archive, "a.npy", 0, F4_2X3, six, sizeof six);
  archive_add_npy(&archive, "a.npy", 0, F4_2X3, six, sizeof six);
  archive_finish(&archive);
  expect_a(DSNET_EFORMAT, "one name");
}

static void encryption_and_other_methods_are_refused(void **state) {
  (void)state;
  struct archive_entry entry = {.name = "a.npy", .flags = 1};
  archive_header(&archive, entry);
  archive_finish(&archive);
  expect_a(DSNET_EUNSUPPORTED, "encrypted");
  reset_archive(NULL);
  entry.flags = 0;
  entry.method = 93;
  archive_header(&archive, entry);
  archive_finish(&archive);
  expect_a(DSNET_EUNSUPPORTED, "method 93");
}

static void a_directory_that_is_wrong_about_itself_is_refused(void **state) {
  (void)state;
  static const struct {
    int end_offset; // of the field in the end record
    int width, delta;
    int code;
  } cases[] = {
      {8, 2, 1, DSNET_EUNSUPPORTED}, // fewer entries on this disk than in all
      {4, 2, 1, DSNET_EUNSUPPORTED}, // another disk
      {12, 4, 1, DSNET_EFORMAT},     // longer than it is
      {12, 4, -1, DSNET_EFORMAT},    // shorter
      {16, 4, 1, DSNET_EFORMAT},     // elsewhere
      {16, 4, 1 << 30, DSNET_EFORMAT}, {20, 2, 1, DSNET_EFORMAT}, // a comment that is not there
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reset_archive(NULL);
    make_small();
    uint8_t *field = archive.bytes + archive.size - ZIP_END_SIZE + cases[i].end_offset;
    if (cases[i].width == 2)
      zip_put16(field, (uint32_t)(zip_get16(field) + cases[i].delta));
    else
      zip_put32(field, zip_get32(field) + (uint32_t)cases[i].delta);
    expect_a(cases[i].code, "");
  }
}

static void a_comment_may_hold_an_end_record(void **state) {
  (void)state;
  make_small();
  uint8_t comment[ZIP_END_SIZE + 7] = "PK\x05\x06 not it";
  zip_put16(archive.bytes + archive.size - 2, sizeof comment);
  archive_put(&archive, comment, sizeof comment);
  expect_a(0, "");
}

// The same archive with every number in its zip64 place.
static void zip64_records_are_read(void **state) {
  (void)state;
  uint8_t end64[ZIP_END64_SIZE] = {0}, locator[ZIP_LOCATOR64_SIZE] = {0}, end[ZIP_END_SIZE] = {0};
  uint8_t central[ZIP_CENTRAL_SIZE + 5 + 28] = {0};
  archive_add_npy(&archive, "a.npy", 8, F4_2X3, six, sizeof six);
  const struct archive_entry *entry = &archive.entries[0];
  uint64_t directory = archive.size;
  zip_put32(central, ZIP_CENTRAL_SIGNATURE);
  zip_put16(central + 10, 8);
  zip_put32(central + 16, entry->crc);
  memset(central + 20, 0xff, 8);
  zip_put16(central + 28, 5);
  zip_put16(central + 30, 28);
  memset(central + 42, 0xff, 4);
  memcpy(central + 46, "a.npy", 5);
  zip_put16(zip_put16(central + 51, 1), 24);
  zip_put64(zip_put64(zip_put64(central + 55, entry->size), entry->compressed), entry->header);
  archive_put(&archive, central, sizeof central);
  zip_put64(zip_put32(end64, ZIP_END64_SIGNATURE), ZIP_END64_SIZE - 12);
  zip_put64(end64 + 24, 1);
  zip_put64(end64 + 32, 1);
  zip_put64(end64 + 40, sizeof central);
  zip_put64(end64 + 48, directory);
  zip_put32(locator, ZIP_LOCATOR64_SIGNATURE);
  zip_put64(locator + 8, archive.size);
  zip_put32(locator + 16, 1);
  zip_put32(end, ZIP_END_SIGNATURE);
  memset(end + 8, 0xff, 12);
  size_t extra = directory + 51, end_at = archive.size;
  archive_put(&archive, end64, sizeof end64);
  archive_put(&archive, locator, sizeof locator);
  archive_put(&archive, end, sizeof end);
  expect_a(0, "");
  // Each number made absurd.
  const size_t numbers[] = {extra + 4,
                            extra + 12,
                            extra + 20,
                            end_at + 32,
                            end_at + 40,
                            end_at + 48,
                            end_at + ZIP_END64_SIZE + 8};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    static struct archive valid;
    valid = archive;
    memset(archive.bytes + numbers[i], 0xff, 8);
    float *data;
    struct dsnet_error error;
    assert_true(read_a(archive.bytes, archive.size, &data, &error) < 0);
    archive = valid;
  }
  // An extra field too short for what it has to hold.
  zip_put16(archive.bytes + extra + 2, 20);
  expect_a(DSNET_EFORMAT, "extra field");
}

static char *temporary_path(const char *name) {
  static char path[200];
  snprintf(path, sizeof path, "/tmp/dsnet-test-npz-%d-%s", (int)getpid(), name);
  return path;
}

static uint8_t *slurp(const char *path, size_t *size) {
  uint8_t *bytes;
  struct dsnet_error error = {0};
  assert_int_equal(file_read(path, 1 << 20, &bytes, size, &error), 0);
  return bytes;
}

static void write_some(const char *path, bool deflate) {
  struct npz_writer *writer;
  struct dsnet_error error = {0};
  const int64_t integers[] = {INT64_MIN, -1, INT64_MAX};
  const uint8_t flags[] = {1, 0};
  assert_int_equal(npz_writer_open(&writer, path, deflate, &error), 0);
  npz_writer_add(writer, "a", "<f4", 2, (const size_t[]){2, 3}, six, &error);
  npz_writer_add(writer, "scalar", "<f8", 0, NULL, &(double){120.5}, &error);
  npz_writer_add(writer, "integers", "<i8", 1, (const size_t[]){3}, integers, &error);
  npz_writer_add(writer, "flags", "|b1", 1, (const size_t[]){2}, flags, &error);
  npz_writer_add(writer, "empty", "<f4", 2, (const size_t[]){0, 7}, NULL, &error);
  npz_writer_add_text(writer, "text", "na\xc3\xafve \xf0\x9d\x84\x9e", &error);
  npz_writer_add_text(writer, "nothing", "", &error);
  npz_writer_begin(writer, "pieces", "<f4", 1, (const size_t[]){6}, &error);
  for (int i = 0; i < 24; i += 5)
    npz_writer_append(writer, (const char *)six + i, i + 5 < 24 ? 5 : 24 - (size_t)i, &error);
  npz_writer_end(writer, &error);
  assert_int_equal(npz_writer_close(writer, &error), 0);
}

static void what_is_written_is_read_back(void **state) {
  (void)state;
  for (int deflate = 0; deflate < 2; deflate++) {
    char *path = temporary_path("back.npz");
    write_some(path, deflate);
    struct npz *npz;
    struct dsnet_error error = {0};
    struct npy_info info;
    float *pieces, *empty;
    double *scalar;
    int64_t *integers, *flags;
    char text[32];
    assert_int_equal(npz_open(&npz, path, &error), 0);
    assert_int_equal(npz_count(npz), 8);
    assert_int_equal(npz_read_f32(npz, "pieces", 6, &pieces, &info, &error), 0);
    assert_memory_equal(pieces, six, sizeof six);
    assert_int_equal(npz_read_f64(npz, "scalar", 1, &scalar, &info, &error), 0);
    assert_true(scalar[0] == 120.5 && info.dimensions == 0 && info.count == 1);
    assert_int_equal(npz_read_i64(npz, "integers", 3, &integers, NULL, &error), 0);
    assert_true(integers[0] == INT64_MIN && integers[1] == -1 && integers[2] == INT64_MAX);
    assert_int_equal(npz_read_i64(npz, "flags", 2, &flags, NULL, &error), 0);
    assert_true(flags[0] == 1 && flags[1] == 0);
    assert_int_equal(npz_read_f32(npz, "empty", 0, &empty, &info, &error), 0);
    assert_true(info.dimensions == 2 && info.shape[0] == 0 && info.shape[1] == 7);
    assert_int_equal(npz_read_text(npz, "text", text, sizeof text, &error), 0);
    assert_string_equal(text, "na\xc3\xafve \xf0\x9d\x84\x9e");
    assert_int_equal(npz_read_text(npz, "nothing", text, sizeof text, &error), 0);
    assert_string_equal(text, "");
    npz_close(npz);
    free(pieces);
    free(scalar);
    free(integers);
    free(flags);
    free(empty);
    unlink(path);
  }
}

static void the_same_arrays_give_the_same_bytes(void **state) {
  (void)state;
  size_t first_size, second_size;
  char *path = temporary_path("same.npz");
  write_some(path, true);
  uint8_t *first = slurp(path, &first_size);
  write_some(path, true);
  uint8_t *second = slurp(path, &second_size);
  assert_int_equal(first_size, second_size);
  assert_memory_equal(first, second, first_size);
  free(first);
  free(second);
  unlink(path);
}

static void wrong_use_of_the_writer_leaves_the_file_as_it_was(void **state) {
  (void)state;
  char *path = temporary_path("kept.npz");
  struct dsnet_error error = {0};
  assert_int_equal(file_write(path, "before", 6, &error), 0);
  for (int mistake = 0; mistake < 8; mistake++) {
    struct npz_writer *writer;
    const size_t shape[NPY_DIMENSIONS_MAX + 1] = {6};
    memset(&error, 0, sizeof error);
    assert_int_equal(npz_writer_open(&writer, path, true, &error), 0);
    npz_writer_add(writer, "first", "<f4", 1, shape, six, &error);
    switch (mistake) {
    case 0:
      npz_writer_begin(writer, "a", "<f4", 1, shape, NULL);
      npz_writer_append(writer, six, 23, NULL);
      assert_int_equal(npz_writer_end(writer, NULL), DSNET_EMISMATCH);
      break;
    case 1:
      npz_writer_begin(writer, "a", "<f4", 1, shape, NULL);
      assert_int_equal(npz_writer_append(writer, six, 25, NULL), DSNET_EMISMATCH);
      break;
    case 2:
      npz_writer_begin(writer, "a", "<f4", 1, shape, NULL); // never ended
      break;
    case 3:
      assert_int_equal(npz_writer_append(writer, six, 1, NULL), DSNET_EUSAGE);
      break;
    case 4:
      assert_int_equal(npz_writer_add(writer, "first", "<f4", 1, shape, six, NULL), DSNET_EUSAGE);
      break;
    case 5:
      assert_int_equal(npz_writer_add(writer, "a", ">f4", 1, shape, six, NULL), DSNET_EUSAGE);
      break;
    case 6:
      assert_int_equal(npz_writer_add(writer, "a", "<f4", NPY_DIMENSIONS_MAX + 1, shape, six, NULL),
                       DSNET_EUSAGE);
      break;
    case 7:
      assert_int_equal(npz_writer_add(writer, "", "<f4", 1, shape, six, NULL), DSNET_EUSAGE);
      break;
    }
    assert_true(npz_writer_close(writer, &error) < 0);
    assert_true(error.text[0]);
    size_t size;
    uint8_t *bytes = slurp(path, &size);
    assert_int_equal(size, 6);
    assert_memory_equal(bytes, "before", 6);
    free(bytes);
  }
  unlink(path);
}

// A file-size limit stands in for a full disk: writes come back short, then fail.
static void a_full_disk_is_an_error_and_leaves_the_file_as_it_was(void **state) {
  (void)state;
  char folder[] = "/tmp/dsnet-test-full-XXXXXX", path[100];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/clip.npz", folder);
  struct dsnet_error error = {0};
  assert_int_equal(file_write(path, "before", 6, &error), 0);
  struct rlimit before, small = {0};
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small.rlim_max = before.rlim_max;
  signal(SIGXFSZ, SIG_IGN);
  static const uint8_t noise[200000];
  for (rlim_t limit = 0; limit < 200100; limit += 20011) {
    struct npz_writer *writer;
    small.rlim_cur = limit;
    setrlimit(RLIMIT_FSIZE, &small);
    memset(&error, 0, sizeof error);
    int opened = npz_writer_open(&writer, path, false, &error);
    if (opened == 0) {
      npz_writer_add(writer, "a", "|u1", 1, (const size_t[]){sizeof noise}, noise, NULL);
      opened = npz_writer_close(writer, &error);
    }
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(opened, DSNET_EIO);
    assert_non_null(strstr(error.text, "clip.npz"));
    size_t size;
    uint8_t *bytes = slurp(path, &size);
    assert_memory_equal(bytes, "before", 6);
    free(bytes);
  }
  unlink(path);
  assert_int_equal(rmdir(folder), 0); // fails if a temporary was left
}

static void a_link_is_followed_and_permissions_are_kept(void **state) {
  (void)state;
  char path[200], link_path[200];
  snprintf(path, sizeof path, "%s", temporary_path("target"));
  snprintf(link_path, sizeof link_path, "%s", temporary_path("link"));
  struct dsnet_error error = {0};
  struct stat status;
  assert_int_equal(file_write(path, "before", 6, &error), 0);
  assert_int_equal(chmod(path, 0640), 0);
  assert_int_equal(symlink(path, link_path), 0);
  assert_int_equal(file_write(link_path, "after", 5, &error), 0);
  assert_int_equal(lstat(link_path, &status), 0);
  assert_true(S_ISLNK(status.st_mode));
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_mode & 0777, 0640);
  assert_int_equal(status.st_size, 5);
  unlink(link_path);
  unlink(path);
}

static void what_is_no_regular_file_is_neither_read_nor_replaced(void **state) {
  (void)state;
  static const char *const paths[] = {"/dev/null", "/tmp", "/tmp/dsnet-no-such-folder/a.npz"};
  for (size_t i = 0; i < 3; i++) {
    struct npz *npz;
    struct npz_writer *writer;
    struct dsnet_error error = {0};
    assert_int_equal(npz_open(&npz, paths[i], &error), DSNET_EIO);
    assert_non_null(strstr(error.text, paths[i]));
    assert_null(npz);
    memset(&error, 0, sizeof error);
    assert_int_equal(npz_writer_open(&writer, paths[i], true, &error), DSNET_EIO);
    assert_null(writer);
  }
  struct stat status;
  assert_int_equal(stat("/dev/null", &status), 0);
  assert_true(S_ISCHR(status.st_mode));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, reset_archive)
  const struct CMUnitTest tests[] = {
      TEST(stored_and_deflated_entries_are_read),
      TEST(entries_that_are_no_arrays_are_passed_over),
      TEST(a_missing_array_is_named),
      TEST(truncation_at_every_byte_is_an_error),
      TEST(a_flipped_byte_gives_an_error_or_the_right_numbers),
      TEST(lies_about_sizes_are_refused),
      TEST(a_stream_that_does_not_end_where_it_should_is_refused),
      TEST(a_wrong_checksum_is_refused),
      TEST(an_array_that_cannot_fit_is_refused_before_memory_is_asked_for),
      TEST(entries_that_share_bytes_are_refused),
      TEST(two_entries_of_one_name_are_refused),
      TEST(encryption_and_other_methods_are_refused),
      TEST(a_directory_that_is_wrong_about_itself_is_refused),
      TEST(a_comment_may_hold_an_end_record),
      TEST(zip64_records_are_read),
      TEST(what_is_written_is_read_back),
      TEST(the_same_arrays_give_the_same_bytes),
      TEST(wrong_use_of_the_writer_leaves_the_file_as_it_was),
      TEST(a_full_disk_is_an_error_and_leaves_the_file_as_it_was),
      TEST(a_link_is_followed_and_permissions_are_kept),
      TEST(what_is_no_regular_file_is_neither_read_nor_replaced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
