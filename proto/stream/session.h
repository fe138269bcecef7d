// SPDX-License-Identifier: Apache-2.0
// One stream of a run, from its first frame to its last, over as many connections as that takes.
// Private to the client. Everything runs on the loop's thread; struct stream is what the sessions
// of a run share.
#ifndef DSNET_STREAM_SESSION_H
#define DSNET_STREAM_SESSION_H

#include <uv.h>

#include "stream/connection.h"
#include "stream/display.h"
#include "stream/servers.h"
#include "stream/stream.h"
#include "stream/transfer.h"
#include "wire/message.h"

struct stream {
  const struct stream_options *options;
  const struct stream_clip *clips;
  size_t clip_count, window;
  uint64_t period; // ns of a frame
  struct stream_summary *summary;
  struct display display;
  struct servers servers;
  struct connection_shared shared;
  uv_loop_t loop;
  uv_timer_t pacer, watch;
  uv_signal_t interrupt, terminate;
  struct session *sessions;
  size_t live;                                         // sessions not yet done
  uint64_t epoch, first_send, last_receive, last_pace; // uv_hrtime, ns; 0: never
};

enum session_state {
  SESSION_WAITING, // for the time of the next try
  SESSION_CONNECTING,
  SESSION_OPENING,
  SESSION_STREAMING,
  SESSION_LEAVING, // the connection is being closed
  SESSION_DONE,
};

struct session {
  struct stream *stream;
  const struct stream_clip *clip;
  size_t index, frames; // frames: of the clip as often as it is repeated
  enum session_state state;
  struct connection connection;
  struct message_opened opened; // the first one
  bool was_opened;
  struct transfer transfer;
  uint64_t last_progress; // of the state or, while streaming, of the results: bytes alone are none
  // How it ended, or how the last connection did.
  enum stream_outcome outcome;
  char failure[512];
  // The tries to get a connection.
  size_t server; // index of the current one
  uv_timer_t retry;
  bool passing;     // while leaving: another try may go better
  unsigned tries;   // in a row that brought no new result
  uint64_t lost_at; // ns; 0: there is no outage
};

void session_start(struct session *session);

// Ends the session for good, unless it is ending already. `close_code` goes into a close frame
// where one can be sent; 0 for none.
__attribute__((format(printf, 4, 5))) void session_fail(struct session *session,
                                                        enum stream_outcome outcome,
                                                        uint16_t close_code, const char *format,
                                                        ...);
// A result came that is new: an outage, if there was one, is over.
void session_progress(struct session *session, uint64_t now);

// Every frame is answered: starts the closing handshake.
void session_finish(struct session *session);

// Gives up a connection that has made no progress.
void session_check_time(struct session *session, uint64_t now);

// stream.c
// Sends the frames of all sessions that are due, at most once a millisecond; called by the timer
// and between reads, so that heavy reading does not delay the sending.
void stream_pace(struct stream *stream, uint64_t now);
void stream_session_done(struct stream *stream, struct session *session);

#endif
