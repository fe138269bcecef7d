// SPDX-License-Identifier: Apache-2.0
// Skinning weights from a dense row to the sparse table of a body.
#ifndef DSNET_BODY_WEIGHTS_H
#define DSNET_BODY_WEIGHTS_H

#include "body/body.h"

// The heaviest BODY_WEIGHTS_MAX of a row, heaviest first (the lower joint first among equals).
// `row` [24] is not negative and sums to about 1. A row that already is a table's (no more weights
// than fit, sum 1 to rounding) is kept bit for bit, so that saving and loading a body changes
// nothing; any other is scaled to sum to 1. Slots without a weight repeat the first joint.
void weights_select(const float row[BODY_JOINTS], uint8_t joints[BODY_WEIGHTS_MAX],
                    float values[BODY_WEIGHTS_MAX]);

#endif
