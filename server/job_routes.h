// SPDX-License-Identifier: Apache-2.0
// The addresses of jobs but the upload (job_upload.h), the events (job_events.h) and the result
// (job_download.h), and what all of them share. Event loop only.
#ifndef DSNET_SERVER_JOB_ROUTES_H
#define DSNET_SERVER_JOB_ROUTES_H

#include <jansson.h>

#include "jobs.h"
#include "request.h"

// A job as its clients see it. NULL when memory is out.
json_t *job_describe(const struct job *job);

// Fills the answer and returns false when this server keeps no jobs now.
bool job_check_available(const struct request *request, struct answer *answer);
// The answer to a store_result below 0, which is also logged.
void job_answer_store(struct server *server, int result, const struct dsnet_error *error,
                      struct answer *answer);
// The job of the address. Fills the answer and returns false when there is none.
bool job_find(const struct request *request, struct job *job, struct answer *answer);

void job_answer_list(struct request *request, struct answer *answer);
void job_answer_get(struct request *request, struct answer *answer);
void job_answer_delete(struct request *request, struct answer *answer);

#endif
