// SPDX-License-Identifier: Apache-2.0
// Errors of the library: one enum of negative codes, one table of texts, and an optional record in
// which the first error of a call chain is kept. Nothing in the library prints or exits.
#ifndef DSNET_BASE_ERROR_H
#define DSNET_BASE_ERROR_H

// name, number, what it means to a caller that only has the code
#define DSNET_ERRORS(X)                                                                            \
  X(NOMEM, -1, "out of memory")                                                                    \
  X(IO, -2, "input or output failed")                                                              \
  X(FORMAT, -3, "malformed data")                                                                  \
  X(MISSING, -4, "a required item is missing")                                                     \
  X(VALUE, -5, "a value is out of range or not finite")                                            \
  X(MISMATCH, -6, "two inputs do not belong together")                                             \
  X(LIMIT, -7, "a size exceeds its limit")                                                         \
  X(UNSUPPORTED, -8, "a valid form that is not supported")                                         \
  X(USAGE, -9, "wrong usage")                                                                      \
  X(CANCELLED, -10, "stopped on request")

enum dsnet_code {
  DSNET_OK = 0,
#define X(name, number, text) DSNET_E##name = (number),
  DSNET_ERRORS(X)
#undef X
};

// Caller-owned; start from {0}. The functions of the library never clear it: the first error wins,
// so one record can be passed through a whole chain of calls. NULL is allowed wherever one is
// taken.
struct dsnet_error {
  enum dsnet_code code; // DSNET_OK while nothing has failed
  char text[384];       // one line of UTF-8 without a newline, names the file, array or option
};

// The constant text of a code.
const char *dsnet_code_text(int code);

// Records the error unless one is recorded already. `error` may be NULL.
void dsnet_error_record(struct dsnet_error *error, enum dsnet_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline int dsnet_code_value(enum dsnet_code code) {
  return code;
}

// The same as an expression whose value is `code` (a constant, named twice), so that a failing
// function can end with `return dsnet_error_set(...)` and the compiler sees that it failed.
#define dsnet_error_set(error, code, ...)                                                          \
  (dsnet_error_record(error, code, __VA_ARGS__), dsnet_code_value(code))

// Puts "prefix: " before the recorded text, so that a caller can add the file a failure was in.
// Does nothing when no error is recorded. Returns the recorded code.
int dsnet_error_prefix(struct dsnet_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
