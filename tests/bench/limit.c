// SPDX-License-Identifier: Apache-2.0
// limit [THREADS]: answers dsnet-stream as dsnetd does, with results of the built-in model's size,
// and computes nothing: every number is 0. What it reaches is what sockets, framing and the load
// generator allow on a machine. Run by tests/bench/stream --limit.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtin/builtin.h"
#include "websocket.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "ws_server.h"

// A result on its way out; one that is sent waits to be used again, the last of them first.
struct sent {
  struct outgoing outgoing;
  struct sent *next;
  size_t capacity; // bytes of the frame's payload
  uint8_t bytes[]; // WEBSOCKET_HEADER_MAX before it
};

static _Thread_local struct sent *spare;
static uint32_t vertices, latents; // of the built-in model

static void release_sent(struct outgoing *outgoing, void *user) {
  (void)user;
  struct sent *sent = (void *)((char *)outgoing - offsetof(struct sent, outgoing));
  sent->next = spare;
  spare = sent;
}

static struct sent *take_sent(size_t size) {
  struct sent *sent = spare;
  if (sent)
    spare = sent->next;
  if (sent && sent->capacity >= size)
    return sent;
  free(sent);
  sent = calloc(1, sizeof *sent + WEBSOCKET_HEADER_MAX + size);
  if (sent)
    sent->capacity = size;
  return sent;
}

static void open_session(struct ws_peer *peer, const struct message_open *open) {
  const struct message opened = {.type = MESSAGE_OPENED,
                                 .opened = {.session = "limit",
                                            .model = "default",
                                            .vertices = vertices,
                                            .latents = latents,
                                            .fps = open->fps,
                                            .trained = 1}};
  char text[512];
  size_t size = message_write(&opened, text, sizeof text);
  *ws_peer_word(peer) = (uintptr_t)open->output << 8 | open->encoding;
  if (!size || websocket_queue_text(ws_peer_socket(peer), text, size))
    websocket_fail(ws_peer_socket(peer), WEBSOCKET_INTERNAL, "out of memory");
}

static void answer_pose(struct ws_peer *peer, const uint8_t *bytes) {
  struct frame_header header;
  frame_header_read(bytes, &header);
  header.kind = (uint8_t)(*ws_peer_word(peer) >> 8);
  header.encoding = (uint8_t)*ws_peer_word(peer);
  header.count = 0;
  size_t size = frame_result_size(header.kind, header.encoding, vertices, latents);
  struct sent *sent = size ? take_sent(size) : NULL;
  if (!sent) {
    websocket_fail(ws_peer_socket(peer), WEBSOCKET_INTERNAL, "no session, or out of memory");
    return;
  }
  uint8_t *frame = sent->bytes + WEBSOCKET_HEADER_MAX;
  frame_header_write(&header, frame);
  size_t length = websocket_binary_header(frame, size);
  sent->outgoing =
      (struct outgoing){.bytes = frame - length, .size = length + size, .release = release_sent};
  websocket_queue(ws_peer_socket(peer), &sent->outgoing);
}

static void on_message(struct ws_peer *peer, bool text, const uint8_t *bytes, size_t size) {
  struct message message;
  if (!text && size >= FRAME_HEADER_SIZE)
    answer_pose(peer, bytes);
  else if (text && message_read((const char *)bytes, size, &message, NULL, 0) == WIRE_OK &&
           message.type == MESSAGE_OPEN)
    open_session(peer, &message.open);
  else
    websocket_fail(ws_peer_socket(peer), WEBSOCKET_POLICY, "nothing but poses is answered here");
}

int main(int argc, char **argv) {
  struct net *net;
  struct dsnet_error error = {0};
  if (builtin_net_load(&net, &error)) {
    fprintf(stderr, "limit: %s\n", error.text);
    return 1;
  }
  vertices = (uint32_t)net_config(net)->vertices;
  latents = (uint32_t)net_config(net)->latent;
  net_free(net);
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  const struct ws_server_settings settings = {.name = "limit",
                                              .subprotocol = WIRE_SUBPROTOCOL,
                                              .max_message = 65536,
                                              .max_queued = 16,
                                              .send_buffer = 512 * 1024, // as dsnetd
                                              .threads = threads > 0 ? (unsigned)threads : 1,
                                              .message = on_message};
  return ws_server_run(&settings, 0);
}
