// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "utf8.h"

#define LINE_MAX_SIZE 1024

static const char *const level_words[] = {"debug", "info", "warn", "error"};
static enum log_level threshold = LOG_LEVEL_INFO;

bool log_set_level(const char *word) {
  for (size_t i = 0; i < sizeof level_words / sizeof level_words[0]; i++)
    if (!strcmp(word, level_words[i])) {
      threshold = (enum log_level)i;
      return true;
    }
  return false;
}

bool log_enabled(enum log_level level) {
  return level >= threshold;
}

size_t log_escape(const char *text, char *out, size_t size) {
  bool utf8 = utf8_valid((const uint8_t *)text, strlen(text));
  size_t length = 0;
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    char piece[8] = {(char)c, 0};
    if (c == '"' || c == '\\')
      snprintf(piece, sizeof piece, "\\%c", c);
    else if (c < 0x20 || c == 0x7F)
      snprintf(piece, sizeof piece, "\\u%04x", c);
    else if (c >= 0x80 && !utf8)
      piece[0] = '?';
    size_t span = strlen(piece);
    if (length + span >= size)
      break;
    memcpy(out + length, piece, span);
    length += span;
  }
  // A cut must not leave half a character.
  while (length && utf8 && !utf8_valid((const uint8_t *)out, length))
    length--;
  out[length] = 0;
  return length;
}

static void write_line(enum log_level level, const char *event, const char *session,
                       const char *message, unsigned long suppressed) {
  struct timespec now;
  struct tm utc;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);
  char stamp[32], text[LINE_MAX_SIZE - 256], line[LINE_MAX_SIZE];
  strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
  log_escape(message, text, sizeof text);
  int length =
      snprintf(line, sizeof line, "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"event\":\"%s\"",
               stamp, now.tv_nsec / 1000000, level_words[level], event);
  if (session)
    length +=
        snprintf(line + length, sizeof line - (size_t)length, ",\"session\":\"%.40s\"", session);
  if (suppressed)
    length +=
        snprintf(line + length, sizeof line - (size_t)length, ",\"suppressed\":%lu", suppressed);
  length += snprintf(line + length, sizeof line - (size_t)length, ",\"message\":\"%s\"}\n", text);
  // Nobody can be told that standard error is gone.
  ssize_t written = write(STDERR_FILENO, line, (size_t)length);
  (void)written;
}

void log_event(enum log_level level, const char *event, const char *session, const char *format,
               ...) {
  if (!log_enabled(level))
    return;
  char message[LINE_MAX_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  write_line(level, event, session, message, 0);
}

void log_limit_init(struct log_limit *limit, uint64_t now_ms) {
  *limit = (struct log_limit){.refilled_ms = now_ms, .tokens = LOG_BURST};
}

bool log_limit_pass(struct log_limit *limit, uint64_t now_ms, unsigned long *suppressed) {
  limit->tokens += (double)(now_ms - limit->refilled_ms) * LOG_RATE / 1000;
  limit->refilled_ms = now_ms;
  if (limit->tokens > LOG_BURST)
    limit->tokens = LOG_BURST;
  if (limit->tokens < 1) {
    limit->suppressed++;
    return false;
  }
  limit->tokens -= 1;
  *suppressed = limit->suppressed;
  limit->suppressed = 0;
  return true;
}

void log_client_event(struct log_limit *limit, uint64_t now_ms, enum log_level level,
                      const char *event, const char *session, const char *format, ...) {
  unsigned long suppressed = 0;
  if (!log_enabled(level) || !log_limit_pass(limit, now_ms, &suppressed))
    return;
  char message[LINE_MAX_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  write_line(level, event, session, message, suppressed);
}
