// SPDX-License-Identifier: Apache-2.0
#include "stream/outbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

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

bool outbox_put_frame(struct outbox *outbox, struct mask_pool *masks, enum websocket_opcode opcode,
                      const uint8_t *payload, size_t size) {
  if (!outbox_has_room(outbox, opcode, size))
    return false;
  outbox->used +=
      websocket_frame_write(outbox->bytes + outbox->used, opcode, payload, size, next_mask(masks));
  return true;
}

bool outbox_put_bytes(struct outbox *outbox, const void *bytes, size_t size) {
  if (size > OUTBOX_SIZE - outbox->used)
    return false;
  memcpy(outbox->bytes + outbox->used, bytes, size);
  outbox->used += size;
  return true;
}

bool outbox_is_empty(const struct outbox *outbox) {
  return outbox->used == 0;
}

ssize_t outbox_flush(struct outbox *outbox, int fd) {
  if (outbox_is_empty(outbox))
    return 0;
  ssize_t sent;
  do
    sent = send(fd, outbox->bytes, outbox->used, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  if (sent < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
  outbox->used -= (size_t)sent;
  if (outbox->used)
    memmove(outbox->bytes, outbox->bytes + sent, outbox->used);
  return sent;
}
