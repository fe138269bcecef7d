// SPDX-License-Identifier: Apache-2.0
// A server that speaks just enough of dsnet.v1, rightly or wrongly as a scenario says, to see what
// the client makes of it. Threads with blocking sockets; no code of the client's but the codecs.
#ifndef DSNET_TEST_FAKE_SERVER_H
#define DSNET_TEST_FAKE_SERVER_H

#include <stddef.h>

#define FAKE_VERTICES 300
#define FAKE_VALUE    0.003f // metres, each coordinate of each displacement

// What the server does wrong. Where a frame is concerned it is that with seq 3.
enum fake_scenario {
  FAKE_WELL,
  FAKE_REFUSES,         // 503, Retry-After: 7
  FAKE_NOT_HTTP,        //
  FAKE_WRONG_ACCEPT,    //
  FAKE_NO_SUBPROTOCOL,  //
  FAKE_HANGS_UP,        // in the handshake
  FAKE_NO_ANSWER,       // to the handshake
  FAKE_NO_MODEL,        // an error message in place of opened
  FAKE_EARLY_RESULT,    // a frame in place of opened
  FAKE_BAD_OPENED,      // opened without vertices
  FAKE_CLOSES,          // 1012 with a reason
  FAKE_DROPS,           // the connection, without a close frame
  FAKE_WRONG_SEQ,       //
  FAKE_WRONG_TIMESTAMP, //
  FAKE_WRONG_KIND,      //
  FAKE_NAN,             //
  FAKE_SHORT,           // one byte missing
  FAKE_LONG,            // one byte too many
  FAKE_MASKED,          // a masked frame
  FAKE_REFUSES_FRAME,   // an error message with a seq
  FAKE_REFUSES_UNKNOWN, // an error message with a seq that was never sent
  FAKE_ERROR,           // an error message without a seq
  FAKE_STALLS,          // no results any more
  FAKE_PINGS,           // before each result, which comes in fragments; pongs are checked
  FAKE_NO_CLOSE,        // does not answer the closing handshake
};

struct fake_server;

// Listens on 127.0.0.1 and serves `connections` of them, one thread each.
struct fake_server *fake_server_start(enum fake_scenario scenario, size_t connections);
int fake_server_port(const struct fake_server *server);
// Waits for all connections to end. Returns how many saw the client break RFC 6455 or dsnet.v1.
size_t fake_server_stop(struct fake_server *server);

// A port of 127.0.0.1 on which nothing listens.
int fake_server_unused_port(void);

#endif
