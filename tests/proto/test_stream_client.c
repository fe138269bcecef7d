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
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <uv.h>

#include "fake_server.h"
#include "io/file.h"
#include "io/npz.h"
#include "io/pc2.h"
#include "stream/recording.h"

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

static struct stream_url urls[2];

static void set_url(struct stream_url *url, int port) {
  char text[64];
  snprintf(text, sizeof text, "ws://127.0.0.1:%d/v1/stream", port);
  assert_int_equal(stream_url_parse(url, text, NULL), 0);
}

static struct stream_options options_for(int port) {
  set_url(&urls[0], port);
  return (struct stream_options){.servers = urls,
                                 .server_count = 1,
                                 .model = "default",
                                 .sessions = 1,
                                 .repeat = 1,
                                 .timeout = 20,
                                 .fps = 60,
                                 .output = FRAME_DISPLACEMENT};
}

// Runs against a scenario with the given changes to the options, and checks the server's view.
// Returns how many connections that took.
static size_t run_seeded(enum fake_scenario scenario, unsigned seed,
                         const struct stream_options *changes) {
  struct fake_server *server = fake_server_start(scenario, seed);
  struct stream_options options = options_for(fake_server_port(server));
  struct dsnet_error error = {0};
  if (changes) {
    options.sessions = changes->sessions ? changes->sessions : 1;
    options.real_rate = changes->real_rate;
    options.window = changes->window;
    options.record = changes->record;
    options.check_all = changes->check_all;
    options.timeout = changes->timeout > 0 ? changes->timeout : options.timeout;
    options.fps = changes->fps > 0 ? changes->fps : options.fps;
    options.output = changes->output ? changes->output : options.output;
    options.encoding = changes->encoding;
    options.delivery = changes->delivery;
    options.checkpoint_every = changes->checkpoint_every;
    options.reconnect = changes->reconnect;
    options.display = changes->display;
  }
  size_t connections;
  if (stream_run(&options, &clip, 1, &summary, &error) != 0)
    fail_msg("%s", error.text);
  assert_int_equal(fake_server_stop(server, &connections), 0);
  return connections;
}

static size_t run(enum fake_scenario scenario, const struct stream_options *changes) {
  return run_seeded(scenario, 1, changes);
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
  float last = fake_server_value(FRAMES - 1); // and largest
  for (size_t v = 0; v < FAKE_VERTICES && summary.largest; v++)
    assert_float_equal(summary.largest[v], 3 * last * last, 1e-4f * last * last);
}

static void every_frame_comes_back_at_the_rate_max(void **state) {
  (void)state;
  run(FAKE_WELL, NULL);
  expect_all_well(1);
  assert_true(summary.opened);
  assert_false(summary.trained);
  assert_string_equal(summary.model, "m");
  assert_non_null(summary.largest);
  assert_true(summary.bytes_received > FRAMES * FAKE_VERTICES * 12);
  assert_true(summary.bytes_sent > FRAMES * 276);
  assert_true(summary.longest_gap > 0);
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
      {FAKE_CLOSES, STREAM_CLOSED, "1012 (service restart): bye, after 3 of 40 frames"},
      {FAKE_DROPS, STREAM_CLOSED, "without a close frame: it ended, after 3 of 40 frames"},
      {FAKE_WRONG_SEQ, STREAM_PROTOCOL, "seq 4 instead of 3"},
      {FAKE_WRONG_TIMESTAMP, STREAM_PROTOCOL, "result 3 does not echo"},
      {FAKE_WRONG_KIND, STREAM_PROTOCOL, "frame 3 came with kind 3"},
      {FAKE_NAN, STREAM_NOT_FINITE, "result 3"},
      {FAKE_SHORT, STREAM_PROTOCOL, "result 3 is shorter than 900"},
      {FAKE_LONG, STREAM_PROTOCOL, "result 3 is longer than 900"},
      {FAKE_MASKED, STREAM_PROTOCOL, "masked"},
      {FAKE_REFUSES_UNKNOWN, STREAM_PROTOCOL, "seq 4000"},
      {FAKE_ERROR, STREAM_REJECTED, "internal: oops"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    clear(NULL);
    run(cases[i].scenario, &(struct stream_options){.record = output});
    expect_failure(cases[i].outcome, cases[i].mentions);
    assert_int_not_equal(access(output, F_OK), 0); // half a recording is none
    assert_true(stream_summary_lost(&summary) >= FRAMES - 3);
  }
}

static void a_silent_server_is_a_timeout(void **state) {
  (void)state;
  run(FAKE_STALLS, &(struct stream_options){.timeout = 0.3});
  expect_failure(STREAM_TIMEOUT, "no result within 0.3 s, after 3 of 40");
  clear(NULL);
  run(FAKE_NO_ANSWER, &(struct stream_options){.timeout = 0.3});
  expect_failure(STREAM_TIMEOUT, "no answer to the handshake");
}

static void a_refused_frame_leaves_the_session_alive(void **state) {
  (void)state;
  run(FAKE_REFUSES_FRAME, &(struct stream_options){.record = output});
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
  strcpy(urls[0].host, "no.such.host.invalid");
  assert_int_equal(stream_run(&options, &clip, 1, &summary, &error), DSNET_EIO);
  assert_non_null(strstr(error.text, "no.such.host.invalid"));
}

static void check_recording(const char *path, const char *array, size_t numbers, double tolerance) {
  struct npz *npz = NULL;
  struct npy_info info;
  struct dsnet_error error = {0};
  float *values = NULL;
  double *latency = NULL;
  int64_t *seq = NULL;
  char model[16];
  if (npz_open(&npz, path, &error) != 0 ||
      npz_read_f32(npz, array, 1 << 24, &values, &info, &error) != 0 ||
      npz_read_i64(npz, "seq", FRAMES, &seq, NULL, &error) != 0 ||
      npz_read_f64(npz, "latency", FRAMES, &latency, NULL, &error) != 0 ||
      npz_read_text(npz, "model", model, sizeof model, &error) != 0)
    fail_msg("%s", error.text);
  assert_string_equal(model, "m");
  assert_int_equal(info.shape[0], FRAMES);
  assert_int_equal(info.count, FRAMES * numbers);
  assert_int_equal(info.dimensions, numbers == FAKE_LATENTS ? 2 : 3);
  for (size_t k = 0; k < FRAMES; k++) {
    float value = fake_server_value(k);
    for (size_t i = 0; i < numbers; i++)
      assert_true(fabs(fabsf(values[k * numbers + i]) - value) <= tolerance * value);
    assert_int_equal(seq[k], k);
    assert_true(latency[k] > 0);
  }
  free(values);
  free(seq);
  free(latency);
  npz_close(npz);
  unlink(path);
}

static void check_displacement(const char *path) {
  check_recording(path, "displacement", 3 * FAKE_VERTICES, 0);
}

static void a_recording_holds_every_frame(void **state) {
  (void)state;
  run(FAKE_PINGS, &(struct stream_options){.record = output});
  expect_all_well(1);
  check_displacement(output);
}

static void every_output_and_encoding_is_decoded(void **state) {
  (void)state;
  static const double tolerances[] = {
      [FRAME_F32] = 0, [FRAME_F16] = 1.0 / 2048, [FRAME_I16] = 1e-6};
  for (enum frame_kind kind = FRAME_DISPLACEMENT; kind <= FRAME_LATENT; kind++)
    for (enum frame_encoding encoding = FRAME_F32; encoding <= FRAME_I16; encoding++) {
      clear(NULL);
      run(FAKE_WELL, &(struct stream_options){
                         .output = kind, .encoding = encoding, .record = output, .fps = 30});
      assert_true(stream_summary_is_ok(&summary));
      assert_true((kind == FRAME_DISPLACEMENT) == (summary.largest != NULL));
      check_recording(output, message_output_name(kind),
                      kind == FRAME_LATENT ? FAKE_LATENTS : 3 * FAKE_VERTICES,
                      tolerances[encoding]);
    }
}

static void several_sessions_record_several_files(void **state) {
  (void)state;
  run(FAKE_WELL, &(struct stream_options){.record = output, .sessions = 3});
  expect_all_well(3);
  for (int i = 0; i < 3; i++) {
    char path[160];
    snprintf(path, sizeof path, "%s/out_%03d.npz", folder, i);
    check_displacement(path);
  }
}

static void raw_and_pc2_recordings_hold_the_numbers_alone(void **state) {
  (void)state;
  static const struct {
    const char *suffix;
    size_t header;
  } formats[] = {{"raw", 0}, {"pc2", PC2_HEADER_SIZE}};
  for (size_t f = 0; f < 2; f++) {
    char path[160];
    uint8_t *bytes;
    size_t size;
    snprintf(path, sizeof path, "%s/out.%s", folder, formats[f].suffix);
    clear(NULL);
    run(FAKE_WELL, &(struct stream_options){.record = path, .output = FRAME_VERTICES});
    assert_true(stream_summary_is_ok(&summary));
    assert_int_equal(file_read(path, 1 << 24, &bytes, &size, NULL), 0);
    assert_int_equal(size, formats[f].header + sizeof(float) * FRAMES * 3 * FAKE_VERTICES);
    if (formats[f].header) {
      uint8_t header[PC2_HEADER_SIZE];
      pc2_header_write(FAKE_VERTICES, FRAMES, header);
      assert_memory_equal(bytes, header, sizeof header);
    }
    for (size_t k = 0; k < FRAMES; k++) {
      float value;
      memcpy(&value, bytes + formats[f].header + (k + 1) * 12 * FAKE_VERTICES - 4, sizeof value);
      assert_true(value == fake_server_value(k));
    }
    free(bytes);
    unlink(path);
  }
}

static void an_output_that_cannot_be_written_is_said_before_anything_is_sent(void **state) {
  (void)state;
  char path[160];
  snprintf(path, sizeof path, "%s/missing/out.npz", folder);
  struct stream_options options = options_for(fake_server_unused_port());
  struct dsnet_error error = {0};
  options.record = path;
  options.sessions = 2;
  assert_int_equal(stream_run(&options, &clip, 1, &summary, &error), DSNET_EIO);
  assert_non_null(strstr(error.text, "missing/out_000.npz"));
}

static void a_disk_that_fills_up_ends_the_session(void **state) {
  (void)state;
  struct rlimit before, small = {.rlim_cur = 70000};
  getrlimit(RLIMIT_FSIZE, &before);
  small.rlim_max = before.rlim_max;
  signal(SIGXFSZ, SIG_IGN); // writing beyond the limit fails instead
  setrlimit(RLIMIT_FSIZE, &small);
  run(FAKE_WELL, &(struct stream_options){.record = output});
  setrlimit(RLIMIT_FSIZE, &before);
  expect_failure(STREAM_RECORDING, "out.npz: cannot be written: File too large");
  assert_int_not_equal(access(output, F_OK), 0);
}

static void a_recording_larger_than_the_disk_is_refused(void **state) {
  (void)state;
  struct recording *recording;
  struct dsnet_error error = {0};
  assert_int_equal(recording_open(&recording, output, &error), 0);
  assert_int_equal(recording_check_space(recording, 1, &error), 0);
  assert_int_equal(recording_check_space(recording, 1e18, &error), DSNET_ELIMIT);
  assert_non_null(strstr(error.text, "the disk is too full"));
  recording_abort(recording);
}

// Reconnecting ------------------------------------------------------------------------------------

static const struct stream_reconnect patient = {.tries = 6, .seconds = 60};

static void a_stream_that_is_dropped_anywhere_comes_out_whole(void **state) {
  (void)state;
  for (unsigned seed = 0; seed < 12; seed++) {
    clear(NULL);
    size_t connections = run_seeded(FAKE_DROPS_RANDOMLY, 1000 * seed,
                                    &(struct stream_options){.record = output,
                                                             .checkpoint_every = 1 + seed % 5,
                                                             .window = 1 + seed,
                                                             .reconnect = patient});
    expect_all_well(1);
    assert_true(connections > 2); // 40 frames, of which a connection answers 16 at most
    assert_int_equal(summary.reconnects, connections - 1);
    assert_int_equal(summary.restarts, 0);
    assert_true(summary.resent > 0);
    assert_int_equal(summary.sent, FRAMES + summary.resent);
    check_displacement(output);
  }
}

static void several_sessions_are_taken_up_each_by_itself(void **state) {
  (void)state;
  run(FAKE_DROPS_RANDOMLY, &(struct stream_options){.record = output,
                                                    .sessions = 3,
                                                    .checkpoint_every = 4,
                                                    .real_rate = true,
                                                    .fps = 240,
                                                    .reconnect = patient});
  expect_all_well(3);
  for (int i = 0; i < 3; i++) {
    char path[160];
    snprintf(path, sizeof path, "%s/out_%03d.npz", folder, i);
    check_displacement(path);
  }
}

static void a_server_that_restarts_hands_the_stream_on(void **state) {
  (void)state;
  size_t connections =
      run(FAKE_RESTARTS, &(struct stream_options){.record = output, .reconnect = patient});
  expect_all_well(1);
  assert_int_equal(connections, 4); // after 10 results each, and the last one at its end
  assert_int_equal(summary.reconnects, 3);
  assert_int_equal(summary.restarts, 0);
  assert_int_equal(summary.repeated, 0);
  check_displacement(output);
}

static void refused_tokens_mean_every_frame_again(void **state) {
  (void)state;
  run(FAKE_REFUSES_TOKENS,
      &(struct stream_options){.record = output, .checkpoint_every = 3, .reconnect = patient});
  expect_all_well(1);
  assert_true(summary.reconnects > 0);
  assert_int_equal(summary.restarts, summary.reconnects);
  assert_true(summary.repeated >= 5);
  check_displacement(output);
}

static void without_checkpoints_every_frame_is_sent_again(void **state) {
  (void)state;
  run(FAKE_REFUSES_TOKENS, &(struct stream_options){.record = output, .reconnect = patient});
  expect_all_well(1);
  assert_true(summary.restarts > 0);
  check_displacement(output);
}

static void a_checkpoint_ahead_of_the_results_is_not_used(void **state) {
  (void)state;
  run(FAKE_EARLY_CHECKPOINT, &(struct stream_options){.record = output, .reconnect = patient});
  expect_all_well(1);
  assert_int_equal(summary.restarts, 1);
  check_displacement(output);
}

static void a_frame_refused_again_counts_once(void **state) {
  (void)state;
  run(FAKE_REFUSES_AND_DROPS, &(struct stream_options){.reconnect = patient});
  expect_failure(STREAM_FRAME_REFUSED, "frame 3: out_of_range");
  assert_int_equal(summary.refused, 1);
  assert_int_equal(summary.received, FRAMES - 1);
  assert_true(summary.reconnects > 0);
}

static void another_model_is_not_gone_on_with(void **state) {
  (void)state;
  run(FAKE_OTHER_MODEL, &(struct stream_options){.record = output,
                                                 .checkpoint_every = 2,
                                                 .reconnect = {.tries = 2, .seconds = 60}});
  expect_failure(STREAM_REJECTED, "wrong_model: no; gave up after 2 more tries");
  assert_int_not_equal(access(output, F_OK), 0);
}

static void a_server_that_goes_on_elsewhere_is_told_apart(void **state) {
  (void)state;
  run(FAKE_FORGETS, &(struct stream_options){.checkpoint_every = 1, .reconnect = patient});
  expect_failure(STREAM_PROTOCOL, "went on at seq");
}

static void a_retry_after_is_honoured(void **state) {
  (void)state;
  uint64_t before = uv_hrtime();
  size_t connections = run(FAKE_REFUSES_ONCE, &(struct stream_options){.reconnect = patient});
  expect_all_well(1);
  assert_int_equal(connections, 2);
  assert_true(uv_hrtime() - before >= 1000000000);
  assert_int_equal(summary.reconnects, 0); // no stream was lost
}

static void a_wait_beyond_the_limit_is_not_begun(void **state) {
  (void)state;
  run(FAKE_REFUSES, &(struct stream_options){.reconnect = {.tries = 5, .seconds = 2}});
  expect_failure(STREAM_REFUSED, "over the limit of 2 s");
}

static void tries_are_limited(void **state) {
  (void)state;
  struct stream_options options = options_for(fake_server_unused_port());
  options.reconnect = (struct stream_reconnect){.tries = 2, .seconds = 60};
  assert_int_equal(stream_run(&options, &clip, 1, &summary, NULL), 0);
  expect_failure(STREAM_CONNECT, "connection refused; gave up after 2 more tries");
}

static void servers_are_tried_in_turn(void **state) {
  (void)state;
  struct fake_server *server = fake_server_start(FAKE_WELL, 1);
  struct stream_options options = options_for(fake_server_unused_port());
  set_url(&urls[1], fake_server_port(server));
  options.server_count = 2;
  options.sessions = 3;
  assert_int_equal(stream_run(&options, &clip, 1, &summary, NULL), 0);
  assert_int_equal(fake_server_stop(server, NULL), 0);
  expect_all_well(3);
}

static void a_lost_stream_goes_on_at_the_other_server(void **state) {
  (void)state;
  struct fake_server *first = fake_server_start(FAKE_RESTARTS, 1);
  struct fake_server *second = fake_server_start(FAKE_WELL, 1);
  struct stream_options options = options_for(fake_server_port(first));
  size_t connections[2];
  set_url(&urls[1], fake_server_port(second));
  options.server_count = 2;
  options.reconnect = patient;
  options.record = output;
  assert_int_equal(stream_run(&options, &clip, 1, &summary, NULL), 0);
  assert_int_equal(fake_server_stop(first, &connections[0]), 0);
  assert_int_equal(fake_server_stop(second, &connections[1]), 0);
  expect_all_well(1);
  assert_int_equal(connections[0], 1);
  assert_int_equal(connections[1], 1);
  check_displacement(output);
}

static void skipped_frames_are_counted(void **state) {
  (void)state;
  run(FAKE_SKIPS, &(struct stream_options){.delivery = MESSAGE_DELIVERY_LATEST});
  assert_true(stream_summary_is_ok(&summary));
  assert_int_equal(summary.received, 14); // 0, 3, ... 39
  assert_int_equal(summary.skipped, FRAMES - 14);
  assert_int_equal(stream_summary_lost(&summary), 0);
  clear(NULL);
  run(FAKE_SKIPS, NULL); // where everything is to come, it breaks the protocol
  expect_failure(STREAM_PROTOCOL, "seq 3 instead of 1");
}

static void a_stream_of_the_latest_results_is_taken_up_too(void **state) {
  (void)state;
  size_t connections =
      run(FAKE_SKIPS_AND_RESTARTS,
          &(struct stream_options){.delivery = MESSAGE_DELIVERY_LATEST, .reconnect = patient});
  assert_true(stream_summary_is_ok(&summary));
  assert_int_equal(connections, 4); // to the frames 11, 23, 35 and the last
  assert_int_equal(summary.received, 14);
  assert_int_equal(summary.skipped, FRAMES - 14);
  assert_int_equal(summary.repeated, 0);
}

static void what_only_makes_load_is_not_read(void **state) {
  (void)state;
  run(FAKE_NAN, &(struct stream_options){.sessions = 3});
  assert_int_equal(summary.outcomes[STREAM_NOT_FINITE], 1);
  assert_int_equal(summary.outcomes[STREAM_OK], 2);
  clear(NULL);
  run(FAKE_NAN, &(struct stream_options){.sessions = 3, .check_all = true});
  assert_int_equal(summary.outcomes[STREAM_NOT_FINITE], 3);
  clear(NULL);
  run(FAKE_PINGS, &(struct stream_options){.sessions = 3}); // in fragments
  expect_all_well(3);
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
      TEST(every_output_and_encoding_is_decoded),
      TEST(raw_and_pc2_recordings_hold_the_numbers_alone),
      TEST(an_output_that_cannot_be_written_is_said_before_anything_is_sent),
      TEST(a_disk_that_fills_up_ends_the_session),
      TEST(a_recording_larger_than_the_disk_is_refused),
      TEST(a_stream_that_is_dropped_anywhere_comes_out_whole),
      TEST(several_sessions_are_taken_up_each_by_itself),
      TEST(a_server_that_restarts_hands_the_stream_on),
      TEST(refused_tokens_mean_every_frame_again),
      TEST(without_checkpoints_every_frame_is_sent_again),
      TEST(a_checkpoint_ahead_of_the_results_is_not_used),
      TEST(a_frame_refused_again_counts_once),
      TEST(another_model_is_not_gone_on_with),
      TEST(a_server_that_goes_on_elsewhere_is_told_apart),
      TEST(a_retry_after_is_honoured),
      TEST(a_wait_beyond_the_limit_is_not_begun),
      TEST(tries_are_limited),
      TEST(servers_are_tried_in_turn),
      TEST(a_lost_stream_goes_on_at_the_other_server),
      TEST(skipped_frames_are_counted),
      TEST(a_stream_of_the_latest_results_is_taken_up_too),
      TEST(what_only_makes_load_is_not_read),
      TEST(the_summary_reads_as_json_and_as_text),
  };
  return cmocka_run_group_tests(tests, make_clip, remove_folder);
}
