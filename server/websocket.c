// SPDX-License-Identifier: Apache-2.0
#include "websocket.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#define MESSAGE_START 512 // first size of the buffer for messages in pieces; this much is kept

// wslay's context ---------------------------------------------------------------------------------

struct websocket_frames {
  struct wslay_frame_context *context;
  struct websocket *ws; // that reads through it
};

static ssize_t read_for_wslay(uint8_t *bytes, size_t size, int flags, void *user);

static struct websocket_frames *frames_new(void) {
  static const struct wslay_frame_callbacks callbacks = {.recv_callback = read_for_wslay};
  struct websocket_frames *frames = calloc(1, sizeof *frames);
  if (frames && wslay_frame_context_init(&frames->context, &callbacks, frames)) {
    free(frames);
    frames = NULL;
  }
  return frames;
}

static void frames_free(struct websocket_frames *frames) {
  if (frames)
    wslay_frame_context_free(frames->context);
  free(frames);
}

static bool take_frames(struct websocket *ws) {
  if (ws->frames)
    return true;
  ws->frames = ws->spare->frames ? ws->spare->frames : frames_new();
  ws->spare->frames = NULL;
  if (ws->frames)
    ws->frames->ws = ws;
  return ws->frames;
}

// Only between two frames, when all that was read from the peer has been looked at.
static void leave_frames(struct websocket *ws) {
  if (ws->spare->frames)
    frames_free(ws->frames);
  else
    ws->spare->frames = ws->frames;
  ws->frames = NULL;
}

void websocket_spare_free(struct websocket_spare *spare) {
  frames_free(spare->frames);
  spare->frames = NULL;
}

// Receiving --------------------------------------------------------------------------------------

static bool is_masked(const uint8_t header[2]) {
  return header[1] & 0x80;
}

// Bytes of a frame's header without the mask.
static size_t header_length(const uint8_t header[2]) {
  unsigned length = header[1] & 0x7F;
  return length < 126 ? 2 : length == 126 ? 4 : WEBSOCKET_HEADER_MAX;
}

static uint64_t declared_length(const uint8_t *header) {
  size_t end = header_length(header);
  uint64_t length = end == 2 ? header[1] & 0x7F : 0;
  for (size_t i = 2; i < end; i++)
    length = length << 8 | header[i];
  return length;
}

static bool header_is_whole(const struct websocket *ws) {
  return ws->peeked_size >= 2 && ws->peeked_size == header_length(ws->peeked);
}

// Follows the frames on their way to wslay, which tells of one only with its first payload byte.
static void peek(struct websocket *ws, const uint8_t *bytes, size_t size) {
  for (size_t part; size; bytes += part, size -= part) {
    part = 1;
    if (ws->peeked_left) {
      part = size < ws->peeked_left ? size : (size_t)ws->peeked_left;
      ws->peeked_left -= part;
    } else {
      ws->peeked[ws->peeked_size++] = *bytes;
      if (!header_is_whole(ws))
        continue;
      ws->peeked_left = (is_masked(ws->peeked) ? 4 : 0) + declared_length(ws->peeked);
    }
    if (!ws->peeked_left)
      ws->peeked_size = 0; // the next header
  }
}

static ssize_t read_for_wslay(uint8_t *bytes, size_t size, int flags, void *user) {
  (void)flags;
  struct websocket *ws = ((struct websocket_frames *)user)->ws;
  ssize_t count = ws->callbacks->read(ws->user, bytes, size);
  ws->got_bytes = count > 0;
  if (count < 0)
    ws->ended = true;
  if (count > 0)
    peek(ws, bytes, (size_t)count);
  return count > 0 ? count : -1;
}

void websocket_init(struct websocket *ws, size_t max_message, struct websocket_spare *spare,
                    const struct websocket_callbacks *callbacks, void *user) {
  *ws = (struct websocket){
      .callbacks = callbacks, .user = user, .max_message = max_message, .spare = spare};
  ws->end = &ws->first;
}

// Reads no further. What was handed over is still to be answered; the owner closes then.
static void violate(struct websocket *ws, uint16_t code, const char *reason) {
  ws->stopped = true;
  ws->violation = code;
  ws->violated = reason;
}

// What a new frame may not be. Returns the close code, 0 when it is acceptable.
static uint16_t check_frame(const struct websocket *ws, const struct wslay_frame_iocb *frame,
                            const char **reason) {
  *reason = NULL;
  if (frame->rsv)
    *reason = "reserved bits are set and no extension was agreed";
  else if (!frame->mask)
    *reason = "a client's frames must be masked";
  else if (wslay_is_ctrl_frame(frame->opcode)) {
    if (frame->opcode > WSLAY_PONG)
      *reason = "unknown control frame";
    else if (!frame->fin || frame->payload_length > WEBSOCKET_CONTROL_MAX)
      *reason = "a control frame is fragmented or too long";
  } else if (frame->opcode > WSLAY_BINARY_FRAME)
    *reason = "unknown data frame";
  else if (frame->opcode == WSLAY_CONTINUATION_FRAME && !ws->opcode)
    *reason = "a continuation without a message";
  else if (frame->opcode != WSLAY_CONTINUATION_FRAME && ws->opcode)
    *reason = "a new message inside a fragmented one";
  else if (frame->payload_length > ws->max_message - ws->message_size) {
    *reason = "the message is too big";
    return WEBSOCKET_TOO_BIG;
  }
  return *reason ? WEBSOCKET_PROTOCOL_ERROR : 0;
}

// RFC 6455 section 7.4 and the registry it founded.
static bool close_code_valid(unsigned code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

static void receive_close(struct websocket *ws) {
  const uint8_t *payload = ws->control_received;
  size_t size = ws->control_received_size;
  unsigned code = size >= 2 ? (unsigned)payload[0] << 8 | payload[1] : WEBSOCKET_NO_STATUS;
  if (size == 1 || (size >= 2 && !close_code_valid(code))) {
    violate(ws, WEBSOCKET_PROTOCOL_ERROR, "invalid close frame");
    return;
  }
  if (size > 2 && !utf8_valid(payload + 2, size - 2)) {
    violate(ws, WEBSOCKET_BAD_DATA, "the close reason is not UTF-8");
    return;
  }
  ws->close_received = (uint16_t)code;
  ws->stopped = true;
}

static void add_pong(struct websocket *ws, const uint8_t *payload, uint8_t size) {
  if (ws->pongs_size + 2u + size > sizeof ws->pongs)
    ws->pongs_size = 0;
  uint8_t *pong = ws->pongs + ws->pongs_size;
  pong[0] = 0x80 | WSLAY_PONG;
  pong[1] = size;
  memcpy(pong + 2, payload, size);
  ws->pongs_size += 2u + size;
}

static void receive_control(struct websocket *ws, const struct wslay_frame_iocb *frame, bool last) {
  if (frame->data_length)
    memcpy(ws->control_received + ws->control_received_size, frame->data, frame->data_length);
  ws->control_received_size += (uint8_t)frame->data_length;
  if (!last)
    return;
  if (frame->opcode == WSLAY_CONNECTION_CLOSE) {
    receive_close(ws);
  } else if (frame->opcode == WSLAY_PING) {
    add_pong(ws, ws->control_received, ws->control_received_size);
  }
  ws->control_received_size = 0;
}

// Copies a piece behind what has come of the message. The limit was checked when the frame began.
static bool append_piece(struct websocket *ws, const uint8_t *bytes, size_t size) {
  size_t needed = ws->message_size + size;
  if (needed > ws->message_capacity) {
    size_t capacity = ws->message_capacity ? ws->message_capacity : MESSAGE_START;
    while (capacity < needed)
      capacity *= 2;
    if (capacity > ws->max_message)
      capacity = ws->max_message;
    uint8_t *grown = realloc(ws->message, capacity);
    if (!grown)
      return false;
    ws->message = grown;
    ws->message_capacity = capacity;
  }
  if (size)
    memcpy(ws->message + ws->message_size, bytes, size);
  ws->message_size = needed;
  return true;
}

static void end_message(struct websocket *ws, const uint8_t *bytes, size_t size) {
  bool text = ws->opcode == WSLAY_TEXT_FRAME;
  if (text && !utf8_complete(&ws->utf8)) {
    violate(ws, WEBSOCKET_BAD_DATA, "the text is not UTF-8");
    return;
  }
  ws->opcode = 0;
  ws->message_size = 0;
  ws->utf8 = (struct utf8_state){0};
  if (!ws->discarding)
    ws->callbacks->message(ws->user, text, bytes, size);
  if (ws->message_capacity > MESSAGE_START) {
    free(ws->message);
    ws->message = NULL;
    ws->message_capacity = 0;
  }
}

static void receive_data(struct websocket *ws, const struct wslay_frame_iocb *frame, bool last) {
  if (ws->opcode == WSLAY_TEXT_FRAME && !utf8_feed(&ws->utf8, frame->data, frame->data_length)) {
    violate(ws, WEBSOCKET_BAD_DATA, "the text is not UTF-8");
    return;
  }
  bool whole = last && frame->fin;
  if (whole && !ws->message_size) {
    end_message(ws, frame->data, frame->data_length);
    return;
  }
  if (!append_piece(ws, frame->data, frame->data_length))
    websocket_fail(ws, WEBSOCKET_INTERNAL, "out of memory");
  else if (whole)
    end_message(ws, ws->message, ws->message_size);
}

static void receive_piece(struct websocket *ws, const struct wslay_frame_iocb *frame) {
  if (!ws->in_frame) {
    const char *reason;
    uint16_t code = check_frame(ws, frame, &reason);
    if (code) {
      violate(ws, code, reason);
      return;
    }
    ws->frame_received = 0;
    if (!wslay_is_ctrl_frame(frame->opcode) && frame->opcode != WSLAY_CONTINUATION_FRAME)
      ws->opcode = frame->opcode;
  }
  ws->frame_received += frame->data_length;
  bool last = ws->frame_received == frame->payload_length;
  ws->in_frame = !last;
  if (wslay_is_ctrl_frame(frame->opcode))
    receive_control(ws, frame, last);
  else
    receive_data(ws, frame, last);
}

// Whether the frame may be of which wslay has the header alone.
static void check_awaited(struct websocket *ws) {
  if (!ws->peeked_left)
    return;
  const uint8_t *header = ws->peeked;
  const struct wslay_frame_iocb frame = {.fin = header[0] >> 7,
                                         .rsv = header[0] >> 4 & 7,
                                         .opcode = header[0] & 0xF,
                                         .mask = is_masked(header),
                                         .payload_length = declared_length(header)};
  const char *reason;
  uint16_t code = check_frame(ws, &frame, &reason);
  if (code)
    violate(ws, code, reason);
}

// Whether all that was read has been looked at and ended with a frame.
static bool between_frames(const struct websocket *ws) {
  return !ws->paused && !ws->stopped && !ws->in_frame && !ws->peeked_size && !ws->peeked_left;
}

void websocket_receive(struct websocket *ws) {
  if (ws->paused || ws->stopped || ws->ended)
    return;
  if (!take_frames(ws)) {
    websocket_fail(ws, WEBSOCKET_INTERNAL, "out of memory");
    return;
  }
  while (!ws->paused && !ws->stopped && !ws->ended) {
    struct wslay_frame_iocb frame = {0};
    ws->got_bytes = false;
    ssize_t count = wslay_frame_recv(ws->frames->context, &frame);
    if (count >= 0)
      receive_piece(ws, &frame);
    else if (count != WSLAY_ERR_WANT_READ)
      violate(ws, WEBSOCKET_PROTOCOL_ERROR, "malformed frame");
    else if (!ws->got_bytes) // else a header was still short, and there may be more to read
      break;
  }
  if (!ws->stopped && !ws->paused && !ws->in_frame)
    check_awaited(ws);
  if (between_frames(ws))
    leave_frames(ws);
}

// Sending ----------------------------------------------------------------------------------------

struct text_message {
  struct outgoing outgoing;
  uint8_t bytes[];
};

static void release_text(struct outgoing *outgoing, void *user) {
  (void)user;
  free((char *)outgoing - offsetof(struct text_message, outgoing));
}

static size_t write_header(uint8_t *end, uint8_t opcode, size_t size) {
  size_t length = size < 126 ? 2 : size <= UINT16_MAX ? 4 : WEBSOCKET_HEADER_MAX;
  uint8_t *header = end - length;
  header[0] = 0x80 | opcode;
  header[1] = size < 126 ? (uint8_t)size : size <= UINT16_MAX ? 126 : 127;
  for (size_t i = 2; i < length; i++)
    header[i] = (uint8_t)((uint64_t)size >> 8 * (length - 1 - i));
  return length;
}

size_t websocket_binary_header(uint8_t *end, size_t size) {
  return write_header(end, WSLAY_BINARY_FRAME, size);
}

size_t websocket_text_header(uint8_t *end, size_t size) {
  return write_header(end, WSLAY_TEXT_FRAME, size);
}

void websocket_queue(struct websocket *ws, struct outgoing *outgoing) {
  if (ws->close_code) {
    outgoing->release(outgoing, ws->user);
    return;
  }
  outgoing->next = NULL;
  *ws->end = outgoing;
  ws->end = &outgoing->next;
  ws->queued++;
}

size_t websocket_withdraw(struct websocket *ws,
                          void (*release)(struct outgoing *outgoing, void *user)) {
  size_t count = 0;
  struct outgoing **link = &ws->first;
  if (ws->first && ws->first_written)
    link = &ws->first->next;
  while (*link) {
    struct outgoing *at = *link;
    if (at->release != release) {
      link = &at->next;
      continue;
    }
    *link = at->next;
    at->release(at, ws->user);
    count++;
  }
  ws->end = link;
  ws->queued -= count;
  return count;
}

int websocket_queue_text(struct websocket *ws, const char *text, size_t size) {
  struct text_message *message = malloc(sizeof *message + WEBSOCKET_HEADER_MAX + size);
  if (!message)
    return -1;
  uint8_t *payload = message->bytes + WEBSOCKET_HEADER_MAX;
  memcpy(payload, text, size);
  size_t header = write_header(payload, WSLAY_TEXT_FRAME, size);
  message->outgoing =
      (struct outgoing){.bytes = payload - header, .size = header + size, .release = release_text};
  websocket_queue(ws, &message->outgoing);
  return 0;
}

static void release_first(struct websocket *ws) {
  struct outgoing *outgoing = ws->first;
  ws->first = outgoing->next;
  if (!ws->first)
    ws->end = &ws->first;
  ws->queued--;
  ws->first_written = 0;
  outgoing->release(outgoing, ws->user);
}

// Releases every message save one that is partly written: its frame must be completed.
static void drop_queued(struct websocket *ws) {
  struct outgoing *begun = ws->first_written ? ws->first : NULL;
  struct outgoing *rest = begun ? begun->next : ws->first;
  if (begun)
    begun->next = NULL;
  ws->first = begun;
  ws->end = begun ? &begun->next : &ws->first;
  ws->queued = begun ? 1 : 0;
  for (struct outgoing *next; rest; rest = next) {
    next = rest->next;
    rest->release(rest, ws->user);
  }
}

void websocket_ping(struct websocket *ws) {
  ws->ping_waits = !ws->close_code;
}

void websocket_close(struct websocket *ws, uint16_t code, const char *reason) {
  ws->discarding = true;
  if (ws->close_code)
    return;
  ws->close_code = code;
  ws->close_waits = true;
  if (code == WEBSOCKET_NO_STATUS)
    return;
  size_t length = strlen(reason);
  if (length > WEBSOCKET_CONTROL_MAX - 2)
    length = WEBSOCKET_CONTROL_MAX - 2;
  ws->close_frame[0] = (uint8_t)(code >> 8);
  ws->close_frame[1] = (uint8_t)code;
  memcpy(ws->close_frame + 2, reason, length);
  ws->close_size = (uint8_t)(2 + length);
}

void websocket_fail(struct websocket *ws, uint16_t code, const char *reason) {
  ws->failed = true;
  ws->stopped = true;
  ws->pongs_size = 0;
  drop_queued(ws);
  websocket_close(ws, code, reason);
}

static void load_control(struct websocket *ws, uint8_t opcode, const uint8_t *payload,
                         uint8_t size) {
  ws->control[0] = 0x80 | opcode;
  ws->control[1] = size;
  memcpy(ws->control + 2, payload, size);
  ws->control_size = (uint8_t)(2 + size);
  ws->control_written = 0;
}

static void load_pong(struct websocket *ws) {
  uint16_t size = 2 + ws->pongs[1];
  load_control(ws, WSLAY_PONG, ws->pongs + 2, ws->pongs[1]);
  ws->pongs_size -= size;
  memmove(ws->pongs, ws->pongs + size, ws->pongs_size);
}

// Between two messages: the oldest pong that waits, or the close when nothing else is left.
static void choose_control(struct websocket *ws) {
  if (ws->control_size || ws->first_written || ws->close_loaded)
    return;
  if (ws->pongs_size) {
    load_pong(ws);
  } else if (ws->ping_waits) {
    ws->ping_waits = false;
    load_control(ws, WSLAY_PING, ws->pongs, 0);
  } else if (ws->close_waits && !ws->first) {
    ws->close_waits = false;
    ws->close_loaded = true;
    load_control(ws, WSLAY_CONNECTION_CLOSE, ws->close_frame, ws->close_size);
  }
}

int websocket_output(struct websocket *ws, struct iovec *vectors, int max) {
  choose_control(ws);
  int count = 0;
  if (ws->control_size && count < max)
    vectors[count++] = (struct iovec){ws->control + ws->control_written,
                                      (size_t)(ws->control_size - ws->control_written)};
  size_t skip = ws->first_written;
  for (struct outgoing *at = ws->first; at && count < max; at = at->next) {
    vectors[count++] = (struct iovec){(uint8_t *)(uintptr_t)at->bytes + skip, at->size - skip};
    skip = 0;
  }
  return count;
}

void websocket_written(struct websocket *ws, size_t size) {
  if (ws->control_size) {
    size_t left = (size_t)(ws->control_size - ws->control_written);
    size_t part = size < left ? size : left;
    ws->control_written = (uint8_t)(ws->control_written + part);
    size -= part;
    if (part == left) {
      ws->control_size = 0;
      ws->close_sent = ws->close_loaded;
    }
  }
  while (size) {
    assert(ws->first);
    size_t left = ws->first->size - ws->first_written;
    if (size < left) {
      ws->first_written += size;
      return;
    }
    size -= left;
    release_first(ws);
  }
}

void websocket_deinit(struct websocket *ws) {
  ws->first_written = 0;
  drop_queued(ws);
  frames_free(ws->frames);
  free(ws->message);
  ws->frames = NULL;
  ws->message = NULL;
}
