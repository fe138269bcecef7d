// SPDX-License-Identifier: Apache-2.0
// GET /v1/jobs/{id}/events: a job's progress as server-sent events (html.spec.whatwg.org, "Server-
// sent events"), each with the whole job as JSON, named by its state. The last one is that of its
// end. Event loop only.
#ifndef DSNET_SERVER_JOB_EVENTS_H
#define DSNET_SERVER_JOB_EVENTS_H

#include "request.h"

struct job_watcher;

struct job_watchers {
  struct job_watcher *first;
  size_t count;
  uint64_t looked; // loop time, ms
};

void job_answer_events(struct request *request, struct answer *answer);
// Looks at the jobs that are watched, if it is time; with `end`, ends all streams.
void job_watchers_sweep(struct server *server, bool end);

#endif
