// SPDX-License-Identifier: Apache-2.0
// `dsnetd --healthcheck`: what a container's health check runs, so that an image needs no HTTP
// client. Blocks.
#ifndef DSNET_SERVER_HEALTHCHECK_H
#define DSNET_SERVER_HEALTHCHECK_H

#include "base/error.h"
#include "config.h"

#define HEALTHCHECK_SECONDS 3

// 0 when the server at the address of the settings (an address of every interface stands for the
// loopback's) answers GET /readyz with 200 within HEALTHCHECK_SECONDS.
int healthcheck(const struct config *config, struct dsnet_error *error);

#endif
