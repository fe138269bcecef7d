// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TERMINAL_INTERVAL 0.2
#define LOG_INTERVAL      30.0
#define BAR_WIDTH         24

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void progress_start(struct progress *progress, const char *unit, size_t total) {
  *progress = (struct progress){.unit = unit, .total = total, .started = now()};
  progress->printed = progress->started;
  progress->terminal = isatty(STDERR_FILENO);
}

double progress_seconds(const struct progress *progress) {
  return now() - progress->started;
}

static void print_duration(double seconds) {
  long left = (long)(seconds + 0.5);
  if (left >= 3600)
    fprintf(stderr, "%ld h %02ld min", left / 3600, left / 60 % 60);
  else if (left >= 60)
    fprintf(stderr, "%ld min %02ld s", left / 60, left % 60);
  else
    fprintf(stderr, "%ld s", left);
}

void progress_update(struct progress *progress, size_t done, const char *detail) {
  double time = now();
  if (time - progress->printed < (progress->terminal ? TERMINAL_INTERVAL : LOG_INTERVAL))
    return;
  progress->printed = time;
  double share = progress->total ? (double)done / (double)progress->total : 1;
  double rate = (double)done / (time - progress->started);
  if (progress->terminal) {
    fputs("\r[", stderr);
    for (int i = 0; i < BAR_WIDTH; i++)
      fputc(i < share * BAR_WIDTH ? '#' : ' ', stderr);
    fputs("] ", stderr);
  }
  fprintf(stderr, "%3.0f%%  %zu/%zu %s, %.0f/s, ", 100 * share, done, progress->total,
          progress->unit, rate);
  if (rate > 0)
    print_duration((double)(progress->total - done) / rate);
  fprintf(stderr, "%s%s%s%s", rate > 0 ? " left" : "starting", detail ? ", " : "",
          detail ? detail : "", progress->terminal ? "\x1b[K" : "\n");
  fflush(stderr);
}

void progress_finish(struct progress *progress) {
  if (progress->terminal)
    fputs("\r\x1b[K", stderr);
}
