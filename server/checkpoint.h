// SPDX-License-Identifier: Apache-2.0
// A session's state into a token, and back into a session of any process that has the key. Sessions
// call it; event loop only.
#ifndef DSNET_SERVER_CHECKPOINT_H
#define DSNET_SERVER_CHECKPOINT_H

#include "session.h"

// Whether a client could send a token of this session back: both message sizes allow it.
bool checkpoint_fits(const struct session *session, const struct session_services *services);

// The state after the last frame taken, which must have been stepped. WIRE_UNSUPPORTED when tokens
// do not fit, WIRE_OVERLOADED when memory is out.
enum wire_error checkpoint_make(const struct session *session,
                                const struct session_services *services,
                                struct message_checkpoint *checkpoint);
// The state that a result carries.
enum wire_error checkpoint_of_result(const struct session *session,
                                     const struct session_services *services,
                                     const struct result *result,
                                     struct message_checkpoint *checkpoint);

// Makes a session whose track is new go on from a token. Otherwise the session is as it was:
// WIRE_BAD_TOKEN, WIRE_EXPIRED_TOKEN, WIRE_WRONG_MODEL, WIRE_BAD_MEMBER when the rate is another,
// WIRE_UNSUPPORTED and WIRE_OVERLOADED as above.
enum wire_error checkpoint_resume(struct session *session, const struct session_services *services,
                                  const char *token);

#endif
