// SPDX-License-Identifier: Apache-2.0
// POST /v1/jobs: takes a clip in whatever form it comes and writes it to the data folder as it
// arrives. The job is accepted when clip and record are safe on the disk. Event loop only.
#ifndef DSNET_SERVER_JOB_UPLOAD_H
#define DSNET_SERVER_JOB_UPLOAD_H

#include "routes.h"

extern const struct route_body job_upload_body;

// Once the body is whole: the answer comes later.
void job_upload_answer(struct request *request, struct answer *answer);

#endif
