// SPDX-License-Identifier: Apache-2.0
#include "stream/outbox.h"

#include <string.h>

#include <sodium.h>

static const uint8_t *next_mask(struct mask_pool *pool) {
  if (pool->left < 4) {
    randombytes_buf(pool->bytes, sizeof pool->bytes);
    pool->left = sizeof pool->bytes;
  }
  pool->left -= 4;
  return pool->bytes + pool->left;
}

bool outbox_has_room(const struct outbox *outbox, enum websocket_opcode opcode, size_t size) {
  size_t room = OUTBOX_SIZE - outbox->used;
  size_t reserve = opcode & 8 ? 0 : OUTBOX_RESERVE;
  return size <= OUTBOX_SIZE && size + WEBSOCKET_HEADER_MAX + reserve <= room;
}

bool outbox_put_frame(struct outbox *outbox, enum websocket_opcode opcode, const uint8_t *payload,
                      size_t size) {
  if (!outbox_has_room(outbox, opcode, size))
    return false;
  outbox->used += websocket_frame_write(outbox->bytes + outbox->used, opcode, payload, size,
                                        next_mask(outbox->masks));
  return true;
}

bool outbox_put_bytes(struct outbox *outbox, const void *bytes, size_t size) {
  if (size > OUTBOX_SIZE - outbox->used)
    return false;
  memcpy(outbox->bytes + outbox->used, bytes, size);
  outbox->used += size;
  return true;
}

static void on_written(uv_write_t *request, int status) {
  struct outbox *outbox = request->data;
  outbox->busy = false;
  outbox->written = outbox->submitted;
  if (status == 0)
    status = outbox_flush(outbox);
  if (!outbox->busy)
    outbox->on_drained(outbox->owner, status);
}

int outbox_flush(struct outbox *outbox) {
  if (outbox->busy)
    return 0; // on_written goes on; the buffer is only appended to meanwhile
  size_t left = outbox->used - outbox->written;
  uv_buf_t buffer = uv_buf_init((char *)outbox->bytes + outbox->written, (unsigned)left);
  int sent = left ? uv_try_write(outbox->stream, &buffer, 1) : 0;
  if (sent < 0 && sent != UV_EAGAIN)
    return sent;
  outbox->written += sent > 0 ? (size_t)sent : 0;
  if (outbox->written == outbox->used) {
    outbox->used = outbox->written = 0;
    return 0;
  }
  buffer = uv_buf_init((char *)outbox->bytes + outbox->written,
                       (unsigned)(outbox->used - outbox->written));
  outbox->request.data = outbox;
  outbox->submitted = outbox->used;
  int status = uv_write(&outbox->request, outbox->stream, &buffer, 1, on_written);
  outbox->busy = status == 0;
  return status;
}
