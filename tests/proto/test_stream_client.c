// SPDX-License-Identifier: Apache-2.0
// The whole client against a server that behaves well or, in each way a server can, badly: how the
// sessions end, what the user is told, what is counted, and what is left on disk.
#include "stream/stream.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "fake_server.h"
#include "io/npz.h"

#define FRAMES 40

static float pose[FRAMES * 66], trans[FRAMES * 3];
static struct stream_clip clip = {.frames = FRAMES, .pose = pose, .trans = trans, .betas = {1.5f}};
static struct stream_summary summary;
static char folder[64], output[128];

static int make_clip(void **state) {
  (void)state;
  signal(SIGPIPE, SIG_IGN);
  for (size_t k = 0; k < FRAMES; k++)
    trans[3 * k] = (float)k; // the fake server checks that frame k comes with seq k
  strcpy(folder, "/tmp/dsnet-stream-XXXXXX");
  if (!mkdtemp(folder))
    return -1;
  snprintf(output, sizeof output, "%s/out.npz", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder); // fails when a test has left a file
}

static int clear(void **state) {
  (void)state;
  stream_summary_deinit(&summary);
  memset(&summary, 0, sizeof summary);
  return 0;
}

static struct stream_options options_for(int port) {
  struct stream_options options = {.model = "default", .sessions = 1, .timeout = 20};
  char url[64];
  snprintf(url, sizeof url, "ws://127.0.0.1:%d/v1/stream", port);
  assert_int_equal(stream_url_parse(&options.url, url, NULL), 0);
  return options;
}

// Runs against a scenario with the given changes to the options, and checks the server's view.
static void run(enum fake_scenario scenario, const struct stream_options *changes) {
  size_t sessions = changes && changes->sessions ? changes->sessions : 1;
  struct fake_server *server = fake_server_start(scenario, sessions);
  struct stream_options options = options_for(fake_server_port(server));
  struct dsnet_error error = {0};
  if (changes) {
    options.sessions = sessions;
    options.real_rate = changes->real_rate;
    options.window = changes->window;
    options.output = changes->output;
    options.timeout = changes->timeout ? changes->timeout : options.timeout;
  }
  assert_int_equal(stream_run(&options, &clip, 1, &summary, &error), 0);
  assert_int_equal(fake_server_stop(server), 0);
}

static void expect_failure(enum stream_outcome outcome, const char *mentions) {
  assert_false(stream_summary_is_ok(&summary));
  if (summary.first_outcome != outcome || !strstr(summary.first_text, mentions))
    fail_msg("ended with %s: \"%s\", which does not mention \"%s\"",
             stream_outcome_name(summary.first_outcome), summary.first_text, mentions);
  assert_int_equal(summary.outcomes[outcome], 1);
}

static void expect_all_well(size_t sessions) {
  if (!stream_summary_is_ok(&summary))
    fail_msg("%s: %s", stream_outcome_name(summary.first_outcome), summary.first_text);
  assert_int_equal(summary.outcomes[STREAM_OK], sessions);
  assert_int_equal(summary.received, sessions * FRAMES);
  assert_int_equal(summary.latency.count, sessions * FRAMES);
  assert_int_equal(stream_summary_lost(&summary), 0);
  assert_true(summary.seconds > 0);
  for (size_t v = 0; v < FAKE_VERTICES; v++)
    assert_float_equal(summary.largest[v], 3 * FAKE_VALUE * FAKE_VALUE, 1e-9);
}

static void every_frame_comes_back_at_the_rate_max(void **state) {
  (void)state;
  run(FAKE_WELL, NULL);
  expect_all_well(1);
  assert_true(summary.opened);
  assert_false(summary.trained);
  assert_string_equal(summary.model, "m");
}

static void a_window_of_one_frame_is_enough(void **state) {
  (void)state;
  run(FAKE_WELL, &(struct stream_options){.window = 1});
  expect_all_well(1);
}

static void every_frame_comes_back_at_the_real_rate(void **state) {
  (void)state;
  run(FAKE_WELL, &(struct stream_options){.real_rate = true, .sessions = 3});
  expect_all_well(3);
  assert_true(summary.seconds > (FRAMES - 2) / 60.0); // it has waited; how long is not tested
}

static void pings_and_fragments_are_handled(void **state) {
  (void)state;
  run(FAKE_PINGS, NULL);
  expect_all_well(1);
}

static void a_server_that_does_not_answer_the_close_is_left(void **state) {
  (void)state;
  run(FAKE_NO_CLOSE, NULL);
  expect_all_well(1);
}

static void each_bad_server_is_told_apart(void **state) {
  (void)state;
  static const struct {
    enum fake_scenario scenario;
    enum stream_outcome outcome;
    const char *mentions;
  } cases[] = {
      {FAKE_REFUSES, STREAM_REFUSED, "503 Service Unavailable, retry after 7"},
      {FAKE_NOT_HTTP, STREAM_HANDSHAKE, "not HTTP"},
      {FAKE_WRONG_ACCEPT, STREAM_HANDSHAKE, "Sec-WebSocket-Accept"},
      {FAKE_NO_SUBPROTOCOL, STREAM_HANDSHAKE, "does not speak dsnet.v1"},
      {FAKE_HANGS_UP, STREAM_CLOSED, "in the handshake"},
      {FAKE_NO_MODEL, STREAM_REJECTED, "no_model: no such"},
      {FAKE_EARLY_RESULT, STREAM_PROTOCOL, "before \"opened\""},
      {FAKE_BAD_OPENED, STREAM_PROTOCOL, "model: is missing"},
      {FAKE_CLOSES, STREAM_CLOSED, "1012 (service restart) after 3 of 40 frames: bye"},
      {FAKE_DROPS, STREAM_CLOSED, "without a close frame after 3 of 40"},
      {FAKE_WRONG_SEQ, STREAM_PROTOCOL, "seq 4 instead of 3"},
      {FAKE_WRONG_TIMESTAMP, STREAM_PROTOCOL, "result 3 does not echo"},
      {FAKE_WRONG_KIND, STREAM_PROTOCOL, "frame 3 came with kind 3"},
      {FAKE_NAN, STREAM_NOT_FINITE, "result 3"},
      {FAKE_SHORT, STREAM_PROTOCOL, "result 3 is shorter than 300"},
      {FAKE_LONG, STREAM_PROTOCOL, "result 3 is longer than 300"},
      {FAKE_MASKED, STREAM_PROTOCOL, "masked"},
      {FAKE_REFUSES_UNKNOWN, STREAM_PROTOCOL, "seq 4000"},
      {FAKE_ERROR, STREAM_REJECTED, "internal: oops"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    clear(NULL);
    run(cases[i].scenario, &(struct stream_options){.output = output});
    expect_failure(cases[i].outcome, cases[i].mentions);
    assert_int_not_equal(access(output, F_OK), 0); // half a recording is none
    assert_true(stream_summary_lost(&summary) >= FRAMES - 3);
  }
}

static void a_silent_server_is_a_timeout(void **state) {
  (void)state;
  run(FAKE_STALLS, &(struct stream_options){.timeout = 0.3});
  expect_failure(STREAM_TIMEOUT, "no result within 0.3 s after 3 of 40");
  clear(NULL);
  run(FAKE_NO_ANSWER, &(struct stream_options){.timeout = 0.3});
  expect_failure(STREAM_TIMEOUT, "no answer to the handshake");
}

static void a_refused_frame_leaves_the_session_alive(void **state) {
  (void)state;
  run(FAKE_REFUSES_FRAME, &(struct stream_options){.output = output});
  expect_failure(STREAM_FRAME_REFUSED, "frame 3: out_of_range: too far");
  assert_int_equal(summary.received, FRAMES - 1);
  assert_int_equal(summary.refused, 1);
  assert_int_equal(stream_summary_lost(&summary), 0);
  assert_int_not_equal(access(output, F_OK), 0);
}

static void nobody_listening_is_said(void **state) {
  (void)state;
  struct stream_options options = options_for(fake_server_unused_port());
  assert_int_equal(stream_run(&options, &clip, 1, &summary, NULL), 0);
  expect_failure(STREAM_CONNECT, "connection refused");
}

static void a_host_that_is_none_is_said(void **state) {
  (void)state;
  struct stream_options options = options_for(1);
  struct dsnet_error error = {0};
  strcpy(options.url.host, "no.such.host.invalid");
  assert_int_equal(stream_run(&options, &clip, 1, &summary, &error), DSNET_EIO);
  assert_non_null(strstr(error.text, "no.such.host.invalid"));
}

static void check_recording(const char *path) {
  struct npz *npz = NULL;
  struct npy_info info;
  struct dsnet_error error = {0};
  float *displacement = NULL;
  double *latency = NULL;
  int64_t *seq = NULL;
  char model[16];
  if (npz_open(&npz, path, &error) != 0 ||
      npz_read_f32(npz, "displacement", 1 << 24, &displacement, &info, &error) != 0 ||
      npz_read_i64(npz, "seq", FRAMES, &seq, NULL, &error) != 0 ||
      npz_read_f64(npz, "latency", FRAMES, &latency, NULL, &error) != 0 ||
      npz_read_text(npz, "model", model, sizeof model, &error) != 0)
    fail_msg("%s", error.text);
  assert_string_equal(model, "m");
  assert_int_equal(info.dimensions, 3);
  assert_int_equal(info.shape[0], FRAMES);
  assert_int_equal(info.shape[1], FAKE_VERTICES);
  for (size_t i = 0; i < info.count; i++)
    assert_true(displacement[i] == FAKE_VALUE);
  for (size_t k = 0; k < FRAMES; k++) {
    assert_int_equal(seq[k], k);
    assert_true(latency[k] > 0);
  }
  free(displacement);
  free(seq);
  free(latency);
  npz_close(npz);
  unlink(path);
}

static void a_recording_holds_every_frame(void **state) {
  (void)state;
  run(FAKE_PINGS, &(struct stream_options){.output = output});
  expect_all_well(1);
  check_recording(output);
}

static void several_sessions_record_several_files(void **state) {
  (void)state;
  run(FAKE_WELL, &(struct stream_options){.output = output, .sessions = 3});
  expect_all_well(3);
  for (int i = 0; i < 3; i++) {
    char path[160];
    snprintf(path, sizeof path, "%s/out_%03d.npz", folder, i);
    check_recording(path);
  }
}

static void an_output_that_cannot_be_written_fails(void **state) {
  (void)state;
  char path[160];
  snprintf(path, sizeof path, "%s/missing/out.npz", folder);
  run(FAKE_WELL, &(struct stream_options){.output = path});
  expect_failure(STREAM_RECORDING, "missing/out.npz");
}

static void the_summary_reads_as_json_and_as_text(void **state) {
  (void)state;
  char *text = NULL;
  size_t size = 0;
  run(FAKE_REFUSES_FRAME, NULL);
  FILE *out = open_memstream(&text, &size);
  assert_true(stream_summary_print_json(&summary, NULL, out));
  fclose(out);
  json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(object);
  assert_true(json_is_false(json_object_get(object, "ok")));
  assert_int_equal(json_integer_value(json_object_get(object, "frames_received")), FRAMES - 1);
  assert_int_equal(json_integer_value(json_object_get(object, "frames_refused")), 1);
  json_t *latency = json_object_get(object, "latency_ms");
  assert_true(json_real_value(json_object_get(latency, "p99")) > 0);
  assert_non_null(strstr(json_string_value(json_object_get(object, "failure")), "too far"));
  json_decref(object);
  free(text);
  out = open_memstream(&text, &size);
  stream_summary_print(&summary, NULL, out);
  fclose(out);
  assert_non_null(strstr(text, "NOT TRAINED"));
  assert_non_null(strstr(text, "39 of 40"));
  assert_non_null(strstr(text, "frame_refused"));
  free(text);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, clear, clear)
  const struct CMUnitTest tests[] = {
      TEST(every_frame_comes_back_at_the_rate_max),
      TEST(a_window_of_one_frame_is_enough),
      TEST(every_frame_comes_back_at_the_real_rate),
      TEST(pings_and_fragments_are_handled),
      TEST(a_server_that_does_not_answer_the_close_is_left),
      TEST(each_bad_server_is_told_apart),
      TEST(a_silent_server_is_a_timeout),
      TEST(a_refused_frame_leaves_the_session_alive),
      TEST(nobody_listening_is_said),
      TEST(a_host_that_is_none_is_said),
      TEST(a_recording_holds_every_frame),
      TEST(several_sessions_record_several_files),
      TEST(an_output_that_cannot_be_written_fails),
      TEST(the_summary_reads_as_json_and_as_text),
  };
  return cmocka_run_group_tests(tests, make_clip, remove_folder);
}
