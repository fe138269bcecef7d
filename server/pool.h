// SPDX-License-Identifier: Apache-2.0
// Result buffers of one size, reused last in, first out so that the hottest is written next. The
// owner reserves a buffer for every frame it accepts; only reserving may allocate, so taking one
// for a reserved frame cannot fail and costs nothing. Buffers stay until pool_trim finds that they
// were not needed for a while, so a steady load allocates nothing. No locks: the owner's lock
// covers a pool.
#ifndef DSNET_SERVER_POOL_H
#define DSNET_SERVER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "outgoing.h"

// Room before a payload for the WebSocket header (at most 10 bytes) and the frame header (16), so
// that a whole message is one run of bytes. One cache line, so that the payload stays aligned.
#define RESULT_HEADROOM 64

struct track;

struct result {
  struct result *next;      // of the pool's or a completion list
  struct outgoing outgoing; // for the connection's send queue
  struct track *track;      // whose frame it is; NULL in the pool
  uint32_t seq;
  double timestamp;
  uint64_t received; // when its pose came, as its frame says
  uint32_t held;     // joints of its pose that were held as glitches
  bool gap;          // its motion was taken up anew after a break in the timestamps
  void *text;        // the whole message when it goes out as text, else NULL; owned
  void *state;       // the track's state after it when that was asked for, else NULL; owned
  size_t payload_size;
  uint8_t *payload; // aligned to MEMORY_ALIGNMENT, RESULT_HEADROOM writable bytes before it
};

struct pool {
  size_t payload_size;
  size_t keep;     // buffers that pool_trim leaves at least
  size_t reserved; // buffers promised; those in use are among them
  size_t peak;     // most that were reserved at once since the last pool_trim
  size_t total;    // buffers that exist, in use or free; never fewer than reserved
  struct result *free;
  size_t free_count;
};

void pool_init(struct pool *pool, size_t payload_size, size_t keep);
// Every buffer must have been given back.
void pool_deinit(struct pool *pool);

// Promises one buffer, allocating if all are promised. False when memory is out.
bool pool_reserve(struct pool *pool);
// Takes a buffer that was reserved. Never NULL.
struct result *pool_take(struct pool *pool);
// Gives back a buffer and its reservation.
void pool_give(struct pool *pool, struct result *result);
// Gives back a reservation that was not used.
void pool_unreserve(struct pool *pool);

// Frees the buffers that were not needed since the last call, down to `keep`.
void pool_trim(struct pool *pool);

#endif
