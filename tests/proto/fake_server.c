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

#include "wire/frame.h"
#include "wire/handshake.h"
#include "wire/message.h"

#define RESULT_SIZE (FRAME_HEADER_SIZE + 12 * FAKE_VERTICES)

struct connection {
  const struct fake_server *server;
  pthread_t thread;
  int socket;
  bool broken; // the client did something wrong
};

struct fake_server {
  enum fake_scenario scenario;
  int listener, port;
  size_t count;
  pthread_t thread;
  struct connection connections[8];
};

struct incoming {
  uint8_t opcode;
  size_t size;
  uint8_t payload[4096];
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

static bool transmit_frame(int fd, uint8_t first, const void *payload, size_t size) {
  uint8_t header[4] = {first, size < 126 ? (uint8_t)size : 126, (uint8_t)(size >> 8),
                       (uint8_t)size};
  return transmit(fd, header, size < 126 ? 2 : 4) && transmit(fd, payload, size);
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
  if (scenario == FAKE_REFUSES || scenario == FAKE_NOT_HTTP) {
    const char *answer = scenario == FAKE_REFUSES
                             ? "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n\r\n"
                             : "220 mail.example.org ESMTP\r\n\r\n";
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

static bool open_session(struct connection *connection) {
  struct incoming in;
  struct message message = {0};
  char text[512], why[256];
  if (!receive_frame(connection, &in))
    return false;
  if (in.opcode != 1 ||
      message_read((const char *)in.payload, in.size, &message, why, sizeof why) != WIRE_OK ||
      message.type != MESSAGE_OPEN || message.open.betas[0] != 1.5f) {
    connection->broken = true;
    return false;
  }
  switch (connection->server->scenario) {
  case FAKE_NO_MODEL:
    return transmit_text(connection->socket,
                         "{\"type\":\"error\",\"code\":\"no_model\",\"message\":\"no such\"}");
  case FAKE_EARLY_RESULT:
    return transmit_frame(connection->socket, 0x82, text, 16);
  case FAKE_BAD_OPENED:
    return transmit_text(connection->socket, "{\"type\":\"opened\",\"session\":\"s\"}");
  default:
    snprintf(text, sizeof text,
             "{\"type\":\"opened\",\"session\":\"s\",\"model\":\"m\",\"vertices\":%d,"
             "\"latents\":8,\"fps\":60,\"next_seq\":0,\"trained\":false}",
             FAKE_VERTICES);
    return transmit_text(connection->socket, text);
  }
}

static void make_result(uint8_t result[RESULT_SIZE + 1], const struct frame_pose *pose,
                        enum fake_scenario scenario) {
  struct frame_header header = pose->header;
  header.kind = FRAME_DISPLACEMENT;
  header.count = 0;
  if (header.seq == 3) {
    header.seq += scenario == FAKE_WRONG_SEQ;
    header.timestamp += scenario == FAKE_WRONG_TIMESTAMP ? 1e-3 : 0;
    header.kind = scenario == FAKE_WRONG_KIND ? FRAME_VERTICES : FRAME_DISPLACEMENT;
  }
  frame_header_write(&header, result);
  for (size_t i = 0; i < 3 * FAKE_VERTICES; i++) {
    float value = scenario == FAKE_NAN && header.seq == 3 && i == 500 ? NAN : FAKE_VALUE;
    memcpy(result + FRAME_HEADER_SIZE + 4 * i, &value, 4);
  }
}

static bool ping_and_fragment(struct connection *connection, const uint8_t *result) {
  return transmit_frame(connection->socket, 0x02, result, 10) &&
         transmit_frame(connection->socket, 0x89, "ping", 4) &&
         transmit_frame(connection->socket, 0x00, result + 10, 0) &&
         transmit_frame(connection->socket, 0x80, result + 10, RESULT_SIZE - 10);
}

// Answers one pose; false to end the connection.
static bool answer(struct connection *connection, const struct frame_pose *pose) {
  static const uint8_t restart[] = {0x03, 0xf4, 'b', 'y', 'e'};
  enum fake_scenario scenario = connection->server->scenario;
  uint8_t result[RESULT_SIZE + 1] = {0};
  make_result(result, pose, scenario);
  int fd = connection->socket;
  if (scenario == FAKE_PINGS)
    return ping_and_fragment(connection, result);
  if (pose->header.seq == 3) {
    switch (scenario) {
    case FAKE_CLOSES:
      return transmit_frame(fd, 0x88, restart, sizeof restart);
    case FAKE_DROPS:
      return false;
    case FAKE_SHORT:
      return transmit_frame(fd, 0x82, result, RESULT_SIZE - 1);
    case FAKE_LONG:
      return transmit_frame(fd, 0x82, result, RESULT_SIZE + 1);
    case FAKE_MASKED:
      return transmit(fd, "\x82\x80", 2);
    case FAKE_REFUSES_FRAME:
      return transmit_text(fd, "{\"type\":\"error\",\"seq\":3,\"code\":\"out_of_range\","
                               "\"message\":\"too far\"}");
    case FAKE_REFUSES_UNKNOWN:
      return transmit_text(fd, "{\"type\":\"error\",\"seq\":4000,\"code\":\"bad_seq\","
                               "\"message\":\"?\"}");
    case FAKE_ERROR:
      return transmit_text(fd, "{\"type\":\"error\",\"code\":\"internal\",\"message\":\"oops\"}");
    case FAKE_STALLS:
      return true;
    default:
      break;
    }
  }
  return scenario == FAKE_STALLS && pose->header.seq > 3
             ? true
             : transmit_frame(fd, 0x82, result, RESULT_SIZE);
}

static void serve_frames(struct connection *connection) {
  enum fake_scenario scenario = connection->server->scenario;
  struct incoming in;
  size_t frames = 0, pongs = 0;
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
        pose.header.seq != frames || pose.trans[0] != (float)frames) {
      connection->broken = true;
      break;
    }
    frames++;
    if (!answer(connection, &pose))
      break;
  }
  connection->broken |= scenario == FAKE_PINGS && (pongs == 0 || pongs > frames);
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

static void *accept_all(void *argument) {
  struct fake_server *server = argument;
  for (size_t i = 0; i < server->count; i++) {
    struct connection *connection = &server->connections[i];
    connection->server = server;
    connection->socket = accept(server->listener, NULL, NULL);
    if (connection->socket < 0 || pthread_create(&connection->thread, NULL, serve, connection) != 0)
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

struct fake_server *fake_server_start(enum fake_scenario scenario, size_t connections) {
  struct fake_server *server = calloc(1, sizeof *server);
  if (!server || connections > sizeof server->connections / sizeof server->connections[0])
    abort();
  server->scenario = scenario;
  server->count = connections;
  server->listener = listen_somewhere(&server->port);
  if (pthread_create(&server->thread, NULL, accept_all, server) != 0)
    abort();
  return server;
}

int fake_server_port(const struct fake_server *server) {
  return server->port;
}

size_t fake_server_stop(struct fake_server *server) {
  size_t broken = 0;
  pthread_join(server->thread, NULL);
  for (size_t i = 0; i < server->count; i++) {
    pthread_join(server->connections[i].thread, NULL);
    broken += server->connections[i].broken;
  }
  close(server->listener);
  free(server);
  return broken;
}

int fake_server_unused_port(void) {
  int port, fd = listen_somewhere(&port);
  close(fd);
  return port;
}
