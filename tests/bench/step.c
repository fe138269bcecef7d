// SPDX-License-Identifier: Apache-2.0
// Frames a second of the batched step on one thread, where its time goes, and beside it what this
// machine's BLAS reaches on the same products and what its multipliers could do at most.
#include <cblas.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/options.h"
#include "net/internal.h"
#include "net/output.h"

#define BATCH_MAX 256

static const size_t batches[] = {1, 4, 8, 16, 64, 256};
#define BATCHES (sizeof batches / sizeof batches[0])

struct settings {
  const char *json, *kernel;
  double seconds;
};

static const struct option options[] = {
    {.name = "json",
     .argument = "FILE",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, json),
     .help = "Also write the figures to this file."},
    {.name = "kernel",
     .argument = "NAME",
     .type = OPTION_TEXT,
     .offset = offsetof(struct settings, kernel),
     .choices = "best|plain|avx2|avx512",
     .fallback = "best",
     .help = "Instruction set of the kernels."},
    {.name = "seconds",
     .argument = "S",
     .type = OPTION_REAL,
     .offset = offsetof(struct settings, seconds),
     .fallback = "0.3",
     .min = 0.01,
     .max = 60,
     .help = "Time spent on each figure."},
};

static const struct option_table table = {
    .usage = "step [options]",
    .about = "Measures the batched step of the default model (214 -> 2 x 256 -> 64 -> 20,670).",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

// What is measured: a model, its sessions and their buffers.
struct bench {
  const struct net *net;
  struct net_scratch *scratch;
  struct net_item items[BATCH_MAX];
  size_t batch;
  // operands of the BLAS products
  float *x, *y;
};

// Seconds by part, of one step.
struct figures {
  size_t batch;
  double step, features, lstm, linear, decoder, blas;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Median seconds of one call, over rounds that fill the time given: a shared machine has bad
// moments.
static double measure(void (*run)(struct bench *), struct bench *bench, double seconds) {
  enum { ROUNDS_MAX = 10000 };
  static double times[ROUNDS_MAX];
  size_t rounds = 0;
  run(bench);
  for (double start = now(), last = start; last - start < seconds && rounds < ROUNDS_MAX;) {
    run(bench);
    double end = now();
    times[rounds++] = end - last;
    last = end;
  }
  qsort(times, rounds, sizeof *times, by_value);
  return times[rounds / 2];
}

static void run_step(struct bench *bench) {
  net_step(bench->net, bench->scratch, bench->items, bench->batch);
}

static void run_features(struct bench *bench) {
  net_step_features(bench->net, bench->scratch, bench->items, bench->batch);
}

static void run_lstm(struct bench *bench) {
  for (size_t layer = 0; layer < net_config(bench->net)->layers; layer++)
    net_step_layer(bench->net, bench->scratch, bench->items, bench->batch, layer);
}

static void run_linear(struct bench *bench) {
  net_step_latents(bench->net, bench->scratch, bench->items, bench->batch);
}

static void run_decoder(struct bench *bench) {
  net_step_decode(bench->net, bench->scratch, bench->items, bench->batch);
}

static void multiply_blas(const struct bench *bench, size_t outputs, size_t inputs,
                          const float *weight) {
  gemm_multiply(false, true, bench->batch, outputs, inputs, 1, bench->x, inputs, weight, inputs, 0,
                bench->y, outputs);
}

// The step's products alone, as one would write them with a BLAS library. The weights are other
// numbers than the model's, in as much memory.
static void run_blas(struct bench *bench) {
  const struct net_config *config = net_config(bench->net);
  const float *weights = bench->net->block;
  for (size_t layer = 0; layer < config->layers; layer++) {
    size_t inputs = bench->net->layers[layer].inputs + config->hidden;
    multiply_blas(bench, 4 * config->hidden, inputs, weights);
    weights += 4 * config->hidden * inputs;
  }
  multiply_blas(bench, config->latent, config->hidden, weights);
  multiply_blas(bench, 3 * config->vertices, config->latent, net_decoder_basis(bench->net));
}

// A clip alone ------------------------------------------------------------------------------------

#define CLIP_FRAMES 192
#define CLIP_DECODE 8 // frames decoded at a time, whose displacements stay in the cache

// Seconds a frame of a clip, whose every frame is there from the beginning: stepped one frame at a
// time, and as a stretch; latents alone, and with the displacement of every frame.
struct clip_figures {
  double step_latents, stretch_latents, step_displacement, stretch_displacement;
};

struct clip_bench {
  struct net_stretch *stretch;
  float pose[CLIP_FRAMES][NET_POSE_SIZE], trans[CLIP_FRAMES][3];
  float *latent; // [CLIP_FRAMES][Z]
  struct net_output_scratch *output;
  struct net_output outputs[CLIP_DECODE];
};
static struct clip_bench clip;

static void step_clip(struct bench *bench, bool displacement) {
  struct net_item item = bench->items[0];
  for (size_t t = 0; t < CLIP_FRAMES; t++) {
    item.pose = clip.pose[t];
    item.trans = clip.trans[t];
    item.latent = clip.latent + t * net_config(bench->net)->latent;
    if (!displacement)
      item.displacement = NULL;
    net_step(bench->net, bench->scratch, &item, 1);
  }
}

static void run_step_latents(struct bench *bench) {
  step_clip(bench, false);
}

static void run_step_displacement(struct bench *bench) {
  step_clip(bench, true);
}

static void run_stretch_latents(struct bench *bench) {
  net_step_stretch(bench->net, clip.stretch, bench->items[0].state, CLIP_FRAMES, clip.pose[0],
                   clip.trans[0], bench->items[0].betas, clip.latent);
}

static void run_stretch_displacement(struct bench *bench) {
  run_stretch_latents(bench);
  for (size_t t = 0; t < CLIP_FRAMES; t += CLIP_DECODE) {
    for (size_t i = 0; i < CLIP_DECODE; i++)
      clip.outputs[i] =
          (struct net_output){.kind = NET_DISPLACEMENT,
                              .latent = clip.latent + (t + i) * net_config(bench->net)->latent,
                              .payload = bench->items[i].displacement};
    net_output_write(bench->net, clip.output, clip.outputs, CLIP_DECODE);
  }
}

static int measure_clip(struct bench *bench, double seconds, struct clip_figures *f,
                        struct dsnet_error *error) {
  const struct net *net = bench->net;
  clip.latent = memory_alloc(CLIP_FRAMES * net_config(net)->latent, sizeof(float));
  if (!clip.latent)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = net_stretch_new(&clip.stretch, net, error);
  if (result == 0)
    result = net_output_scratch_new(&clip.output, net, CLIP_DECODE, error);
  if (result < 0)
    return result;
  for (size_t t = 0; t < CLIP_FRAMES; t++)
    for (size_t j = 0; j < NET_POSE_SIZE; j++)
      clip.pose[t][j] = 0.001f * (float)t * (float)(j % 5);
  f->step_latents = measure(run_step_latents, bench, seconds) / CLIP_FRAMES;
  f->stretch_latents = measure(run_stretch_latents, bench, seconds) / CLIP_FRAMES;
  f->step_displacement = measure(run_step_displacement, bench, seconds) / CLIP_FRAMES;
  f->stretch_displacement = measure(run_stretch_displacement, bench, seconds) / CLIP_FRAMES;
  return 0;
}

static void print_clip(const struct clip_figures *f) {
  printf("\na clip alone       frame by frame   as a stretch, frames/s\n"
         "latents        %18.0f %14.0f  (%.1f times)\n"
         "displacements  %18.0f %14.0f  (%.1f times)\n",
         1 / f->step_latents, 1 / f->stretch_latents, f->step_latents / f->stretch_latents,
         1 / f->step_displacement, 1 / f->stretch_displacement,
         f->step_displacement / f->stretch_displacement);
}

static double count_flops(const struct net *net) {
  const struct net_config *config = net_config(net);
  double sum = 0;
  for (size_t layer = 0; layer < config->layers; layer++)
    sum += 4.0 * (double)config->hidden * (double)(net->layers[layer].inputs + config->hidden);
  sum += (double)config->latent * (double)config->hidden;
  return 2 * (sum + 3.0 * (double)config->vertices * (double)config->latent);
}

// A loop of nothing but multiplications and additions that depend on nothing but themselves, as
// many as hide each other's latency.
#define PEAK_STEPS 20000
#if defined(__x86_64__)
#include <immintrin.h>
#define DEFINE_PEAK(name, target, vector, set1, fma)                                               \
  target static double name(void) {                                                                \
    vector sum[12], a = set1(0.999f), b = set1(0.001f);                                            \
    float first;                                                                                   \
    for (int i = 0; i < 12; i++)                                                                   \
      sum[i] = set1((float)i);                                                                     \
    double start = now();                                                                          \
    for (int step = 0; step < PEAK_STEPS; step++)                                                  \
      for (int i = 0; i < 12; i++)                                                                 \
        sum[i] = fma(sum[i], a, b);                                                                \
    double seconds = now() - start;                                                                \
    for (int i = 1; i < 12; i++)                                                                   \
      sum[0] = fma(sum[i], a, sum[0]);                                                             \
    memcpy(&first, &sum[0], sizeof first);                                                         \
    volatile float kept = first;                                                                   \
    (void)kept;                                                                                    \
    return 12.0 * PEAK_STEPS * 2 * (sizeof(vector) / sizeof(float)) / seconds;                     \
  }
DEFINE_PEAK(peak_avx2, SIMD_TARGET_AVX2, __m256, _mm256_set1_ps, _mm256_fmadd_ps)
DEFINE_PEAK(peak_avx512, SIMD_TARGET_AVX512, __m512, _mm512_set1_ps, _mm512_fmadd_ps)
#endif

// Floating-point operations a second at most, 0 where it is not known how to tell.
static double measure_peak(enum simd_level level) {
  double best = 0;
#if defined(__x86_64__)
  for (int i = 0; i < 200 && level != SIMD_PLAIN; i++) {
    double rate = level == SIMD_AVX512 ? peak_avx512() : peak_avx2();
    best = rate > best ? rate : best;
  }
#else
  (void)level;
#endif
  return best;
}

static void read_processor(char *name, size_t size) {
  char line[256];
  FILE *file = fopen("/proc/cpuinfo", "r");
  snprintf(name, size, "unknown processor");
  while (file && fgets(line, sizeof line, file)) {
    char *value = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !value)
      continue;
    snprintf(name, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
    break;
  }
  if (file)
    fclose(file);
}

static enum simd_level find_level(const char *name) {
  for (enum simd_level level = 0; level < SIMD_LEVELS; level++)
    if (!strcmp(simd_name(level), name))
      return level;
  return simd_best();
}

static void *allocate(size_t count, size_t size) {
  void *block = memory_alloc(count, size);
  if (!block) {
    fprintf(stderr, "step: out of memory\n");
    exit(1);
  }
  return block;
}

// Each session's buffers begin somewhere else in a page, as they do in a server.
static void make_sessions(struct bench *bench) {
  const struct net_config *config = net_config(bench->net);
  static float pose[BATCH_MAX][NET_POSE_SIZE], trans[3], betas[FEATURES_BETAS];
  size_t largest = 3 * config->vertices;
  for (size_t i = 0; i < BATCH_MAX; i++) {
    for (size_t j = 0; j < NET_POSE_SIZE; j++)
      pose[i][j] = 0.01f * (float)((i * 7 + j * 13) % 50);
    bench->items[i] = (struct net_item){.state = allocate(net_state_size(bench->net), 4),
                                        .pose = pose[i],
                                        .trans = trans,
                                        .betas = betas,
                                        .displacement = (float *)allocate(largest + 4, 4) + 4};
  }
  bench->x = allocate(BATCH_MAX * 2 * NET_HIDDEN_MAX, sizeof(float));
  bench->y = allocate(BATCH_MAX * largest, sizeof(float));
}

static void measure_batch(struct bench *bench, size_t batch, double seconds, struct figures *f) {
  bench->batch = batch;
  f->batch = batch;
  f->step = measure(run_step, bench, seconds);
  f->features = measure(run_features, bench, seconds / 6);
  f->lstm = measure(run_lstm, bench, seconds / 3);
  f->linear = measure(run_linear, bench, seconds / 6);
  f->decoder = measure(run_decoder, bench, seconds / 3);
  f->blas = measure(run_blas, bench, seconds / 2);
}

static void print_header(const char *processor, enum simd_level level, double flops, double peak) {
  printf("%s, one thread, %s kernels\n", processor, simd_name(level));
  printf("%.2f MFLOP a frame; multipliers at most %.1f GFLOP/s = %.0f frames/s\n\n", flops * 1e-6,
         peak * 1e-9, peak / flops);
  printf("        step              its parts, us a frame                  BLAS, products alone\n"
         "batch   frames/s  GFLOP/s  features  LSTM    linear  decoder      frames/s  GFLOP/s\n");
}

static void print_row(const struct figures *f, double flops) {
  double n = (double)f->batch, us = 1e6 / n;
  printf("%5zu %10.0f %8.1f %9.2f %6.1f %8.2f %8.1f %13.0f %8.1f\n", f->batch, n / f->step,
         flops * n / f->step * 1e-9, f->features * us, f->lstm * us, f->linear * us,
         f->decoder * us, n / f->blas, flops * n / f->blas * 1e-9);
  fflush(stdout);
}

static int write_json(const char *path, const char *processor, enum simd_level level, double flops,
                      double peak, const struct figures *figures,
                      const struct clip_figures *alone) {
  FILE *out = fopen(path, "w");
  if (!out)
    return -1;
  fprintf(out,
          "{\"processor\":\"%s\",\"kernels\":\"%s\",\"blas\":\"%s\",\"threads\":1,"
          "\"flop_per_frame\":%.0f,\"peak_flop_per_second\":%.4g,\"batches\":[",
          processor, simd_name(level), openblas_get_corename(), flops, peak);
  for (size_t i = 0; i < BATCHES; i++) {
    const struct figures *f = &figures[i];
    double n = (double)f->batch;
    fprintf(out,
            "%s\n {\"batch\":%zu,\"frames_per_second\":%.0f,\"features_seconds\":%.4g,"
            "\"lstm_seconds\":%.4g,\"linear_seconds\":%.4g,\"decoder_seconds\":%.4g,"
            "\"step_seconds\":%.4g,\"blas_frames_per_second\":%.0f}",
            i ? "," : "", f->batch, n / f->step, f->features, f->lstm, f->linear, f->decoder,
            f->step, n / f->blas);
  }
  fprintf(out,
          "],\n \"clip_frames_per_second\":{\"step_latents\":%.0f,\"stretch_latents\":%.0f,"
          "\"step_displacement\":%.0f,\"stretch_displacement\":%.0f}}\n",
          1 / alone->step_latents, 1 / alone->stretch_latents, 1 / alone->step_displacement,
          1 / alone->stretch_displacement);
  return fclose(out);
}

static int run_bench(const struct settings *settings) {
  static struct bench bench;
  static struct figures figures[BATCHES];
  struct net_config config = {.layers = 2,
                              .hidden = 256,
                              .latent = 64,
                              .vertices = 6890,
                              .features = feature_set_find("paper"),
                              .rate = 60};
  enum simd_level level = find_level(settings->kernel);
  struct dsnet_error error = {0};
  struct net *net;
  char processor[128];
  if (!simd_available(level)) {
    fprintf(stderr, "step: this processor has no %s\n", simd_name(level));
    return 1;
  }
  if (net_new_random_at(&net, &config, 1, level, &error) ||
      net_scratch_new(&bench.scratch, net, BATCH_MAX, &error)) {
    fprintf(stderr, "step: %s\n", error.text);
    return 1;
  }
  bench.net = net;
  gemm_blas_threads(1);
  make_sessions(&bench);
  read_processor(processor, sizeof processor);
  double flops = count_flops(net), peak = measure_peak(level);
  print_header(processor, level, flops, peak);
  for (size_t i = 0; i < BATCHES; i++) {
    measure_batch(&bench, batches[i], settings->seconds, &figures[i]);
    print_row(&figures[i], flops);
  }
  struct clip_figures alone;
  if (measure_clip(&bench, settings->seconds, &alone, &error) < 0) {
    fprintf(stderr, "step: %s\n", error.text);
    return 1;
  }
  print_clip(&alone);
  printf("\nBLAS: OpenBLAS with its %s kernels, weights as they are, one call a product\n",
         openblas_get_corename());
  if (settings->json &&
      write_json(settings->json, processor, level, flops, peak, figures, &alone)) {
    perror(settings->json);
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  struct settings settings;
  struct dsnet_error error = {0};
  int outcome = options_parse(&table, argc, argv, &settings, &error);
  if (outcome == OPTIONS_HELP) {
    options_print_help(&table, stdout);
    return 0;
  }
  if (outcome != OPTIONS_PARSED) {
    fprintf(stderr, "step: %s\n", error.text);
    return 2;
  }
  return run_bench(&settings);
}
