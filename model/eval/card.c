// SPDX-License-Identifier: Apache-2.0
#include "eval/card.h"

#include <jansson.h>
#include <string.h>

static json_t *figures(const struct metrics *m) {
  return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "frames", (json_int_t)m->frames, "mean_mm",
                   metrics_mean_mm(m), "rmse_mm", metrics_rmse_mm(m), "worst_mm",
                   metrics_worst_mm(m), "velocity_mms", metrics_velocity_mms(m, DYNA_FPS),
                   "explained", metrics_explained(m));
}

static json_t *evaluation(const struct metrics *splits) {
  json_t *object = json_object();
  for (int split = SPLIT_UNSEEN_MOTION; split < SPLIT_COUNT; split++)
    if (splits[split].frames > 0)
      json_object_set_new(object, split_name((enum split)split), figures(&splits[split]));
  return object;
}

static json_t *sequence_figures(const struct comparison_sequence *sequence, size_t row) {
  json_t *betas = json_array();
  for (size_t i = 0; i < 10; i++)
    json_array_append_new(betas, json_real(sequence->betas[i]));
  return json_pack("{s:I, s:o, s:f, s:f}", "frames", (json_int_t)sequence->frames, "betas", betas,
                   "mean_mm", sequence->rows[row].mean_mm, "explained",
                   sequence->rows[row].explained);
}

static json_t *sequences(const struct comparison *comparison, size_t row) {
  json_t *object = json_object();
  for (size_t i = 0; i < comparison->sequence_count; i++)
    json_object_set_new(object, comparison->sequences[i].name,
                        sequence_figures(&comparison->sequences[i], row));
  return object;
}

// The lines that are rules.
static json_t *rules(const char *text) {
  json_t *array = json_array();
  for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
    size_t length = strcspn(text, "\n#");
    while (length && strchr(" \t\r", text[length - 1]))
      length--;
    if (length)
      json_array_append_new(array, json_stringn(text, length));
  }
  return array;
}

char *card_write(const struct comparison *comparison, size_t row, const char *provenance,
                 const char *splits) {
  json_t *card = json_loads(provenance, JSON_REJECT_DUPLICATES, NULL);
  char *text = NULL;
  if (json_is_object(card) && !json_object_set_new(card, "splits", rules(splits)) &&
      !json_object_set_new(card, "evaluation", evaluation(comparison->metrics[row])) &&
      !json_object_set_new(card, "sequences", sequences(comparison, row)))
    text = json_dumps(card, JSON_COMPACT | JSON_REAL_PRECISION(6));
  json_decref(card);
  return text;
}
