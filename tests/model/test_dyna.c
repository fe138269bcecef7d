// SPDX-License-Identifier: Apache-2.0
// io/dyna*.c: what is written is read back in any range, files of other writers are understood,
// unfinished files are invisible, and malformed ones give one error that names the place.
#include "io/dyna.h"

#include <hdf5.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { V = 5, F = 6, T = 75 };
static const uint32_t triangles[F][3] = {{0, 1, 2}, {0, 2, 3}, {0, 3, 1},
                                         {4, 2, 1}, {4, 3, 2}, {4, 1, 3}};

static char folder[64];

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/dsnet-dyna-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return system(command);
}

static const char *in_folder(const char *name) {
  static char path[4][128];
  static int turn;
  turn = (turn + 1) % 4;
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
  return path[turn];
}

static float value(size_t frame, size_t vertex, size_t axis, float salt) {
  return salt + (float)frame * 0.01f + (float)vertex + (float)axis * 0.1f;
}

static void fill(float *posed, size_t first, size_t count, float salt) {
  for (size_t f = 0; f < count; f++)
    for (size_t v = 0; v < V; v++)
      for (size_t k = 0; k < 3; k++)
        posed[(f * V + v) * 3 + k] = value(first + f, v, k, salt);
}

static void append_sequence(struct dyna_writer *writer, const char *name, size_t frames,
                            size_t piece, float salt) {
  float posed[T * V * 3];
  assert_int_equal(dyna_writer_begin(writer, name, NULL), 0);
  for (size_t first = 0; first < frames; first += piece) {
    size_t count = piece < frames - first ? piece : frames - first;
    fill(posed, first, count, salt);
    assert_int_equal(dyna_writer_append(writer, posed, count, NULL), 0);
  }
  assert_int_equal(dyna_writer_end(writer, NULL), 0);
}

static struct dyna_writer *writer_for(const char *path, int deflate) {
  struct dyna_writer *writer;
  assert_int_equal(dyna_writer_open(&writer, path, triangles[0], F, V, deflate, NULL), 0);
  return writer;
}

static void write_file(const char *path, const char *name, size_t frames, float salt) {
  struct dyna_writer *writer = writer_for(path, 0);
  append_sequence(writer, name, frames, 7, salt);
  assert_int_equal(dyna_writer_close(writer, NULL), 0);
}

static void assert_range(struct dyna *dyna, size_t index, size_t first, size_t count, float salt) {
  float posed[T * V * 3], expected[T * V * 3];
  assert_int_equal(dyna_read(dyna, index, first, count, posed, NULL), 0);
  fill(expected, first, count, salt);
  assert_memory_equal(posed, expected, count * V * 3 * sizeof *posed);
}

static void sequences_are_read_back_in_any_range(void **state) {
  (void)state;
  for (int deflate = 0; deflate <= 4; deflate += 4) {
    struct dyna_writer *writer = writer_for(in_folder("two.h5"), deflate);
    append_sequence(writer, "s01_jump_high", T, 32, 1);
    append_sequence(writer, "s02_run", 1, 1, 2);
    assert_int_equal(dyna_writer_close(writer, NULL), 0);
    struct dyna *dyna;
    assert_int_equal(dyna_open(&dyna, in_folder("two.h5"), NULL), 0);
    assert_int_equal(dyna_count(dyna), 2);
    assert_int_equal(dyna_vertices(dyna), V);
    assert_int_equal(dyna_faces(dyna), F);
    assert_memory_equal(dyna_triangles(dyna), triangles, sizeof triangles);
    const struct dyna_sequence *sequence = dyna_at(dyna, 0);
    assert_string_equal(sequence->name, "s01_jump_high");
    assert_string_equal(sequence->subject, "s01");
    assert_string_equal(sequence->motion, "jump_high");
    assert_int_equal(sequence->frames, T);
    assert_int_equal(dyna_at(dyna, 1)->frames, 1);
    assert_range(dyna, 0, 0, T, 1);
    assert_range(dyna, 1, 0, 1, 2);
    for (size_t first = 0; first < T; first += 9)
      assert_range(dyna, 0, first, T - first < 40 ? T - first : 40, 1);
    struct dsnet_error e = {0};
    float posed[2 * V * 3];
    assert_int_equal(dyna_read(dyna, 1, 0, 2, posed, &e), DSNET_EVALUE);
    assert_int_equal(dyna_read(dyna, 0, (size_t)-1, 2, posed, NULL), DSNET_EVALUE);
    dyna_close(dyna);
  }
}

static void a_folder_is_one_set(void **state) {
  (void)state;
  char name[32];
  for (int i = 0; i < 40; i++) { // more than one growth of the list
    snprintf(name, sizeof name, "s%02d_walk.h5", i);
    const char *path = in_folder(name);
    name[8] = 0;
    write_file(path, name, 2, (float)i);
  }
  write_file(in_folder("zz.hdf5"), "zz_walk", 3, 50);
  fclose(fopen(in_folder("s03_walk.npz"), "w"));
  fclose(fopen(in_folder("s04_walk_poses.npz"), "w"));
  fclose(fopen(in_folder("readme.txt"), "w"));
  struct dyna *dyna;
  assert_int_equal(dyna_open(&dyna, folder, NULL), 0);
  assert_int_equal(dyna_count(dyna), 41);
  for (size_t i = 0; i < 40; i++) {
    assert_string_equal(dyna_at(dyna, i)->motion, "walk");
    assert_range(dyna, i, 0, 2, (float)i);
  }
  assert_range(dyna, 40, 1, 2, 50);
  assert_string_equal(dyna_at(dyna, 3)->clip, in_folder("s03_walk.npz"));
  assert_string_equal(dyna_at(dyna, 4)->clip, in_folder("s04_walk_poses.npz"));
  assert_string_equal(dyna_at(dyna, 5)->clip, in_folder("s05_walk.npz"));
  dyna_close(dyna);
}

static void an_unfinished_file_is_not_there(void **state) {
  (void)state;
  write_file(in_folder("a.h5"), "s1_a", 3, 1);
  struct dyna_writer *writer = writer_for(in_folder("b.h5"), 0);
  append_sequence(writer, "s1_b", 3, 1, 2);
  struct dyna *dyna;
  assert_int_equal(dyna_open(&dyna, folder, NULL), 0);
  assert_int_equal(dyna_count(dyna), 1);
  dyna_close(dyna);
  dyna_writer_abort(writer);
  assert_int_equal(access(in_folder("b.h5"), F_OK), -1);
  assert_int_equal(access(in_folder("b.h5.part"), F_OK), -1);

  // A writer that fails at the end leaves the earlier file as it was.
  writer = writer_for(in_folder("a.h5"), 0);
  assert_int_equal(dyna_writer_begin(writer, "s1_open", NULL), 0);
  assert_int_equal(dyna_writer_close(writer, NULL), DSNET_EUSAGE);
  assert_int_equal(dyna_open(&dyna, in_folder("a.h5"), NULL), 0);
  assert_string_equal(dyna_at(dyna, 0)->name, "s1_a");
  dyna_close(dyna);
}

static void wrong_use_of_a_writer_is_refused(void **state) {
  (void)state;
  struct dyna_writer *writer;
  struct dsnet_error e = {0};
  assert_int_equal(dyna_writer_open(&writer, "/nowhere/a.h5", triangles[0], F, V, 0, &e),
                   DSNET_EIO);
  assert_non_null(strstr(e.text, "/nowhere/a.h5"));
  writer = writer_for(in_folder("a.h5"), 0);
  float posed[V * 3] = {0};
  static const char *const bad[] = {"", "a/b", "../x", "faces", "a b", ".a"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(dyna_writer_begin(writer, bad[i], NULL), DSNET_EVALUE);
  assert_int_equal(dyna_writer_append(writer, posed, 1, NULL), DSNET_EUSAGE);
  assert_int_equal(dyna_writer_end(writer, NULL), DSNET_EUSAGE);
  assert_int_equal(dyna_writer_begin(writer, "s_a", NULL), 0);
  assert_int_equal(dyna_writer_begin(writer, "s_b", NULL), DSNET_EUSAGE);
  assert_int_equal(dyna_writer_end(writer, NULL), DSNET_EUSAGE);
  assert_int_equal(dyna_writer_append(writer, posed, 1, NULL), 0);
  assert_int_equal(dyna_writer_end(writer, NULL), 0);
  assert_int_equal(dyna_writer_begin(writer, "s_a", NULL), DSNET_EIO);
  dyna_writer_abort(writer);
}

static int write_to_a_full_disk(void) {
  struct dyna_writer *writer = NULL;
  int result = dyna_writer_open(&writer, in_folder("full.h5"), triangles[0], F, V, 0, NULL);
  return result < 0 ? result : dyna_writer_close(writer, NULL);
}

// In a child that ends without the leak check: libhdf5 1.10 loses a block of its own when closing a
// file fails.
static void a_full_disk_is_an_error(void **state) {
  (void)state;
  assert_int_equal(symlink("/dev/full", in_folder("full.h5.part")), 0);
  pid_t child = fork();
  if (child == 0)
    _exit(write_to_a_full_disk() == DSNET_EIO ? 0 : 1);
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(access(in_folder("full.h5"), F_OK), -1);
}

static void assert_open_fails(const char *path, int code, const char *mentions) {
  struct dyna *dyna;
  struct dsnet_error e = {0};
  int result = dyna_open(&dyna, path, &e);
  if (result != code || !strstr(e.text, mentions))
    fail_msg("%s: code %d, text \"%s\"", path, result, e.text);
  assert_null(dyna);
}

static void every_truncation_is_an_error(void **state) {
  (void)state;
  const char *path = in_folder("whole.h5");
  write_file(path, "s1_a", T, 1);
  FILE *file = fopen(path, "rb");
  static char bytes[65536];
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_true(size > 1000 && size < sizeof bytes);
  for (size_t cut = 0; cut < size; cut += cut < 1200 ? 13 : 997) {
    file = fopen(in_folder("cut.h5"), "wb");
    fwrite(bytes, 1, cut, file);
    fclose(file);
    assert_open_fails(in_folder("cut.h5"), DSNET_EFORMAT, "cut.h5");
  }
}

// A file made with libhdf5 directly: `faces` and one sequence of the given shapes and types.
struct foreign {
  hsize_t faces[2], sequence[3];
  hid_t face_type, type;
  int face_rank, rank;
  unsigned index; // the largest face index
  float poison;   // put into the last frame
};

static void put(hid_t file, const char *name, int rank, const hsize_t *shape, hid_t type,
                hid_t memory_type, const void *data) {
  hid_t space = H5Screate_simple(rank, shape, NULL);
  hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(set >= 0);
  H5Dwrite(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
  H5Dclose(set);
  H5Sclose(space);
}

static void write_foreign(const char *path, const struct foreign *foreign) {
  uint32_t indices[64] = {0};
  float values[512];
  for (size_t i = 0; i < 512; i++)
    values[i] = (float)i;
  indices[0] = foreign->index;
  if (foreign->rank == 3 && foreign->sequence[2])
    values[foreign->sequence[2] - 1] += foreign->poison;
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (foreign->face_rank)
    put(file, "faces", foreign->face_rank, foreign->faces, foreign->face_type, H5T_NATIVE_UINT32,
        indices);
  if (foreign->rank)
    put(file, "s_x", foreign->rank, foreign->sequence, foreign->type, H5T_NATIVE_FLOAT, values);
  H5Gclose(H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Fclose(file);
}

static struct foreign good_foreign(void) {
  return (struct foreign){{2, 3}, {4, 3, 10}, H5T_STD_I64BE, H5T_IEEE_F64BE, 2, 3, 3, 0};
}

static void other_number_types_and_contiguous_storage_are_read(void **state) {
  (void)state;
  struct foreign foreign = good_foreign();
  write_foreign(in_folder("x.h5"), &foreign);
  struct dyna *dyna;
  assert_int_equal(dyna_open(&dyna, in_folder("x.h5"), NULL), 0);
  assert_int_equal(dyna_triangles(dyna)[0], 3);
  float posed[2 * 4 * 3];
  assert_int_equal(dyna_read(dyna, 0, 8, 2, posed, NULL), 0);
  for (size_t i = 0; i < 12; i++) {
    assert_true(posed[i] == (float)(i * 10 + 8));
    assert_true(posed[12 + i] == (float)(i * 10 + 9));
  }
  dyna_close(dyna);
}

static void malformed_content_is_named(void **state) {
  (void)state;
  const char *path = in_folder("x.h5");
  assert_open_fails(in_folder("absent.h5"), DSNET_EIO, "absent.h5");
  assert_open_fails(folder, DSNET_EMISSING, "no *.h5");
  struct foreign foreign = good_foreign();
  foreign.face_rank = 0;
  write_foreign(path, &foreign);
  assert_open_fails(path, DSNET_EMISSING, "faces");
  foreign = good_foreign();
  foreign.face_type = H5T_IEEE_F32LE;
  write_foreign(path, &foreign);
  assert_open_fails(path, DSNET_EFORMAT, "faces");
  foreign = good_foreign();
  foreign.faces[1] = 4;
  write_foreign(path, &foreign);
  assert_open_fails(path, DSNET_EFORMAT, "faces");
  foreign = good_foreign();
  foreign.index = 4;
  write_foreign(path, &foreign);
  assert_open_fails(path, DSNET_EVALUE, "index 4");
  foreign = good_foreign();
  foreign.rank = 0;
  write_foreign(path, &foreign);
  assert_open_fails(path, DSNET_EMISSING, "no sequence");
  foreign = good_foreign();
  foreign.rank = 2;
  write_foreign(path, &foreign);
  assert_open_fails(path, DSNET_EFORMAT, "s_x");
  foreign = good_foreign();
  foreign.type = H5T_STD_I32LE;
  write_foreign(path, &foreign);
  assert_open_fails(path, DSNET_EFORMAT, "s_x");
  foreign = good_foreign();
  foreign.sequence[2] = 0;
  write_foreign(path, &foreign);
  assert_open_fails(path, DSNET_EVALUE, "empty");
}

static void a_value_that_is_not_finite_names_its_frame(void **state) {
  (void)state;
  struct foreign foreign = good_foreign();
  foreign.poison = INFINITY;
  write_foreign(in_folder("x.h5"), &foreign);
  struct dyna *dyna;
  struct dsnet_error e = {0};
  float posed[10 * 4 * 3];
  assert_int_equal(dyna_open(&dyna, in_folder("x.h5"), NULL), 0);
  assert_int_equal(dyna_read(dyna, 0, 0, 9, posed, NULL), 0);
  assert_int_equal(dyna_read(dyna, 0, 0, 10, posed, &e), DSNET_EVALUE);
  assert_non_null(strstr(e.text, "s_x: frame 9"));
  dyna_close(dyna);
}

static void files_that_do_not_belong_together_are_refused(void **state) {
  (void)state;
  write_file(in_folder("a.h5"), "s_a", 2, 0);
  write_file(in_folder("b.h5"), "s_a", 2, 0);
  assert_open_fails(folder, DSNET_EMISMATCH, "s_a is also in");
  struct foreign foreign = good_foreign();
  write_foreign(in_folder("b.h5"), &foreign);
  assert_open_fails(folder, DSNET_EMISMATCH, "faces differ");
}

static void links_and_outside_storage_are_not_followed(void **state) {
  (void)state;
  write_file(in_folder("a.h5"), "s_a", 2, 0);
  const char *path = in_folder("b.hdf5");
  struct foreign foreign = good_foreign();
  write_foreign(path, &foreign);
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_external("a.h5", "s_a", file, "s_link", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  assert_open_fails(path, DSNET_EUNSUPPORTED, "s_link is a link");

  write_foreign(path, &foreign);
  file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(plist, "/etc/hostname", 0, H5F_UNLIMITED);
  hsize_t shape[3] = {4, 3, 1};
  hid_t space = H5Screate_simple(3, shape, NULL);
  hid_t data = H5Dcreate2(file, "s_y", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  assert_true(data >= 0);
  H5Dclose(data);
  H5Sclose(space);
  H5Pclose(plist);
  H5Fclose(file);
  assert_open_fails(path, DSNET_EUNSUPPORTED, "s_y lies in other files");
}

static void *write_from_a_thread(void *context) {
  int number = *(int *)context;
  char path[128], name[32];
  snprintf(name, sizeof name, "s%d_t", number);
  snprintf(path, sizeof path, "%s/%s.h5", folder, name);
  struct dyna_writer *writer;
  float posed[T * V * 3];
  fill(posed, 0, T, (float)number);
  if (dyna_writer_open(&writer, path, triangles[0], F, V, 1, NULL) < 0)
    return context;
  for (size_t f = 0; f < T; f++)
    if ((f == 0 && dyna_writer_begin(writer, name, NULL) < 0) ||
        dyna_writer_append(writer, posed + f * V * 3, 1, NULL) < 0)
      return context;
  return dyna_writer_end(writer, NULL) < 0 || dyna_writer_close(writer, NULL) < 0 ? context : NULL;
}

static void threads_write_side_by_side(void **state) {
  (void)state;
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, write_from_a_thread, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  struct dyna *dyna;
  assert_int_equal(dyna_open(&dyna, folder, NULL), 0);
  for (size_t i = 0; i < THREADS; i++)
    assert_range(dyna, i, 0, T, (float)i);
  dyna_close(dyna);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(sequences_are_read_back_in_any_range),
      IN_FOLDER(a_folder_is_one_set),
      IN_FOLDER(an_unfinished_file_is_not_there),
      IN_FOLDER(wrong_use_of_a_writer_is_refused),
      IN_FOLDER(a_full_disk_is_an_error),
      IN_FOLDER(every_truncation_is_an_error),
      IN_FOLDER(other_number_types_and_contiguous_storage_are_read),
      IN_FOLDER(malformed_content_is_named),
      IN_FOLDER(a_value_that_is_not_finite_names_its_frame),
      IN_FOLDER(files_that_do_not_belong_together_are_refused),
      IN_FOLDER(links_and_outside_storage_are_not_followed),
      IN_FOLDER(threads_write_side_by_side),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
