// SPDX-License-Identifier: Apache-2.0
// The descriptions of the interfaces, as they are in the source tree, embedded.
#ifndef DSNET_SERVER_DOCUMENTS_H
#define DSNET_SERVER_DOCUMENTS_H

#include "request.h"

void document_answer_openapi(struct request *request, struct answer *answer);
void document_answer_asyncapi(struct request *request, struct answer *answer);

#endif
