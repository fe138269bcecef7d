// SPDX-License-Identifier: Apache-2.0
// One connection of a run: connect, upgrade, open, stream one clip, close. Private to the client.
// Everything runs on the loop's thread; struct stream is what the sessions of a run share.
#ifndef DSNET_STREAM_SESSION_H
#define DSNET_STREAM_SESSION_H

#include <sys/socket.h>

#include <uv.h>

#include "stream/outbox.h"
#include "stream/recording.h"
#include "stream/result.h"
#include "stream/stream.h"
#include "wire/frame.h"
#include "wire/handshake.h"
#include "wire/message.h"

#define STREAM_ADDRESSES_MAX 8
#define STREAM_RECEIVE_SIZE  (256 * 1024) // fits a core's second-level cache

struct stream {
  const struct stream_options *options;
  const struct stream_clip *clips;
  size_t clip_count, window;
  struct stream_summary *summary;
  uv_loop_t loop;
  uv_timer_t pacer, watch;
  uv_signal_t interrupt, terminate;
  struct sockaddr_storage addresses[STREAM_ADDRESSES_MAX];
  size_t address_count;
  struct mask_pool masks;
  uint8_t *receive; // [STREAM_RECEIVE_SIZE], shared: what is read is used up before the next read
  struct session *sessions;
  size_t live;                                                        // sessions not yet done
  uint64_t epoch, first_send, last_receive, last_pace, last_progress; // uv_hrtime, ns; 0: never
};

enum session_state {
  SESSION_CONNECTING,
  SESSION_UPGRADING,
  SESSION_OPENING,
  SESSION_STREAMING,
  SESSION_CLOSING, // our close frame is out, or the socket is being closed
  SESSION_DONE,
};

// A frame in flight.
struct flight {
  double timestamp; // in its header, to be echoed
  uint64_t since;   // latency counts from here, ns
  bool refused;     // answered with an error: no result follows
};

struct session {
  struct stream *stream;
  const struct stream_clip *clip;
  size_t index, address;
  enum session_state state;
  enum stream_outcome outcome;
  char failure[384];
  uint64_t last_progress; // of the state or, while streaming, of the results: bytes alone are none
  uv_tcp_t tcp;
  uv_connect_t connect;
  struct outbox outbox;
  char key[HANDSHAKE_KEY_LENGTH + 1];
  struct websocket websocket;
  uint8_t gathered[MESSAGE_SIZE_MAX]; // the handshake's head, later a text message
  size_t gathered_size;
  struct message_opened opened;
  // The transfer: frames [answered, sent) are in flight, frame k at flights[k % window].
  struct flight *flights;
  size_t sent, answered, refused;
  uint64_t start; // real rate: when frame 0 is due, ns
  struct result result;
  struct frame_header header; // of the result coming in
  bool has_header;
  struct recording *recording;
};

// session.c
void session_start(struct session *session);
// Ends the session with a failure, unless it is ending already. `close_code` goes into a close
// frame where one can be sent; 0 for none.
__attribute__((format(printf, 4, 5))) void session_fail(struct session *session,
                                                        enum stream_outcome outcome,
                                                        uint16_t close_code, const char *format,
                                                        ...);
// Fails or closes a session that has made no progress.
void session_check_time(struct session *session, uint64_t now);
// Every frame is answered: starts the closing handshake.
void session_finish(struct session *session);

// transfer.c
// After `opened`: prepares for results and starts sending.
void transfer_start(struct session *session, uint64_t now);
// Sends what is due and fits the window.
void transfer_send(struct session *session, uint64_t now);
// A piece of a binary message.
void transfer_take(struct session *session, const uint8_t *bytes, size_t size, bool end,
                   uint64_t now);
// An error message about one frame.
void transfer_take_error(struct session *session, const struct message_error *error);
// Releases what the transfer holds. A recording that is not finished is dropped.
void transfer_deinit(struct session *session);

// stream.c
// Sends the frames of all sessions that are due, at most once a millisecond; called by the timer
// and between reads, so that heavy reading does not delay the sending.
void stream_pace(struct stream *stream, uint64_t now);
void stream_session_done(struct stream *stream, struct session *session);

#endif
