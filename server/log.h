// SPDX-License-Identifier: Apache-2.0
// The log: one JSON object per line on standard error, written by one write so that lines of
// several threads never mix. The level is the only state and is set once, before any thread starts.
#ifndef DSNET_SERVER_LOG_H
#define DSNET_SERVER_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

// "debug", "info", "warn" or "error"; false when the word is none of them.
bool log_set_level(const char *word);
bool log_enabled(enum log_level level);

// `event` is a constant identifier (session_opened); `session` names the session or is NULL. Any
// thread. A line that would be longer than 1 kB is cut.
void log_event(enum log_level level, const char *event, const char *session, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

// What a client can cause as often as it likes: at most LOG_BURST lines at once and LOG_RATE a
// second. The next line that passes says how many were left out. One thread per limit.
#define LOG_BURST 20
#define LOG_RATE  5

struct log_limit {
  uint64_t refilled_ms; // when tokens were last added
  double tokens;
  unsigned long suppressed;
};

void log_limit_init(struct log_limit *limit, uint64_t now_ms);
// Whether a line may pass at this time; *suppressed is how many did not since the last that passed.
bool log_limit_pass(struct log_limit *limit, uint64_t now_ms, unsigned long *suppressed);
void log_client_event(struct log_limit *limit, uint64_t now_ms, enum log_level level,
                      const char *event, const char *session, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

// Writes `text` as the inside of a JSON string: quotes, backslashes and control characters escaped,
// bytes that are not ASCII as they are when they form UTF-8 and as '?' otherwise. Cut to fit; the
// result always ends with a NUL. Returns its length.
size_t log_escape(const char *text, char *out, size_t size);

#endif
