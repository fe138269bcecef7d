// SPDX-License-Identifier: Apache-2.0
#include "eval/comparison.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

#define BLOCK DYNA_CHUNK_FRAMES

int comparison_init(struct comparison *comparison, struct dsnet_error *error) {
  memset(comparison, 0, sizeof *comparison);
  comparison->metrics = calloc(COMPARISON_ROWS_MAX, sizeof *comparison->metrics);
  return comparison->metrics ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
}

void comparison_deinit(struct comparison *comparison) {
  for (size_t i = 0; i < COMPARISON_ROWS_MAX; i++)
    if (comparison->rows[i].context)
      comparison->rows[i].release(comparison->rows[i].context);
  free(comparison->metrics);
  free(comparison->sequences);
  memset(comparison, 0, sizeof *comparison);
}

static bool is_test(enum split split) {
  return split == SPLIT_UNSEEN_MOTION || split == SPLIT_UNSEEN_SHAPE || split == SPLIT_UNSEEN_BOTH;
}

static double thread_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// What a run works with.
struct run {
  struct comparison *comparison;
  const struct body *body;
  uint8_t *regions;
  float *posed, *truth; // [BLOCK][V][3]
  float *predicted;     // [V][3]
  float *last[COMPARISON_ROWS_MAX];
  struct metrics (*before)[SPLIT_COUNT]; // [COMPARISON_ROWS_MAX] the sums before a sequence
};

static void predict_frame(struct run *run, enum split split, const struct predictor_frame *frame) {
  struct comparison *comparison = run->comparison;
  for (size_t r = 0; r < comparison->count; r++) {
    double started = thread_seconds();
    comparison->rows[r].predict(comparison->rows[r].context, frame, run->predicted);
    comparison->seconds[r] += thread_seconds() - started;
    metrics_add(&comparison->metrics[r][split], run->predicted, frame->truth,
                body_vertices(run->body), run->regions, frame->index == 0, run->last[r]);
  }
  comparison->frames += 1;
}

// The sums of a split before a sequence and after it give the sequence's own.
static int add_sequence(struct comparison *comparison, const struct dyna_sequence *sequence,
                        enum split split, const float *betas, struct metrics (*before)[SPLIT_COUNT],
                        struct dsnet_error *error) {
  struct comparison_sequence *grown =
      realloc(comparison->sequences, (comparison->sequence_count + 1) * sizeof *grown);
  if (!grown)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  comparison->sequences = grown;
  struct comparison_sequence *added = &grown[comparison->sequence_count++];
  memset(added, 0, sizeof *added);
  memcpy(added->name, sequence->name, sizeof added->name);
  added->split = split;
  memcpy(added->betas, betas, sizeof added->betas);
  for (size_t r = 0; r < comparison->count; r++) {
    const struct metrics *a = &before[r][split], *b = &comparison->metrics[r][split];
    double energy = b->energy - a->energy, samples = (b->frames - a->frames) * b->vertices;
    added->frames = b->frames - a->frames;
    added->rows[r].mean_mm = samples > 0 ? 1000 * (b->distance - a->distance) / samples : 0;
    added->rows[r].explained = energy > 0 ? 1 - (b->square - a->square) / energy : 0;
  }
  return 0;
}

static int run_sequence(struct run *run, struct dyna *dyna, size_t index, enum split split,
                        size_t longest, struct dsnet_error *error) {
  size_t frames, values = 3 * body_vertices(run->body);
  struct clip *clip;
  struct unpose unpose;
  int result = unpose_clip(dyna_at(dyna, index), &clip, &frames, error);
  if (result < 0)
    return result;
  if (longest && frames > longest)
    frames = longest;
  memcpy(run->before, run->comparison->metrics, COMPARISON_ROWS_MAX * sizeof *run->before);
  result = unpose_init(&unpose, run->body, clip->betas, 10, error);
  for (size_t first = 0; result == 0 && first < frames; first += BLOCK) {
    size_t count = frames - first < BLOCK ? frames - first : BLOCK;
    result = dyna_read(dyna, index, first, count, run->posed, error);
    if (result == 0)
      result = unpose_range(&unpose, clip, first, count, run->posed, run->truth, error);
    for (size_t t = 0; result == 0 && t < count; t++) {
      const struct predictor_frame frame = {.index = first + t,
                                            .pose = clip->pose + (first + t) * CLIP_POSE_SIZE,
                                            .trans = clip->trans + (first + t) * 3,
                                            .betas = clip->betas,
                                            .unpose = &unpose,
                                            .truth = run->truth + t * values};
      unpose_frame(&unpose, frame.pose, frame.trans);
      predict_frame(run, split, &frame);
    }
  }
  if (result == 0)
    result =
        add_sequence(run->comparison, dyna_at(dyna, index), split, clip->betas, run->before, error);
  unpose_deinit(&unpose);
  clip_free(clip);
  return result;
}

int comparison_run(struct comparison *comparison, struct dyna *dyna, const struct body *body,
                   const struct splits *splits, size_t longest,
                   bool (*progress)(void *context, double done), void *context,
                   struct dsnet_error *error) {
  size_t values = 3 * body_vertices(body), tested = 0;
  struct run run = {.comparison = comparison, .body = body};
  run.regions = calloc(body_vertices(body), 1);
  run.posed = memory_alloc(BLOCK * values, sizeof(float));
  run.truth = memory_alloc(BLOCK * values, sizeof(float));
  run.predicted = memory_alloc(values, sizeof(float));
  run.before = calloc(COMPARISON_ROWS_MAX, sizeof *run.before);
  bool ok = run.regions && run.posed && run.truth && run.predicted && run.before;
  for (size_t r = 0; r < comparison->count; r++)
    ok &= (run.last[r] = memory_alloc(values, sizeof(float))) != NULL;
  int result = ok ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0)
    result = unpose_check_body(dyna, body, error);
  if (result == 0)
    body_regions(body, run.regions);
  for (size_t i = 0; result == 0 && i < dyna_count(dyna); i++) {
    enum split split = splits_of(splits, dyna_at(dyna, i)->subject, dyna_at(dyna, i)->motion);
    if (!is_test(split))
      continue;
    tested++;
    result = run_sequence(&run, dyna, i, split, longest, error);
    if (result == 0 && progress && !progress(context, (double)(i + 1) / (double)dyna_count(dyna)))
      result = dsnet_error_set(error, DSNET_ECANCELLED, "stopped on request");
  }
  if (result == 0 && !tested)
    result = dsnet_error_set(error, DSNET_EMISSING, "no sequence of a test split");
  free(run.regions);
  free(run.posed);
  free(run.truth);
  free(run.predicted);
  free(run.before);
  for (size_t r = 0; r < comparison->count; r++)
    free(run.last[r]);
  return result;
}

static void print_split(const struct comparison *comparison, enum split split, bool markdown,
                        FILE *out) {
  fprintf(out, markdown ? "\n**%s** (%.0f frames)\n\n" : "\n%s (%.0f frames)\n", split_name(split),
          comparison->metrics[0][split].frames);
  fputs(
      markdown
          ? "| | mean mm | RMSE mm | worst 5% mm | velocity mm/s | explained |\n"
            "|---|---|---|---|---|---|\n"
          : "                                    mean mm  RMSE mm  worst 5%  velocity  explained\n",
      out);
  for (size_t r = 0; r < comparison->count; r++) {
    const struct metrics *m = &comparison->metrics[r][split];
    fprintf(out,
            markdown ? "| %s | %.3f | %.3f | %.2f | %.1f | %.3f |\n"
                     : "%-34s  %8.3f %8.3f %9.2f %9.1f %10.3f\n",
            comparison->rows[r].name, metrics_mean_mm(m), metrics_rmse_mm(m), metrics_worst_mm(m),
            metrics_velocity_mms(m, DYNA_FPS), metrics_explained(m));
  }
}

// Share explained by region, over all test splits.
static void print_regions(const struct comparison *comparison, bool markdown, FILE *out) {
  fprintf(out,
          markdown ? "\n**Explained by region, all test splits**\n\n| |"
                   : "\nexplained by region, all test splits\n%-34s",
          "");
  for (int g = 0; g < BODY_REGION_COUNT; g++)
    fprintf(out, markdown ? " %s |" : " %10s", body_region_name((enum body_region)g));
  fputs(markdown ? "\n|---|" : "\n", out);
  for (int g = 0; markdown && g < BODY_REGION_COUNT; g++)
    fputs("---|", out);
  fputs(markdown ? "\n" : "", out);
  for (size_t r = 0; r < comparison->count; r++) {
    fprintf(out, markdown ? "| %s |" : "%-34s", comparison->rows[r].name);
    for (int g = 0; g < BODY_REGION_COUNT; g++) {
      double square = 0, energy = 0;
      for (int s = SPLIT_UNSEEN_MOTION; s < SPLIT_COUNT; s++) {
        square += comparison->metrics[r][s].region_square[g];
        energy += comparison->metrics[r][s].region_energy[g];
      }
      fprintf(out, markdown ? " %.2f |" : " %10.2f", energy > 0 ? 1 - square / energy : 0);
    }
    fputs("\n", out);
  }
}

// What a frame costs: one session alone, many at once, and the physics over either.
static void print_times(const struct comparison *comparison, bool markdown, FILE *out) {
  static const char head[] = "one session, us a frame", many[] = "64 at once",
                    gain[] = "physics takes times as long";
  fprintf(out,
          markdown ? "\n**Time on one core**\n\n| | %s | %s | %s |\n|---|---|---|---|\n"
                   : "\ntime on one core%42s%14s%30s\n",
          head, many, gain);
  for (size_t r = 0; r < comparison->count; r++) {
    double one = 1e6 * comparison->seconds[r] / comparison->frames;
    double batch = comparison->rows[r].batch_us;
    char times[2][16] = {"", ""};
    if (batch > 0)
      snprintf(times[0], sizeof times[0], "%.1f", batch);
    if (comparison->physics_us > 0 && batch > 0)
      snprintf(times[1], sizeof times[1], "%.0f", comparison->physics_us / batch);
    fprintf(out, markdown ? "| %s | %.1f | %s | %s |\n" : "%-34s%24.1f%14s%30s\n",
            comparison->rows[r].name, one, times[0], times[1]);
  }
  if (comparison->physics_us > 0)
    fprintf(out, markdown ? "| %s | %.1f | %s | %s |\n" : "%-34s%24.1f%14s%30s\n",
            "the physics itself", comparison->physics_us, "", "1");
}

void comparison_print(const struct comparison *comparison, bool markdown, FILE *out) {
  for (int split = SPLIT_UNSEEN_MOTION; split < SPLIT_COUNT; split++)
    if (comparison->metrics[0][split].frames > 0)
      print_split(comparison, (enum split)split, markdown, out);
  print_regions(comparison, markdown, out);
  print_times(comparison, markdown, out);
}
