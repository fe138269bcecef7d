// SPDX-License-Identifier: Apache-2.0
// The addresses of the Open Inference Protocol (see infer/request.h): handlers for the route table.
// Refusals are problem documents with the protocol's member `error` beside `detail`.
#ifndef DSNET_SERVER_INFER_HTTP_H
#define DSNET_SERVER_INFER_HTTP_H

#include "routes.h"

void infer_answer_server(struct request *request, struct answer *answer);
void infer_answer_live(struct request *request, struct answer *answer);
void infer_answer_ready(struct request *request, struct answer *answer);
// Of /v2/models/* and /v2/models/*/versions/*.
void infer_answer_model(struct request *request, struct answer *answer);
void infer_answer_model_ready(struct request *request, struct answer *answer);
void infer_answer_infer(struct request *request, struct answer *answer);

extern const struct route_body infer_body;

#endif
