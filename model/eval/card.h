// SPDX-License-Identifier: Apache-2.0
// A model's card: what it was trained on (put down by training) and what it reached on sequences it
// had not seen, in the provenance that travels in its file.
#ifndef DSNET_EVAL_CARD_H
#define DSNET_EVAL_CARD_H

#include "eval/comparison.h"

// `provenance` (JSON object) with the members "evaluation" (for each test split with frames:
// frames, mean_mm, rmse_mm, worst_mm, velocity_mms, explained of row `row`), "sequences" (for each
// of their sequences frames, betas, mean_mm, explained) and "splits" (the rules of the text,
// comments left out), as text to be released with free(). NULL when memory is out or the provenance
// is no object.
char *card_write(const struct comparison *comparison, size_t row, const char *provenance,
                 const char *splits);

#endif
