// SPDX-License-Identifier: Apache-2.0
#include "stream/display.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#define LINE_MAX_LENGTH 256

static const uint64_t second = 1000000000;

static FILE *out_of(const struct display *display) {
  return display->options.out ? display->options.out : stderr;
}

static bool is_terminal(const struct display *display) {
  return display->options.mode == DISPLAY_TERMINAL;
}

void display_record(struct display *display, uint64_t latency) {
  if (display->options.mode != DISPLAY_OFF)
    histogram_record(&display->latency, latency);
}

// One of eight heights for each value, on a scale from 0 to the largest.
static void write_sparks(const struct display *display, char *text, size_t size) {
  static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static const char *const plain[] = {".", ".", ":", ":", "-", "=", "+", "#"};
  const char *const *marks = display->options.unicode ? blocks : plain;
  double largest = 0;
  for (size_t i = 0; i < DISPLAY_SPARKS; i++)
    largest = fmax(largest, display->sparks[i]);
  text[0] = 0;
  for (size_t i = 0; i < DISPLAY_SPARKS; i++) {
    int height = largest > 0 ? (int)(7.99 * display->sparks[i] / largest) : 0;
    strncat(text, marks[height], size - strlen(text) - 1);
  }
}

static double percentile_ms(const struct display *display, double percent) {
  return (double)histogram_percentile(&display->latency, percent) * 1e-6;
}

// Returns the length; what follows the latencies comes last, so that a narrow terminal loses it.
static int write_line(const struct display *display, const struct stream_summary *summary,
                      double seconds, char *line, size_t size) {
  char sparks[4 * DISPLAY_SPARKS + 2] = "";
  if (is_terminal(display))
    write_sparks(display, sparks + 1, sizeof sparks - 1), sparks[0] = ' ';
  double rate = seconds > 0 ? (double)(summary->received - display->received) / seconds : 0;
  return snprintf(line, size,
                  "%llu of %llu frames, %.1f/s, p50 %.2f ms, p99 %.2f ms%s, skipped %llu, "
                  "reconnects %llu",
                  (unsigned long long)summary->received, (unsigned long long)summary->wanted, rate,
                  percentile_ms(display, 50), percentile_ms(display, 99), sparks,
                  (unsigned long long)summary->skipped, (unsigned long long)summary->reconnects);
}

// Cuts the line to the terminal's width. Each byte that starts a character takes one column.
static void fit(const struct display *display, char *line) {
  struct winsize window;
  if (ioctl(fileno(out_of(display)), TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
    return;
  size_t columns = 0;
  for (char *at = line; *at; at++) {
    bool starts = (*at & 0xc0) != 0x80;
    if (starts && ++columns == window.ws_col) {
      *at = 0;
      return;
    }
  }
}

static void show(struct display *display, const struct stream_summary *summary, double seconds) {
  char line[LINE_MAX_LENGTH];
  memmove(display->sparks, display->sparks + 1, sizeof display->sparks - sizeof *display->sparks);
  display->sparks[DISPLAY_SPARKS - 1] = percentile_ms(display, 99);
  write_line(display, summary, seconds, line, sizeof line);
  if (is_terminal(display))
    fit(display, line);
  fprintf(out_of(display), is_terminal(display) ? "\r\033[K%s" : "dsnet-stream: %s\n", line);
  fflush(out_of(display));
}

void display_update(struct display *display, const struct stream_summary *summary, uint64_t now) {
  uint64_t period = is_terminal(display) ? second / 4 : 10 * second;
  if (!display->shown)
    display->shown = now;
  if (display->options.mode == DISPLAY_OFF || now - display->shown < period)
    return;
  show(display, summary, (double)(now - display->shown) * 1e-9);
  memset(&display->latency, 0, sizeof display->latency);
  display->received = summary->received;
  display->shown = now;
}

void display_note(struct display *display, uint64_t now, const char *format, ...) {
  if (display->options.mode == DISPLAY_OFF)
    return;
  if (display->noted && now - display->noted < second / 4) {
    display->unnoted++;
    return;
  }
  FILE *out = out_of(display);
  va_list arguments;
  va_start(arguments, format);
  fputs(is_terminal(display) ? "\r\033[Kdsnet-stream: " : "dsnet-stream: ", out);
  vfprintf(out, format, arguments);
  va_end(arguments);
  if (display->unnoted)
    fprintf(out, " (and %llu more such lines)", (unsigned long long)display->unnoted);
  fputc('\n', out);
  fflush(out);
  display->noted = now;
  display->unnoted = 0;
}

void display_end(struct display *display) {
  if (is_terminal(display))
    fputs("\r\033[K", out_of(display));
}
