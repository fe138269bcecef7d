// SPDX-License-Identifier: Apache-2.0
#include "stream/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "body/region.h"
#include "wire/message.h"
#include "wire/text.h"

static const struct {
  const char *name;
  double percent;
} percentiles[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}};

const char *stream_outcome_name(enum stream_outcome outcome) {
  static const char *const names[] = {
#define X(name, text) text,
      STREAM_OUTCOMES(X)
#undef X
  };
  return outcome < STREAM_OUTCOME_COUNT ? names[outcome] : "unknown";
}

void stream_summary_deinit(struct stream_summary *summary) {
  free(summary->largest);
  summary->largest = NULL;
}

void stream_summary_add(struct stream_summary *summary, enum stream_outcome outcome,
                        const char *text) {
  summary->outcomes[outcome]++;
  if (outcome == STREAM_OK || summary->first_outcome != STREAM_OK)
    return;
  summary->first_outcome = outcome;
  text_copy_line(summary->first_text, sizeof summary->first_text, text);
}

bool stream_summary_is_ok(const struct stream_summary *summary) {
  return summary->first_outcome == STREAM_OK && summary->outcomes[STREAM_OK] == summary->sessions &&
         summary->received + summary->skipped == summary->wanted;
}

uint64_t stream_summary_lost(const struct stream_summary *summary) {
  return summary->wanted - summary->received - summary->refused - summary->skipped;
}

static double milliseconds(uint64_t nanoseconds) {
  return (double)nanoseconds * 1e-6;
}

static double deadline_ms(const struct stream_summary *summary) {
  return 1000 / summary->fps;
}

static double missed_share(const struct stream_summary *summary) {
  return summary->latency.count ? (double)summary->deadline_misses / (double)summary->latency.count
                                : 0;
}

static double frames_per_second(const struct stream_summary *summary) {
  return summary->seconds > 0 ? (double)summary->received / summary->seconds : 0;
}

// The largest displacement of each region, millimetres. False when the table cannot be made: *why
// says it in a sentence, or is NULL when there is nothing to tell.
static bool measure_regions(const struct stream_summary *summary, const struct body *body,
                            double largest[BODY_REGION_COUNT], const char **why) {
  *why = NULL;
  if (!summary->largest || !summary->received || !body)
    return false;
  if (body_vertices(body) != summary->vertices) {
    *why = "the body has another number of vertices than the session: no table of regions";
    return false;
  }
  uint8_t *regions = malloc(summary->vertices);
  if (!regions) {
    *why = "out of memory for the table of regions";
    return false;
  }
  body_regions(body, regions);
  for (int region = 0; region < BODY_REGION_COUNT; region++)
    largest[region] = 0;
  for (uint32_t v = 0; v < summary->vertices; v++)
    largest[regions[v]] = fmax(largest[regions[v]], 1000 * sqrt((double)summary->largest[v]));
  free(regions);
  return true;
}

static void print_regions(const struct stream_summary *summary, const struct body *body,
                          FILE *out) {
  double largest[BODY_REGION_COUNT];
  const char *why;
  if (!measure_regions(summary, body, largest, &why)) {
    if (why)
      fprintf(out, "%s\n", why);
    return;
  }
  fputs("largest displacement, mm\n", out);
  for (int region = 0; region < BODY_REGION_COUNT; region++)
    fprintf(out, "  %-12s %8.2f\n", body_region_name((enum body_region)region), largest[region]);
}

static void print_latency(const struct stream_summary *summary, FILE *out) {
  fputs("latency, ms       ", out);
  for (size_t i = 0; i < sizeof percentiles / sizeof percentiles[0]; i++)
    fprintf(out, "%s %.2f   ", percentiles[i].name,
            milliseconds(histogram_percentile(&summary->latency, percentiles[i].percent)));
  fprintf(out, "max %.2f\n", milliseconds(summary->latency.max));
  if (summary->real_rate)
    fprintf(out, "over %-12.4g %llu (%.2f%%)\n", deadline_ms(summary),
            (unsigned long long)summary->deadline_misses, 100 * missed_share(summary));
  fprintf(out, "longest gap, ms   %.1f\n", milliseconds(summary->longest_gap));
}

static void print_reconnects(const struct stream_summary *summary, FILE *out) {
  if (summary->reconnects)
    fprintf(out, "reconnects        %llu, %llu from the start; %llu frames sent again\n",
            (unsigned long long)summary->reconnects, (unsigned long long)summary->restarts,
            (unsigned long long)summary->resent);
  if (summary->skipped)
    fprintf(out, "frames skipped    %llu\n", (unsigned long long)summary->skipped);
}

static void print_failures(const struct stream_summary *summary, FILE *out) {
  if (stream_summary_is_ok(summary))
    return;
  fprintf(out, "frames refused    %llu\nframes lost       %llu\n",
          (unsigned long long)summary->refused, (unsigned long long)stream_summary_lost(summary));
  for (int i = STREAM_OK + 1; i < STREAM_OUTCOME_COUNT; i++)
    if (summary->outcomes[i])
      fprintf(out, "sessions failed   %zu (%s)\n", summary->outcomes[i],
              stream_outcome_name((enum stream_outcome)i));
}

void stream_summary_print(const struct stream_summary *summary, const struct body *body,
                          FILE *out) {
  if (summary->opened)
    fprintf(out, "model             %s, %u vertices%s\n", summary->model, summary->vertices,
            summary->trained ? "" : ", NOT TRAINED: its motion means nothing");
  fprintf(out, "sessions          %zu\nframes            %llu of %llu\n", summary->sessions,
          (unsigned long long)summary->received, (unsigned long long)summary->wanted);
  if (summary->received) {
    fprintf(out, "frames/s          %.1f\n", frames_per_second(summary));
    print_latency(summary, out);
    print_reconnects(summary, out);
    print_regions(summary, body, out);
  }
  print_failures(summary, out);
}

static json_t *latency_object(const struct stream_summary *summary) {
  json_t *object = json_object();
  for (size_t i = 0; i < sizeof percentiles / sizeof percentiles[0]; i++)
    json_object_set_new(
        object, percentiles[i].name,
        json_real(milliseconds(histogram_percentile(&summary->latency, percentiles[i].percent))));
  json_object_set_new(object, "max", json_real(milliseconds(summary->latency.max)));
  json_object_set_new(object, "mean", json_real(histogram_mean(&summary->latency) * 1e-6));
  return object;
}

static json_t *regions_object(const struct stream_summary *summary, const struct body *body) {
  double largest[BODY_REGION_COUNT];
  const char *why;
  if (!measure_regions(summary, body, largest, &why))
    return json_null();
  json_t *object = json_object();
  for (int region = 0; region < BODY_REGION_COUNT; region++)
    json_object_set_new(object, body_region_name((enum body_region)region),
                        json_real(largest[region]));
  return object;
}

static json_t *failures_object(const struct stream_summary *summary) {
  json_t *object = json_object();
  for (int i = STREAM_OK + 1; i < STREAM_OUTCOME_COUNT; i++)
    if (summary->outcomes[i])
      json_object_set_new(object, stream_outcome_name((enum stream_outcome)i),
                          json_integer((json_int_t)summary->outcomes[i]));
  return object;
}

static json_t *frames_object(const struct stream_summary *summary) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "frames_wanted",
                   (json_int_t)summary->wanted, "frames_sent", (json_int_t)summary->sent,
                   "frames_received", (json_int_t)summary->received, "frames_refused",
                   (json_int_t)summary->refused, "frames_skipped", (json_int_t)summary->skipped,
                   "frames_lost", (json_int_t)stream_summary_lost(summary), "frames_resent",
                   (json_int_t)summary->resent, "results_repeated", (json_int_t)summary->repeated);
}

static json_t *times_object(const struct stream_summary *summary) {
  json_t *object = json_pack(
      "{s:f, s:f, s:o, s:f, s:I, s:f, s:I, s:I, s:I, s:I, s:f}", "seconds", summary->seconds,
      "frames_per_second", frames_per_second(summary), "latency_ms", latency_object(summary),
      "deadline_ms", deadline_ms(summary), "deadline_misses", (json_int_t)summary->deadline_misses,
      "longest_gap_ms", milliseconds(summary->longest_gap), "reconnects",
      (json_int_t)summary->reconnects, "restarts", (json_int_t)summary->restarts, "bytes_received",
      (json_int_t)summary->bytes_received, "bytes_sent", (json_int_t)summary->bytes_sent,
      "client_cpu_seconds", summary->cpu_seconds);
  if (object && summary->real_rate)
    json_object_set_new(object, "deadlines_missed", json_real(missed_share(summary)));
  else if (object)
    json_object_del(object, "deadline_misses");
  return object;
}

static json_t *session_object(const struct stream_summary *summary, const struct body *body) {
  return json_pack(
      "{s:s, s:f, s:f, s:s, s:s, s:I, s:b, s:o}", "model", summary->model, "fps", summary->fps,
      "delay_seconds", summary->delay, "output", message_output_name(summary->output), "encoding",
      message_encoding_name(summary->encoding), "vertices", (json_int_t)summary->vertices,
      "trained", summary->trained, "largest_displacement_mm", regions_object(summary, body));
}

// The members of the parts, in one flat object that programs read by name.
bool stream_summary_print_json(const struct stream_summary *summary, const struct body *body,
                               FILE *out) {
  json_t *object = json_pack("{s:b, s:I}", "ok", stream_summary_is_ok(summary), "sessions",
                             (json_int_t)summary->sessions);
  json_t *parts[] = {frames_object(summary), times_object(summary), session_object(summary, body)};
  bool ok = object != NULL;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    ok = ok && parts[i] && json_object_update(object, parts[i]) == 0;
    json_decref(parts[i]);
  }
  ok = ok && json_object_set_new(object, "failures", failures_object(summary)) == 0;
  if (ok && summary->first_outcome != STREAM_OK)
    ok = json_object_set_new(object, "failure", json_string(summary->first_text)) == 0;
  ok = ok && json_dumpf(object, out, JSON_REAL_PRECISION(9)) == 0 && fputc('\n', out) >= 0;
  json_decref(object);
  return ok;
}
