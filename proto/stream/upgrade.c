// SPDX-License-Identifier: Apache-2.0
#include "stream/upgrade.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "wire/handshake.h"
#include "wire/message.h"
#include "wire/text.h"

#define RETRY_AFTER_MAX 1e9 // seconds, some thirty years

size_t upgrade_request_write(char *out, size_t size, const struct stream_url *url, const char *key,
                             const char *token) {
  int length = snprintf(out, size,
                        "GET %s HTTP/1.1\r\n"
                        "Host: %s\r\n"
                        "Upgrade: websocket\r\n"
                        "Connection: Upgrade\r\n"
                        "Sec-WebSocket-Key: %s\r\n"
                        "Sec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Protocol: " WIRE_SUBPROTOCOL "\r\n"
                        "%s%s%s\r\n",
                        url->path, url->authority, key, token ? "Authorization: Bearer " : "",
                        token ? token : "", token ? "\r\n" : "");
  return length < 0 || (size_t)length >= size ? 0 : (size_t)length;
}

__attribute__((format(printf, 3, 4))) static enum upgrade_status
answer(struct upgrade_response *response, enum upgrade_status status, const char *format, ...) {
  char line[sizeof response->text];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text_copy_line(response->text, sizeof response->text, line);
  return status;
}

// One line of the head: from `at`, without its CRLF. The head is NUL-terminated by head_copy.
static char *next_line(char **at) {
  char *line = *at, *end = strstr(line, "\r\n");
  if (!end)
    return NULL;
  *end = 0;
  *at = end + 2;
  return line;
}

// "HTTP/1.x NNN reason" -> NNN, and the reason; 0 when it is not that.
static int parse_status(const char *line, const char **reason) {
  if (strncmp(line, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)line[7]) || line[8] != ' ')
    return 0;
  int status = 0;
  for (int i = 9; i < 12; i++) {
    if (!isdigit((unsigned char)line[i]))
      return 0;
    status = 10 * status + (line[i] - '0');
  }
  *reason = line[12] == ' ' ? line + 13 : "";
  return line[12] == ' ' || line[12] == 0 ? status : 0;
}

// The headers that matter, each NULL when absent.
struct headers {
  const char *upgrade, *connection, *accept, *protocol, *extensions, *retry_after;
  bool repeated; // one of them stands twice
};

static const char **header_slot(struct headers *headers, const char *name) {
  const struct {
    const char *name;
    const char **slot;
  } slots[] = {
      {"Upgrade", &headers->upgrade},
      {"Connection", &headers->connection},
      {"Sec-WebSocket-Accept", &headers->accept},
      {"Sec-WebSocket-Protocol", &headers->protocol},
      {"Sec-WebSocket-Extensions", &headers->extensions},
      {"Retry-After", &headers->retry_after},
  };
  for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
    if (!strcasecmp(slots[i].name, name))
      return slots[i].slot;
  return NULL;
}

static char *trim(char *text) {
  text += strspn(text, " \t");
  size_t length = strlen(text);
  while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
    text[--length] = 0;
  return text;
}

// False when a line is not "name: value".
static bool parse_headers(char *at, struct headers *headers) {
  for (char *line; (line = next_line(&at));) {
    char *colon = strchr(line, ':');
    if (!colon || colon == line || strcspn(line, " \t") < (size_t)(colon - line))
      return false;
    *colon = 0;
    const char **slot = header_slot(headers, line);
    if (!slot)
      continue;
    headers->repeated |= *slot != NULL;
    *slot = trim(colon + 1);
  }
  return true;
}

// Whether a comma-separated list has a token, in any case.
static bool has_token(const char *list, const char *token) {
  while (list && *list) {
    list += strspn(list, ", \t");
    size_t length = strcspn(list, ", \t");
    if (length == strlen(token) && !strncasecmp(list, token, length))
      return true;
    list += length;
  }
  return false;
}

static enum upgrade_status check_upgrade(const struct headers *headers, const char *key,
                                         struct upgrade_response *response) {
  char accept[HANDSHAKE_ACCEPT_LENGTH + 1];
  handshake_accept(key, accept);
  if (headers->repeated)
    return answer(response, UPGRADE_BAD, "the server's handshake repeats a header");
  if (!headers->upgrade || strcasecmp(headers->upgrade, "websocket") != 0)
    return answer(response, UPGRADE_BAD, "the server's handshake lacks \"Upgrade: websocket\"");
  if (!has_token(headers->connection, "upgrade"))
    return answer(response, UPGRADE_BAD, "the server's handshake lacks \"Connection: Upgrade\"");
  if (!headers->accept || strcmp(headers->accept, accept) != 0)
    return answer(response, UPGRADE_BAD,
                  "the server's Sec-WebSocket-Accept does not answer this client's key");
  if (!headers->protocol)
    return answer(response, UPGRADE_BAD, "the server does not speak " WIRE_SUBPROTOCOL);
  if (strcmp(headers->protocol, WIRE_SUBPROTOCOL) != 0)
    return answer(response, UPGRADE_BAD, "the server chose the subprotocol \"%s\", not %s",
                  headers->protocol, WIRE_SUBPROTOCOL);
  if (headers->extensions)
    return answer(response, UPGRADE_BAD, "the server uses an extension nobody asked for: \"%s\"",
                  headers->extensions);
  return UPGRADE_DONE;
}

// Seconds from now that a Retry-After names as a number or as a date (RFC 9110, section 10.2.3); 0
// for what is neither, or past.
static double seconds_of(const char *retry_after) {
  struct tm date = {0};
  const char *end = strptime(retry_after, "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (end && !*end) {
    double seconds = difftime(timegm(&date), time(NULL));
    return seconds > 0 ? fmin(seconds, RETRY_AFTER_MAX) : 0;
  }
  size_t digits = strspn(retry_after, "0123456789");
  return digits && digits < 10 && !retry_after[digits] ? strtod(retry_after, NULL) : 0;
}

static enum upgrade_status refuse(struct upgrade_response *response, const char *reason,
                                  const struct headers *headers) {
  const char *after = headers->retry_after, *hint = "";
  if (after)
    response->retry_after = seconds_of(after);
  if (response->status == 401 || response->status == 403)
    hint = " (does it want a --token?)";
  else if (response->status < 400 || response->status == 404 || response->status == 405)
    hint = " (is it a dsnetd, and the path its stream's?)";
  return answer(response, UPGRADE_REFUSED, "the server answered %d%s%s%s%s%s", response->status,
                *reason ? " " : "", reason, after ? ", retry after " : "", after ? after : "",
                hint);
}

// Whether what has come can still become "HTTP/1.".
static bool starts_as_http(const char *bytes, size_t size) {
  static const char start[] = "HTTP/1.";
  size_t length = strlen(start);
  return memcmp(bytes, start, size < length ? size : length) == 0;
}

enum upgrade_status upgrade_response_read(const char *bytes, size_t size, const char *key,
                                          struct upgrade_response *response) {
  memset(response, 0, sizeof *response);
  // A TLS record of type alert or handshake and major version 3 (RFC 8446, section 5.1).
  if (size >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 3)
    return answer(response, UPGRADE_BAD,
                  "the server speaks TLS; address the one behind the balancer, or a local TLS "
                  "proxy");
  if (!starts_as_http(bytes, size))
    return answer(response, UPGRADE_BAD, "the server's answer is not HTTP: it is no dsnetd");
  size_t limit = size < UPGRADE_HEAD_MAX ? size : UPGRADE_HEAD_MAX;
  const char *end = memmem(bytes, limit, "\r\n\r\n", 4);
  if (!end && size < UPGRADE_HEAD_MAX)
    return UPGRADE_MORE;
  if (!end)
    return answer(response, UPGRADE_BAD, "the server's handshake is longer than %d bytes",
                  UPGRADE_HEAD_MAX);
  char head[UPGRADE_HEAD_MAX + 1];
  size_t length = (size_t)(end - bytes) + 2; // with the last line's CRLF
  memcpy(head, bytes, length);
  head[length] = 0;
  response->head_size = length + 2;
  const char *reason = "";
  char *at = head;
  struct headers headers = {0};
  // A NUL byte would end the text early and hide what comes after it.
  bool text = !memchr(head, 0, length);
  if (text)
    response->status = parse_status(next_line(&at), &reason);
  if (!response->status || !parse_headers(at, &headers))
    return answer(response, UPGRADE_BAD, "the server's answer is not HTTP");
  if (response->status != 101)
    return refuse(response, reason, &headers);
  return check_upgrade(&headers, key, response);
}
