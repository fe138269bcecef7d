// SPDX-License-Identifier: Apache-2.0
#include "metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "infer.h"
#include "jobs.h"

static buckets_bounds latency_bounds = {0.0005, 0.001, 0.002, 0.004, 0.008, 0.0167,
                                        0.033,  0.066, 0.13,  0.5,   2};

static const char *const refusal_labels[] = {[REFUSAL_NONE] = "",
#define X(name, label, text) [REFUSAL_##name] = label,
                                             REFUSALS(X)
#undef X
};

const char *refusal_text(enum refusal refusal) {
  static const char *const texts[] = {[REFUSAL_NONE] = "",
#define X(name, label, text) [REFUSAL_##name] = text,
                                      REFUSALS(X)
#undef X
  };
  return texts[refusal];
}

void metrics_add_latency(struct metrics *metrics, double seconds) {
  buckets_add(&metrics->latency, latency_bounds, seconds);
}

void metrics_add(struct metrics *sum, const struct metrics *metrics) {
#define X(member, name, help) sum->member += metrics->member;
  METRICS_COUNTERS(X)
#undef X
  for (int i = 0; i < REFUSAL_COUNT; i++)
    sum->refused[i] += metrics->refused[i];
  for (int i = 0; i <= WIRE_INTERNAL; i++)
    sum->errors[i] += metrics->errors[i];
  buckets_merge(&sum->latency, &metrics->latency);
}

// Writing ----------------------------------------------------------------------------------------

static void head(FILE *out, const char *name, const char *type, const char *help) {
  fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_gauge(FILE *out, const char *name, const char *help, double value) {
  head(out, name, "gauge", help);
  fprintf(out, "%s %.17g\n", name, value);
}

static void write_counter(FILE *out, const char *name, const char *help, double value) {
  head(out, name, "counter", help);
  fprintf(out, "%s %.17g\n", name, value);
}

static void write_histogram(FILE *out, const char *name, const char *help, buckets_bounds bounds,
                            const struct buckets *buckets) {
  uint64_t below = 0;
  head(out, name, "histogram", help);
  for (size_t i = 0; i < BUCKETS - 1; i++) {
    below += buckets->counts[i];
    fprintf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, bounds[i], below);
  }
  below += buckets->counts[BUCKETS - 1];
  fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.17g\n%s_count %" PRIu64 "\n", name,
          below, name, buckets->sum, name, below);
}

static void write_counters(FILE *out, const struct metrics *metrics) {
#define X(member, name, help) write_counter(out, name, help, (double)metrics->member);
  METRICS_COUNTERS(X)
#undef X
  head(out, "dsnet_streams_refused_total", "counter", "Streams refused before the upgrade.");
  for (int i = REFUSAL_NONE + 1; i < REFUSAL_COUNT; i++)
    fprintf(out, "dsnet_streams_refused_total{reason=\"%s\"} %" PRIu64 "\n", refusal_labels[i],
            metrics->refused[i]);
  head(out, "dsnet_errors_total", "counter", "Error messages sent, by code.");
  for (int i = WIRE_OK + 1; i <= WIRE_INTERNAL; i++)
    fprintf(out, "dsnet_errors_total{code=\"%s\"} %" PRIu64 "\n",
            wire_error_code((enum wire_error)i), metrics->errors[i]);
}

static size_t open_descriptors(void) {
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder && readdir(folder))
    count++;
  if (folder)
    closedir(folder);
  return count > 3 ? count - 3 : 0; // ".", ".." and the folder's own
}

static double resident_bytes(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%*u %lu", &pages) != 1)
    pages = 0;
  if (file)
    fclose(file);
  return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double seconds_of(struct timeval time) {
  return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static void write_process(FILE *out, double started) {
  struct rusage usage;
  struct rlimit limit;
  getrusage(RUSAGE_SELF, &usage);
  write_counter(out, "process_cpu_seconds_total", "Processor time spent.",
                seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
  write_gauge(out, "process_resident_memory_bytes", "Resident memory.", resident_bytes());
  write_gauge(out, "process_open_fds", "Open descriptors.", (double)open_descriptors());
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    write_gauge(out, "process_max_fds", "Descriptors it may have.", (double)limit.rlim_cur);
  write_gauge(out, "process_start_time_seconds", "When it started, since the epoch.", started);
}

static void write_infer(FILE *out, const struct infer_counts *counts) {
  write_counter(out, "dsnet_infer_requests_total", "Requests of the Open Inference Protocol.",
                (double)counts->requests);
  write_counter(out, "dsnet_infer_failed_total", "Those that were refused or failed.",
                (double)counts->failed);
  write_counter(out, "dsnet_infer_frames_total", "Poses of those that were answered.",
                (double)counts->frames);
  write_gauge(out, "dsnet_infer_sequences", "Sequences remembered.", (double)counts->sequences);
  write_gauge(out, "dsnet_infer_waiting", "Requests waiting for those under way.",
              (double)counts->waiting);
  write_gauge(out, "dsnet_infer_held_bytes", "Memory of their bodies and responses.",
              (double)counts->held);
}

static void write_jobs(FILE *out, const struct jobs_counts *counts) {
  write_gauge(out, "dsnet_jobs_available", "Whether jobs are taken: the data folder is usable.",
              counts->available);
  write_gauge(out, "dsnet_jobs_waiting", "Jobs queued or running.", (double)counts->waiting);
  write_counter(out, "dsnet_jobs_done_total", "Jobs computed.", (double)counts->done);
  write_counter(out, "dsnet_jobs_failed_total", "Jobs whose clip or disk was bad.",
                (double)counts->failed);
  write_counter(out, "dsnet_jobs_frames_total", "Frames of the jobs computed.",
                (double)counts->frames);
}

char *metrics_write(const struct metrics *metrics, const struct metrics_gauges *gauges,
                    const struct batcher_counts *counts, const struct infer_counts *infer,
                    const struct jobs_counts *jobs) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out)
    return NULL;
  head(out, "dsnet_build_info", "gauge", "Facts about the build.");
  fprintf(out, "dsnet_build_info{version=\"%s\"} 1\n", DSNET_VERSION);
  write_gauge(out, "dsnet_ready", "Whether streams can be served.", gauges->ready);
  write_gauge(out, "dsnet_overloaded", "Whether new streams are refused because frames are late.",
              gauges->overloaded);
  write_gauge(out, "dsnet_sessions", "Sessions open.", (double)gauges->sessions);
  write_gauge(out, "dsnet_sessions_max", "Streams served at most.", (double)gauges->max_sessions);
  write_gauge(out, "dsnet_streams", "Stream connections, sessions or not.",
              (double)gauges->streams);
  write_gauge(out, "dsnet_frames_in_flight", "Poses taken whose results are not sent yet.",
              (double)gauges->in_flight);
  write_counters(out, metrics);
  write_histogram(out, "dsnet_latency_seconds",
                  "From a pose's arrival to its result being queued for the socket.",
                  latency_bounds, &metrics->latency);
  write_histogram(out, "dsnet_batch_size", "Sessions stepped at once.", batcher_batch_bounds,
                  &counts->batch_size);
  write_histogram(out, "dsnet_step_seconds", "Time of a batch, encoding included.",
                  batcher_step_bounds, &counts->step_seconds);
  write_infer(out, infer);
  write_jobs(out, jobs);
  write_process(out, gauges->started);
  if (fclose(out) == 0)
    return text;
  free(text);
  return NULL;
}
