// SPDX-License-Identifier: Apache-2.0
// The frames of a session, across all its connections: sending them in time and within the window,
// and holding every result against the frame it answers. Results come in the order of the frames; a
// frame that the server refused has an error message in its place, which may come before earlier
// results. Private to the client; loop thread.
#ifndef DSNET_STREAM_TRANSFER_H
#define DSNET_STREAM_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream/recording.h"
#include "stream/result.h"
#include "wire/frame.h"
#include "wire/message.h"

struct session;

// A frame that was sent and is not answered, on whatever connection.
struct flight {
  uint64_t since; // latency counts from here, ns
  bool refused;   // answered with an error: no result follows
};

struct transfer {
  // Of the whole session. Frames below `answered` are done with; frame k of [answered, furthest)
  // has been sent and is at flights[k % window].
  size_t answered, furthest, refusals;
  struct flight *flights;
  char refusal[384]; // what the first refusal said
  uint64_t start;    // real rate: when frame 0 is due, ns
  uint64_t last_result;
  uint32_t base; // seq of frame 0
  // Where a new connection begins: at frame 0, or after a checkpoint.
  size_t resume_frame;
  char *resume_token; // NULL: there is none
  // Of this connection. Frames below `sent` are sent; `next` is that of the next result, before
  // `answered` while frames are repeated. Whether frame k of [next, sent) was refused is at
  // refused[k % window].
  size_t next, sent;
  bool *refused;
  // The result that is coming in.
  struct result result;
  struct frame_header header;
  bool has_header, fresh, read; // fresh: not a repetition; read: its numbers are looked at
  float *values;                // [numbers] decoded; NULL: no result is read
  struct recording *recording;  // opened before the session, or NULL
};

// After the first `opened`: memory, what the summary says of the session, the recording. False when
// the session has failed.
bool transfer_prepare(struct session *session, const struct message_opened *opened, uint64_t now);

// After every `opened`: goes on where the connection begins.
void transfer_start(struct session *session, uint64_t now);

// Sends what is due and fits the window.
void transfer_send(struct session *session, uint64_t now);

// A piece of a binary message; `bytes` NULL after connection_skip.
void transfer_take(struct session *session, const uint8_t *bytes, size_t size, bool end,
                   uint64_t now);

// An error message about one frame.
void transfer_take_error(struct session *session, const struct message_error *error);

// Keeps a checkpoint to resume from. One that is ahead of the results is no use, since those
// between would be lost with the connection.
void transfer_take_checkpoint(struct session *session, const struct message_checkpoint *checkpoint);

// Forgets the checkpoint: the next connection begins at frame 0.
void transfer_forget_checkpoint(struct transfer *transfer);

// Releases what the transfer holds. A recording that is not finished is dropped.
void transfer_deinit(struct transfer *transfer);

#endif
