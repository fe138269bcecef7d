// SPDX-License-Identifier: Apache-2.0
#include "train/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/unpose.h"

// Frames un-posed and projected at once.
#define BLOCK DYNA_CHUNK_FRAMES

// While building: where each sequence is in the data.
struct builder {
  struct dataset *dataset;
  struct dyna *dyna;
  const struct body *body;
  const struct dataset_options *options;
  size_t *index; // [dataset count] into dyna
  size_t values; // 3V
  float *posed;  // [BLOCK][V][3]
  float *block;  // [BLOCK][V][3]
};

static int report(const struct builder *builder, const char *stage, double done,
                  struct dsnet_error *error) {
  const struct dataset_options *options = builder->options;
  if (options->progress && !options->progress(options->context, stage, done))
    return dsnet_error_set(error, DSNET_ECANCELLED, "stopped on request");
  return 0;
}

static int add_sequences(struct builder *builder, const struct splits *splits,
                         struct dsnet_error *error) {
  struct dataset *dataset = builder->dataset;
  for (size_t i = 0; i < dyna_count(builder->dyna); i++) {
    const struct dyna_sequence *source = dyna_at(builder->dyna, i);
    enum split split = splits_of(splits, source->subject, source->motion);
    if (split != SPLIT_TRAIN && split != SPLIT_VALIDATION)
      continue;
    struct sequence *sequence = &dataset->sequences[dataset->count];
    int result = unpose_clip(source, &sequence->clip, &sequence->frames, error);
    if (result < 0)
      return result;
    builder->index[dataset->count++] = i;
    sequence->split = split;
    snprintf(sequence->name, sizeof sequence->name, "%s", source->name);
    memcpy(sequence->betas, sequence->clip->betas, sizeof sequence->betas);
  }
  for (int split = SPLIT_TRAIN; split <= SPLIT_VALIDATION; split++)
    if (!dataset_frames(dataset, (enum split)split))
      return dsnet_error_set(error, DSNET_EMISSING, "no sequence of the %s split",
                             split_name((enum split)split));
  return 0;
}

// Displacements of frames first .. first + count - 1 of a sequence, at most BLOCK.
static int read_displacements(struct builder *builder, size_t s, struct unpose *unpose,
                              size_t first, size_t count, float *out, struct dsnet_error *error) {
  const struct sequence *sequence = &builder->dataset->sequences[s];
  int result = dyna_read(builder->dyna, builder->index[s], first, count, builder->posed, error);
  if (result < 0)
    return result;
  result = unpose_range(unpose, sequence->clip, first, count, builder->posed, out, error);
  if (result < 0)
    dsnet_error_prefix(error, "%s", sequence->name);
  return result;
}

// Snapshot k of `wanted` is training frame k total / wanted, counted over the whole split.
static int gather_snapshots(struct builder *builder, size_t wanted, float *snapshots,
                            struct dsnet_error *error) {
  struct dataset *dataset = builder->dataset;
  size_t total = dataset_frames(dataset, SPLIT_TRAIN), seen = 0, taken = 0;
  int result = 0;
  for (size_t s = 0; s < dataset->count && result == 0; s++) {
    const struct sequence *sequence = &dataset->sequences[s];
    if (sequence->split != SPLIT_TRAIN)
      continue;
    struct unpose unpose;
    result = unpose_init(&unpose, builder->body, sequence->betas, 10, error);
    for (; result == 0 && taken < wanted; taken++) {
      size_t frame = (size_t)((double)taken * (double)total / (double)wanted);
      if (frame >= seen + sequence->frames)
        break;
      result = read_displacements(builder, s, &unpose, frame - seen, 1,
                                  snapshots + taken * builder->values, error);
    }
    unpose_deinit(&unpose);
    seen += sequence->frames;
    if (result == 0)
      result = report(builder, "snapshots", (double)seen / (double)total, error);
  }
  return result;
}

static int fit_subspace(struct builder *builder, struct dsnet_error *error) {
  const struct dataset_options *options = builder->options;
  size_t frames = dataset_frames(builder->dataset, SPLIT_TRAIN);
  size_t wanted = options->snapshots < frames ? options->snapshots : frames;
  float *snapshots = memory_alloc(wanted * builder->values, sizeof *snapshots);
  if (!snapshots)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for %zu snapshots", wanted);
  int result = gather_snapshots(builder, wanted, snapshots, error);
  if (result == 0)
    result = report(builder, "principal components", 0, error);
  if (result == 0)
    result = subspace_fit(&builder->dataset->subspace, snapshots, wanted, builder->values,
                          options->latent, options->loss, 256, error);
  free(snapshots);
  return result;
}

static int project_sequence(struct builder *builder, size_t s, struct dsnet_error *error) {
  struct dataset *dataset = builder->dataset;
  struct sequence *sequence = &dataset->sequences[s];
  size_t latent = dataset->subspace.latent;
  sequence->latents = memory_alloc(sequence->frames * latent, sizeof(float));
  sequence->residual = memory_alloc(sequence->frames, sizeof(float));
  if (!sequence->latents || !sequence->residual)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory for latents");
  struct unpose unpose;
  int result = unpose_init(&unpose, builder->body, sequence->betas, 10, error);
  for (size_t first = 0; result == 0 && first < sequence->frames; first += BLOCK) {
    size_t rest = sequence->frames - first, count = rest < BLOCK ? rest : BLOCK;
    result = read_displacements(builder, s, &unpose, first, count, builder->block, error);
    if (result == 0)
      subspace_project(&dataset->subspace, builder->block, count,
                       sequence->latents + first * latent, sequence->residual + first);
  }
  unpose_deinit(&unpose);
  return result;
}

int dataset_build(struct dataset *dataset, struct dyna *dyna, const struct body *body,
                  const struct splits *splits, const struct dataset_options *options,
                  struct dsnet_error *error) {
  memset(dataset, 0, sizeof *dataset);
  dataset->vertices = dyna_vertices(dyna);
  struct builder builder = {.dataset = dataset,
                            .dyna = dyna,
                            .body = body,
                            .options = options,
                            .values = dataset->vertices * 3};
  int result = unpose_check_body(dyna, body, error);
  if (result < 0)
    return result;
  dataset->sequences = calloc(dyna_count(dyna), sizeof *dataset->sequences);
  builder.index = calloc(dyna_count(dyna), sizeof *builder.index);
  builder.posed = memory_alloc(BLOCK * builder.values, sizeof *builder.posed);
  builder.block = memory_alloc(BLOCK * builder.values, sizeof *builder.block);
  if (!dataset->sequences || !builder.index || !builder.posed || !builder.block)
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0)
    result = add_sequences(&builder, splits, error);
  if (result == 0)
    result = fit_subspace(&builder, error);
  for (size_t s = 0; result == 0 && s < dataset->count; s++) {
    result = project_sequence(&builder, s, error);
    if (result == 0)
      result = report(&builder, "latents", (double)(s + 1) / (double)dataset->count, error);
  }
  free(builder.index);
  free(builder.posed);
  free(builder.block);
  if (result < 0)
    dataset_deinit(dataset);
  return result;
}

void dataset_deinit(struct dataset *dataset) {
  for (size_t i = 0; i < dataset->count; i++) {
    clip_free(dataset->sequences[i].clip);
    free(dataset->sequences[i].latents);
    free(dataset->sequences[i].residual);
  }
  free(dataset->sequences);
  subspace_deinit(&dataset->subspace);
  memset(dataset, 0, sizeof *dataset);
}

size_t dataset_frames(const struct dataset *dataset, enum split split) {
  size_t frames = 0;
  for (size_t i = 0; i < dataset->count; i++)
    if (dataset->sequences[i].split == split)
      frames += dataset->sequences[i].frames;
  return frames;
}
