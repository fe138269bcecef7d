// SPDX-License-Identifier: Apache-2.0
// A server that speaks just enough of dsnet.v1, rightly or wrongly as a scenario says, to see what
// the client makes of it. Threads with blocking sockets; no code of the client's but the codecs.
#ifndef DSNET_TEST_FAKE_SERVER_H
#define DSNET_TEST_FAKE_SERVER_H

#include <stddef.h>

#define FAKE_VERTICES 300
#define FAKE_LATENTS  8

// What the server does wrong, or at least unlike FAKE_WELL. Where a frame is concerned it is that
// with seq 3.
enum fake_scenario {
  FAKE_WELL,
  FAKE_REFUSES,            // 503, Retry-After: 7
  FAKE_NOT_HTTP,           //
  FAKE_WRONG_ACCEPT,       //
  FAKE_NO_SUBPROTOCOL,     //
  FAKE_HANGS_UP,           // in the handshake
  FAKE_NO_ANSWER,          // to the handshake
  FAKE_NO_MODEL,           // an error message in place of opened
  FAKE_EARLY_RESULT,       // a frame in place of opened
  FAKE_BAD_OPENED,         // opened without vertices
  FAKE_CLOSES,             // 1012 with a reason
  FAKE_DROPS,              // the connection, without a close frame
  FAKE_WRONG_SEQ,          //
  FAKE_WRONG_TIMESTAMP,    //
  FAKE_WRONG_KIND,         //
  FAKE_NAN,                //
  FAKE_SHORT,              // one byte missing
  FAKE_LONG,               // one byte too many
  FAKE_MASKED,             // a masked frame
  FAKE_REFUSES_FRAME,      // an error message with a seq
  FAKE_REFUSES_UNKNOWN,    // an error message with a seq that was never sent
  FAKE_ERROR,              // an error message without a seq
  FAKE_STALLS,             // no results any more
  FAKE_PINGS,              // before each result, which comes in fragments; pongs are checked
  FAKE_NO_CLOSE,           // does not answer the closing handshake
  FAKE_SKIPS,              // answers every third frame only, as `latest` delivery may
  FAKE_SKIPS_AND_RESTARTS, // the same, with a checkpoint after an unanswered frame, and 1012
  FAKE_REFUSES_ONCE,       // the first connection, 503 with Retry-After: 1
  // These lose each stream more than once, and answer tokens with what they say.
  FAKE_DROPS_RANDOMLY,    // inside any result, after 5 to 16 of a connection
  FAKE_REFUSES_TOKENS,    // drops randomly, later each time; answers tokens with expired_token
  FAKE_OTHER_MODEL,       // drops randomly; answers tokens with wrong_model
  FAKE_FORGETS,           // drops randomly; goes on one frame too late
  FAKE_RESTARTS,          // a checkpoint and 1012 after 10 results of a connection
  FAKE_EARLY_CHECKPOINT,  // once as RESTARTS, but the frame of the checkpoint gets no result
  FAKE_REFUSES_AND_DROPS, // refuses frame 3 each time it comes; drops after 8 and 16 and ... frames
};

struct fake_server;

// Each number of the result of frame k when trans[0] of frame i is i: it depends on all frames up
// to that one, as a network's does, so that a stream which is taken up wrongly shows.
float fake_server_value(size_t k);

// Listens on 127.0.0.1 and serves each connection with a thread. `seed` is for what is random.
struct fake_server *fake_server_start(enum fake_scenario scenario, unsigned seed);
int fake_server_port(const struct fake_server *server);
// Accepts no more and waits for all connections to end. Returns how many saw the client break
// RFC 6455 or dsnet.v1; *connections (unless NULL) is how many there were.
size_t fake_server_stop(struct fake_server *server, size_t *connections);

// A port of 127.0.0.1 on which nothing listens.
int fake_server_unused_port(void);

#endif
