// SPDX-License-Identifier: Apache-2.0
// dsnet info: says what a file is (body, clip, model, or another npz) and what is in it.
#include "command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/pose.h"
#include "body/region.h"
#include "inputs.h"
#include "io/npz.h"

struct settings {
  struct option_list files;
};

static const struct option_table table = {
    .usage = "dsnet info FILE...",
    .about = "Describes bodies (SMPL-layout npz), clips (AMASS-layout npz), models (safetensors) "
             "and any\n"
             "other npz.",
    .positionals_offset = offsetof(struct settings, files),
    .positionals_min = 1,
    .positionals_max = OPTION_LIST_MAX,
};

_Static_assert(BODY_HASH_SIZE == NET_HASH_SIZE, "both are printed by print_hash");

static void print_hash(const uint8_t *hash) {
  for (int i = 0; i < BODY_HASH_SIZE; i++)
    printf("%02x", hash[i]);
  putchar('\n');
}

// Extent of the template along each axis.
static void print_extent(const struct body *body) {
  const float *v = body_template(body);
  float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  for (size_t i = 0; i < body_vertices(body); i++)
    for (int k = 0; k < 3; k++) {
      low[k] = fminf(low[k], v[3 * i + k]);
      high[k] = fmaxf(high[k], v[3 * i + k]);
    }
  printf("  size       %.3f x %.3f x %.3f m (width, height, depth at rest)\n", high[0] - low[0],
         high[1] - low[1], high[2] - low[2]);
}

static int print_regions(const struct body *body, struct dsnet_error *error) {
  uint8_t *regions = memory_alloc(body_vertices(body), 1);
  if (!regions)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  size_t counts[BODY_REGION_COUNT] = {0};
  body_regions(body, regions);
  for (size_t i = 0; i < body_vertices(body); i++)
    counts[regions[i]]++;
  printf("  regions   ");
  for (int r = 0; r < BODY_REGION_COUNT; r++)
    printf(" %s %zu%s", body_region_name((enum body_region)r), counts[r],
           r + 1 < BODY_REGION_COUNT ? "," : "\n");
  free(regions);
  return 0;
}

static int describe_body(const char *path, struct dsnet_error *error) {
  struct body *body;
  int result = body_load(&body, path, error);
  if (result < 0)
    return result;
  printf("%s: body\n  vertices   %zu\n  faces      %zu\n  shapes     %zu\n", path,
         body_vertices(body), body_faces(body), body_shapes(body));
  printf("  pose part  %s\n  soft map   %s\n", body_posedirs(body) ? "207 directions" : "none",
         body_soft_tissue(body) ? "yes" : "none");
  print_extent(body);
  result = print_regions(body, error);
  printf("  hash       ");
  print_hash(body_hash(body));
  body_free(body);
  return result;
}

static int describe_clip(const char *path, struct dsnet_error *error) {
  struct clip *clip;
  int result = clip_load(&clip, path, error);
  if (result < 0)
    return result;
  double distance = 0;
  for (size_t t = 1; t < clip->frames; t++) {
    const float *a = clip->trans + 3 * (t - 1), *b = clip->trans + 3 * t;
    distance += hypot(hypot(b[0] - a[0], b[1] - a[1]), b[2] - a[2]);
  }
  printf("%s: clip\n  frames     %zu\n  rate       %.10g frames/s\n  duration   %.2f s\n", path,
         clip->frames, clip->fps, (double)clip->frames / clip->fps);
  printf("  root path  %.2f m\n  gender     %s\n  betas     ", distance, clip->gender);
  for (size_t i = 0; i < clip->betas_count; i++)
    printf(" %.4g", clip->betas[i]);
  puts(clip->betas_count ? "" : " none");
  clip_free(clip);
  return 0;
}

static int describe_model(const char *path, struct dsnet_error *error) {
  struct net *net;
  int result = net_load(&net, path, error);
  if (result < 0)
    return result;
  const struct net_config *config = net_config(net);
  printf("%s: model\n  trained    %s\n", path,
         config->trained ? "yes" : "no: its motion means nothing");
  printf("  features   %s (%zu): %s\n  network    LSTM %zu x %zu, latent %zu, linear decoder\n",
         config->features->name, config->features->width, config->features->about, config->layers,
         config->hidden, config->latent);
  printf("  vertices   %zu\n  rate       %g frames/s\n  state      %zu bytes a session\n",
         config->vertices, config->rate, net_state_size(net) * sizeof(float));
  printf("  body       ");
  if (config->has_body_hash)
    print_hash(config->body_hash);
  else
    puts("not stated");
  uint8_t hash[NET_HASH_SIZE];
  net_hash(net, hash);
  printf("  hash       ");
  print_hash(hash);
  printf("  provenance %s\n", net_provenance(net));
  net_free(net);
  return 0;
}

static int describe_arrays(const char *path, struct npz *npz, struct dsnet_error *error) {
  printf("%s: npz\n", path);
  for (size_t i = 0; i < npz_count(npz); i++) {
    struct npy_info info;
    int result = npz_info(npz, npz_name(npz, i), &info, error);
    if (result < 0)
      return result;
    printf("  %-20s %c%zu [", npz_name(npz, i), info.kind, info.width);
    for (size_t d = 0; d < info.dimensions; d++)
      printf("%s%zu", d ? ", " : "", info.shape[d]);
    puts("]");
  }
  return 0;
}

static int describe_npz(const char *path, struct dsnet_error *error) {
  struct npz *npz;
  int result = npz_open(&npz, path, error);
  if (result < 0)
    return result;
  if (npz_has(npz, "v_template"))
    result = describe_body(path, error);
  else if (npz_has(npz, "poses") || npz_has(npz, "pose_body"))
    result = describe_clip(path, error);
  else
    result = describe_arrays(path, npz, error);
  npz_close(npz);
  return result;
}

// A zip archive starts with a local file header, or is empty.
static bool is_zip(const char *path, struct dsnet_error *error) {
  unsigned char head[4] = {0};
  FILE *file = fopen(path, "rb");
  if (!file) {
    dsnet_error_set(error, DSNET_EIO, "%s: cannot be opened: %m", path);
    return false;
  }
  size_t got = fread(head, 1, sizeof head, file);
  fclose(file);
  return got == 4 && head[0] == 'P' && head[1] == 'K';
}

int command_info(int argc, char **argv) {
  struct settings settings;
  int status;
  if (!command_parse(&table, argc, argv, &settings, &status))
    return status;
  status = COMMAND_OK;
  for (size_t i = 0; i < settings.files.count; i++) {
    const char *path = settings.files.items[i];
    struct dsnet_error error = {0};
    bool zip = is_zip(path, &error);
    if (error.code == DSNET_OK && (zip ? describe_npz : describe_model)(path, &error) == 0)
      continue;
    status = command_fail("info", &error);
  }
  return status;
}
