// SPDX-License-Identifier: Apache-2.0
// GET /v1/jobs/{id}/result: decoded from the job's latents while it is sent, a few frames at a time
// on a thread of their own, with the same memory whatever the clip's length. Event loop only.
#ifndef DSNET_SERVER_JOB_DOWNLOAD_H
#define DSNET_SERVER_JOB_DOWNLOAD_H

#include "request.h"

void job_answer_result(struct request *request, struct answer *answer);

#endif
