// SPDX-License-Identifier: Apache-2.0
// The report of a training run: one HTML file without outside parts.
#ifndef DSNET_TRAIN_REPORT_H
#define DSNET_TRAIN_REPORT_H

#include "body/body.h"
#include "train/trainer.h"

// Loss and validation curves, root mean square error by body region, and the displacement of a few
// vertices over time, predicted and true (within the subspace), on the validation split with the
// best weights. `provenance` is shown as it is.
int report_write(struct trainer *trainer, const struct body *body, const char *provenance,
                 const char *path, struct dsnet_error *error);

#endif
