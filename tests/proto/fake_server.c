// SPDX-License-Identifier: Apache-2.0
#include "fake_server.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/half.h"
#include "wire/frame.h"
#include "wire/handshake.h"
#include "wire/message.h"

#define NUMBERS_MAX     (3 * FAKE_VERTICES)
#define RESULT_SIZE_MAX (FRAME_HEADER_SIZE + 4 * NUMBERS_MAX)
#define CONNECTIONS_MAX 128

struct connection {
  const struct fake_server *server;
  pthread_t thread;
  int socket;
  size_t index; // in the order of accepting
  bool broken;  // the client did something wrong
  // The session:
  struct message_open open;
  size_t next, answered; // the seq that comes next; results of this connection
  float state;
  unsigned random;
};

struct fake_server {
  enum fake_scenario scenario;
  unsigned seed;
  int listener, port;
  size_t count;
  pthread_t thread;
  struct connection connections[CONNECTIONS_MAX];
};

struct incoming {
  uint8_t opcode;
  size_t size;
  uint8_t payload[MESSAGE_SIZE_MAX];
};

static bool receive(int fd, void *bytes, size_t size) {
  for (size_t got = 0; got < size;) {
    ssize_t piece = recv(fd, (char *)bytes + got, size - got, 0);
    if (piece <= 0)
      return false;
    got += (size_t)piece;
  }
  return true;
}

static bool transmit(int fd, const void *bytes, size_t size) {
  for (size_t sent = 0; sent < size;) {
    ssize_t piece = send(fd, (const char *)bytes + sent, size - sent, MSG_NOSIGNAL);
    if (piece <= 0)
      return false;
    sent += (size_t)piece;
  }
  return true;
}

// The first `sent` bytes of a frame's payload of `size` bytes.
static bool transmit_part(int fd, uint8_t first, const void *payload, size_t size, size_t sent) {
  uint8_t header[4] = {first, size < 126 ? (uint8_t)size : 126, (uint8_t)(size >> 8),
                       (uint8_t)size};
  return transmit(fd, header, size < 126 ? 2 : 4) && transmit(fd, payload, sent);
}

static bool transmit_frame(int fd, uint8_t first, const void *payload, size_t size) {
  return transmit_part(fd, first, payload, size, size);
}

static bool transmit_text(int fd, const char *text) {
  return transmit_frame(fd, 0x81, text, strlen(text));
}

// Reads a client's frame; false at the end of the connection or when the frame is wrong.
static bool receive_frame(struct connection *connection, struct incoming *in) {
  uint8_t header[2], length[2], mask[4];
  if (!receive(connection->socket, header, 2))
    return false;
  in->opcode = header[0] & 15;
  in->size = header[1] & 0x7f;
  bool masked = header[1] & 0x80;
  if (in->size == 126 && receive(connection->socket, length, 2))
    in->size = (size_t)(length[0] << 8 | length[1]);
  if (!masked || !(header[0] & 0x80) || header[0] & 0x70 || in->size > sizeof in->payload) {
    connection->broken = true;
    return false;
  }
  if (!receive(connection->socket, mask, 4) || !receive(connection->socket, in->payload, in->size))
    return false;
  for (size_t i = 0; i < in->size; i++)
    in->payload[i] ^= mask[i & 3];
  return true;
}

// Reads the request and answers it; false when the connection ends here.
static bool shake_hands(struct connection *connection) {
  enum fake_scenario scenario = connection->server->scenario;
  char head[4096];
  size_t size = 0;
  while (size < 4 || memcmp(head + size - 4, "\r\n\r\n", 4) != 0)
    if (size == sizeof head - 1 || !receive(connection->socket, head + size++, 1))
      return false;
  head[size] = 0;
  const char *key = strstr(head, "Sec-WebSocket-Key: ");
  char text[HANDSHAKE_KEY_LENGTH + 1] = "", accept[HANDSHAKE_ACCEPT_LENGTH + 1];
  if (key)
    memcpy(text, key + strlen("Sec-WebSocket-Key: "), HANDSHAKE_KEY_LENGTH);
  connection->broken = !handshake_key_valid(text) || !strstr(head, "\r\nHost: 127.0.0.1:") ||
                       !strstr(head, "Sec-WebSocket-Protocol: dsnet.v1\r\n");
  if (connection->broken || scenario == FAKE_HANGS_UP)
    return false;
  bool refuses_once = scenario == FAKE_REFUSES_ONCE && connection->index == 0;
  if (scenario == FAKE_REFUSES || scenario == FAKE_NOT_HTTP || refuses_once) {
    const char *answer = scenario == FAKE_NOT_HTTP ? "220 mail.example.org ESMTP\r\n\r\n"
                         : refuses_once
                             ? "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n"
                             : "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n\r\n";
    transmit(connection->socket, answer, strlen(answer));
    return false;
  }
  if (scenario == FAKE_NO_ANSWER) {
    receive(connection->socket, text, 1); // until the client gives up
    return false;
  }
  handshake_accept(text, accept);
  accept[0] ^= scenario == FAKE_WRONG_ACCEPT;
  int length = snprintf(
      head, sizeof head,
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
      "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n%s\r\n",
      accept, scenario == FAKE_NO_SUBPROTOCOL ? "" : "Sec-WebSocket-Protocol: dsnet.v1\r\n");
  return transmit(connection->socket, head, (size_t)length);
}

// Tokens of this server are "SEQ:STATE", so that only the right one goes on rightly.
static bool transmit_checkpoint(const struct connection *connection, size_t seq) {
  char text[256];
  snprintf(text, sizeof text, "{\"type\":\"checkpoint\",\"seq\":%zu,\"token\":\"%zu:%a\"}", seq,
           seq, (double)connection->state);
  return transmit_text(connection->socket, text);
}

static void read_token(struct connection *connection) {
  char *end;
  connection->next = strtoul(connection->open.resume, &end, 10) + 1;
  connection->broken |= *end != ':';
  connection->state = *end ? strtof(end + 1, &end) : 0;
  connection->broken |= *end != 0;
}

static bool receive_open(struct connection *connection) {
  struct incoming in;
  struct message message = {0};
  char why[256];
  if (!receive_frame(connection, &in) || in.opcode == 8)
    return false;
  connection->broken =
      in.opcode != 1 ||
      message_read((const char *)in.payload, in.size, &message, why, sizeof why) != WIRE_OK ||
      message.type != MESSAGE_OPEN || message.open.betas[0] != 1.5f;
  connection->open = message.open;
  return !connection->broken;
}

static const char *answer_to_token(enum fake_scenario scenario) {
  return scenario == FAKE_REFUSES_TOKENS ? "expired_token"
         : scenario == FAKE_OTHER_MODEL  ? "wrong_model"
                                         : NULL;
}

static bool transmit_opened(struct connection *connection) {
  char text[512];
  if (connection->open.resume[0])
    read_token(connection);
  snprintf(text, sizeof text,
           "{\"type\":\"opened\",\"session\":\"s\",\"model\":\"m\",\"vertices\":%d,"
           "\"latents\":%d,\"fps\":%g,\"next_seq\":%zu,\"trained\":false,\"delay\":0}",
           FAKE_VERTICES, FAKE_LATENTS, connection->open.fps,
           connection->next + (connection->next && connection->server->scenario == FAKE_FORGETS));
  return transmit_text(connection->socket, text);
}

static bool open_session(struct connection *connection) {
  static const uint8_t early[16] = {0};
  if (!receive_open(connection))
    return false;
  const char *refusal = answer_to_token(connection->server->scenario);
  if (refusal && connection->open.resume[0]) {
    char text[128];
    snprintf(text, sizeof text, "{\"type\":\"error\",\"code\":\"%s\",\"message\":\"no\"}", refusal);
    if (!transmit_text(connection->socket, text) || !receive_open(connection))
      return false;
  }
  switch (connection->server->scenario) {
  case FAKE_NO_MODEL:
    return transmit_text(connection->socket,
                         "{\"type\":\"error\",\"code\":\"no_model\",\"message\":\"no such\"}");
  case FAKE_EARLY_RESULT:
    return transmit_frame(connection->socket, 0x82, early, sizeof early);
  case FAKE_BAD_OPENED:
    return transmit_text(connection->socket, "{\"type\":\"opened\",\"session\":\"s\"}");
  default:
    return transmit_opened(connection);
  }
}

static float next_state(float state, float trans) {
  return 0.5f * state + trans + 1;
}

static float value_of(float state) {
  return state / 4096;
}

float fake_server_value(size_t k) {
  float state = 0;
  for (size_t i = 0; i <= k; i++)
    state = next_state(state, (float)i);
  return value_of(state);
}

static size_t write_numbers(uint8_t *payload, enum frame_encoding encoding, const float *values,
                            size_t count) {
  const float scale = values[0] / 32767; // all of them are equal, or bad
  switch (encoding) {
  case FRAME_F16:
    half_encode(values, payload, count);
    return 2 * count;
  case FRAME_I16:
    memcpy(payload, &scale, sizeof scale);
    for (size_t i = 0; i < count; i++)
      memcpy(payload + 4 + 2 * i, &(int16_t){i % 2 ? -32767 : 32767}, 2);
    return 4 + 2 * count;
  default:
    memcpy(payload, values, 4 * count);
    return 4 * count;
  }
}

// Returns its size. One byte more may be sent.
static size_t make_result(const struct connection *connection, uint8_t result[RESULT_SIZE_MAX + 1],
                          const struct frame_pose *pose) {
  enum fake_scenario scenario = connection->server->scenario;
  struct frame_header header = pose->header;
  header.kind = connection->open.output;
  header.encoding = connection->open.encoding;
  header.count = 0;
  float values[NUMBERS_MAX];
  size_t count = connection->open.output == FRAME_LATENT ? FAKE_LATENTS : NUMBERS_MAX;
  for (size_t i = 0; i < count; i++)
    values[i] = value_of(connection->state);
  if (header.seq == 3) {
    header.seq += scenario == FAKE_WRONG_SEQ;
    header.timestamp += scenario == FAKE_WRONG_TIMESTAMP ? 1e-3 : 0;
    header.kind = scenario == FAKE_WRONG_KIND ? FRAME_VERTICES : header.kind;
    values[count / 2] = scenario == FAKE_NAN ? NAN : values[count / 2];
  }
  frame_header_write(&header, result);
  return FRAME_HEADER_SIZE +
         write_numbers(result + FRAME_HEADER_SIZE, connection->open.encoding, values, count);
}

static bool ping_and_fragment(struct connection *connection, const uint8_t *result, size_t size) {
  return transmit_frame(connection->socket, 0x02, result, 10) &&
         transmit_frame(connection->socket, 0x89, "ping", 4) &&
         transmit_frame(connection->socket, 0x00, result + 10, 0) &&
         transmit_frame(connection->socket, 0x80, result + 10, size - 10);
}

static bool restart(const struct connection *connection) {
  static const uint8_t close[] = {0x03, 0xf4, 'b', 'y', 'e'};
  transmit_frame(connection->socket, 0x88, close, sizeof close);
  return false;
}

// Answers frame 3 in the scenario's own way. False when that has none, and then nothing was sent;
// *goes_on is whether the connection does.
static bool answer_third(const struct connection *connection, const uint8_t *result, size_t size,
                         bool *goes_on) {
  int fd = connection->socket;
  *goes_on = true;
  switch (connection->server->scenario) {
  case FAKE_CLOSES:
    *goes_on = restart(connection);
    return true;
  case FAKE_DROPS:
    *goes_on = false;
    return true;
  case FAKE_SHORT:
    return transmit_frame(fd, 0x82, result, size - 1);
  case FAKE_LONG:
    return transmit_frame(fd, 0x82, result, size + 1);
  case FAKE_MASKED:
    return transmit(fd, "\x82\x80", 2);
  case FAKE_REFUSES_FRAME:
  case FAKE_REFUSES_AND_DROPS:
    return transmit_text(fd, "{\"type\":\"error\",\"seq\":3,\"code\":\"out_of_range\","
                             "\"message\":\"too far\"}");
  case FAKE_REFUSES_UNKNOWN:
    return transmit_text(fd, "{\"type\":\"error\",\"seq\":4000,\"code\":\"bad_seq\","
                             "\"message\":\"?\"}");
  case FAKE_ERROR:
    return transmit_text(fd, "{\"type\":\"error\",\"code\":\"internal\",\"message\":\"oops\"}");
  default:
    return false;
  }
}

static bool drops_randomly(enum fake_scenario scenario) {
  return scenario == FAKE_DROPS_RANDOMLY || scenario == FAKE_REFUSES_TOKENS ||
         scenario == FAKE_OTHER_MODEL || scenario == FAKE_FORGETS;
}

// Results after which the connection is dropped.
static size_t patience(const struct connection *connection) {
  size_t index = connection->index;
  switch (connection->server->scenario) {
  case FAKE_REFUSES_TOKENS: // each time it gets further from the start
    return 5 + connection->random % 12 + 12 * index;
  case FAKE_REFUSES_AND_DROPS:
    return 8 * (index + 1);
  default: // more than lie between two checkpoints, so that there is progress
    return 5 + connection->random % 12;
  }
}

// Sends a result, with what comes before and after it; false to end the connection.
static bool send_result(struct connection *connection, const uint8_t *result, size_t size,
                        size_t seq) {
  enum fake_scenario scenario = connection->server->scenario;
  int fd = connection->socket;
  bool lasts = connection->answered < patience(connection);
  if (drops_randomly(scenario) && !lasts) {
    transmit_part(fd, 0x82, result, size, (size_t)rand_r(&connection->random) % size);
    return false;
  }
  if (scenario == FAKE_REFUSES_AND_DROPS && !lasts)
    return false;
  if (scenario == FAKE_EARLY_CHECKPOINT && connection->index == 0 && connection->answered == 10)
    return transmit_checkpoint(connection, seq) && restart(connection);
  if (scenario == FAKE_PINGS ? !ping_and_fragment(connection, result, size)
                             : !transmit_frame(fd, 0x82, result, size))
    return false;
  connection->answered++;
  uint32_t every = connection->open.checkpoint_every;
  if (every && (seq + 1) % every == 0 && !transmit_checkpoint(connection, seq))
    return false;
  if (scenario == FAKE_RESTARTS && connection->answered == 10)
    return transmit_checkpoint(connection, seq) && restart(connection);
  return true;
}

// Answers one pose; false to end the connection.
static bool answer(struct connection *connection, const struct frame_pose *pose) {
  enum fake_scenario scenario = connection->server->scenario;
  uint8_t result[RESULT_SIZE_MAX + 1] = {0};
  bool goes_on;
  connection->state = next_state(connection->state, pose->trans[0]);
  size_t size = make_result(connection, result, pose), seq = pose->header.seq;
  if (seq == 3 && answer_third(connection, result, size, &goes_on))
    return goes_on;
  if (scenario == FAKE_SKIPS_AND_RESTARTS && seq % 12 == 11)
    return transmit_checkpoint(connection, seq) && restart(connection);
  bool skips = scenario == FAKE_SKIPS || scenario == FAKE_SKIPS_AND_RESTARTS;
  if ((scenario == FAKE_STALLS && seq >= 3) || (skips && seq % 3 != 0))
    return true;
  return send_result(connection, result, size, seq);
}

static void serve_frames(struct connection *connection) {
  enum fake_scenario scenario = connection->server->scenario;
  struct incoming in;
  size_t pongs = 0;
  while (receive_frame(connection, &in)) {
    struct frame_pose pose;
    if (in.opcode == 8) {
      if (scenario != FAKE_NO_CLOSE)
        transmit_frame(connection->socket, 0x88, in.payload, in.size);
      else
        receive(connection->socket, in.payload, 1); // until the client gives up
      break;
    }
    if (in.opcode == 10) {
      pongs++;
      connection->broken |= in.size != 4 || memcmp(in.payload, "ping", 4) != 0;
      continue;
    }
    if (in.opcode != 2 || frame_pose_read(in.payload, in.size, &pose) != WIRE_OK ||
        pose.header.seq != connection->next || pose.trans[0] != (float)connection->next ||
        pose.header.timestamp != (double)connection->next / connection->open.fps) {
      connection->broken = true;
      break;
    }
    connection->next++;
    if (!answer(connection, &pose))
      break;
  }
  connection->broken |= scenario == FAKE_PINGS && (pongs == 0 || pongs > connection->next);
}

static void *serve(void *argument) {
  struct connection *connection = argument;
  setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  if (shake_hands(connection) && open_session(connection))
    serve_frames(connection);
  // The client's last words are read before closing, so that TCP does not reset what was sent.
  shutdown(connection->socket, SHUT_WR);
  char rest[4096];
  while (recv(connection->socket, rest, sizeof rest, 0) > 0)
    ;
  close(connection->socket);
  return NULL;
}

// Until fake_server_stop shuts the listener down.
static void *accept_all(void *argument) {
  struct fake_server *server = argument;
  for (int fd; (fd = accept(server->listener, NULL, NULL)) >= 0;) {
    if (server->count == CONNECTIONS_MAX)
      abort(); // the client would go on for ever
    struct connection *connection = &server->connections[server->count];
    connection->server = server;
    connection->socket = fd;
    connection->index = server->count++;
    connection->random = server->seed + (unsigned)connection->index;
    rand_r(&connection->random);
    if (pthread_create(&connection->thread, NULL, serve, connection) != 0)
      abort();
  }
  return NULL;
}

static int listen_somewhere(int *port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 16) != 0 ||
      getsockname(fd, (struct sockaddr *)&address, &size) != 0)
    abort();
  *port = ntohs(address.sin_port);
  return fd;
}

struct fake_server *fake_server_start(enum fake_scenario scenario, unsigned seed) {
  struct fake_server *server = calloc(1, sizeof *server);
  if (!server)
    abort();
  server->scenario = scenario;
  server->seed = seed;
  server->listener = listen_somewhere(&server->port);
  if (pthread_create(&server->thread, NULL, accept_all, server) != 0)
    abort();
  return server;
}

int fake_server_port(const struct fake_server *server) {
  return server->port;
}

size_t fake_server_stop(struct fake_server *server, size_t *connections) {
  size_t broken = 0;
  shutdown(server->listener, SHUT_RDWR);
  pthread_join(server->thread, NULL);
  for (size_t i = 0; i < server->count; i++) {
    pthread_join(server->connections[i].thread, NULL);
    broken += server->connections[i].broken;
  }
  if (connections)
    *connections = server->count;
  close(server->listener);
  free(server);
  return broken;
}

int fake_server_unused_port(void) {
  int port, fd = listen_somewhere(&port);
  close(fd);
  return port;
}
