// SPDX-License-Identifier: Apache-2.0
#include "nn/lstm.h"

#include "nn/lanes.h"

// Units whose gates stand together: [i 16][f 16][g 16][o 16].
#define UNITS LANES
_Static_assert(4 * UNITS == GEMM_PART, "the gates of one group are one part of the product");

static size_t count_groups(size_t hidden) {
  return (hidden + UNITS - 1) / UNITS;
}

size_t lstm_packed_size(enum simd_level level, size_t inputs, size_t hidden) {
  return gemm_packed_size(level, count_groups(hidden) * GEMM_PART, inputs + hidden);
}

void lstm_pack(struct lstm_layer *layer, enum simd_level level, size_t inputs, size_t hidden,
               const float *weight_ih, const float *weight_hh, const float *bias_ih,
               const float *bias_hh, float *storage) {
  struct gemm_weights *weights = &layer->weights;
  layer->inputs = inputs;
  layer->hidden = hidden;
  gemm_pack_begin(weights, level, count_groups(hidden) * GEMM_PART, inputs + hidden, storage);
  for (size_t gate = 0; gate < 4; gate++)
    for (size_t unit = 0; unit < hidden; unit++) {
      size_t from = gate * hidden + unit;
      size_t to = unit / UNITS * GEMM_PART + gate * UNITS + unit % UNITS;
      gemm_pack_row(weights, to, 0, weight_ih + from * inputs, inputs);
      gemm_pack_row(weights, to, inputs, weight_hh + from * hidden, hidden);
      gemm_pack_bias(weights, to, bias_ih[from] + bias_hh[from]);
    }
}

// The gates [4][16] of one row's sixteen units, and their c and h, both [16].
LANES_FUNCTION update_units(const float *gates, float *c, float *h) {
  lanes i, f, g, o, state;
  lanes_load(&i, gates);
  lanes_load(&f, gates + UNITS);
  lanes_load(&g, gates + 2 * UNITS);
  lanes_load(&o, gates + 3 * UNITS);
  lanes_load(&state, c);
  lanes_sigmoid(&i);
  lanes_sigmoid(&f);
  lanes_tanh(&g);
  lanes_sigmoid(&o);
  state = f * state + i * g;
  lanes_store(&state, c);
  lanes_tanh(&state);
  state = o * state;
  lanes_store(&state, h);
}

// Units first .. first + count - 1 (at most 16) of all rows.
LANES_FUNCTION update_rows(size_t rows, float *const *gates, float *const *c, float *const *h,
                           size_t first, size_t count) {
  for (size_t r = 0; r < rows; r++) {
    if (count == UNITS) {
      update_units(gates[r], c[r] + first, h[r] + first);
      continue;
    }
    float c_units[UNITS] = {0}, h_units[UNITS];
    memcpy(c_units, c[r] + first, count * sizeof(float));
    update_units(gates[r], c_units, h_units);
    memcpy(c[r] + first, c_units, count * sizeof(float));
    memcpy(h[r] + first, h_units, count * sizeof(float));
  }
}

#define DEFINE_UPDATE(suffix, level, target)                                                       \
  target static void update_##suffix(size_t rows, float *const *gates, float *const *c,            \
                                     float *const *h, size_t first, size_t count) {                \
    update_rows(rows, gates, c, h, first, count);                                                  \
  }
SIMD_VARIANTS(DEFINE_UPDATE)

typedef void update_variant(size_t, float *const *, float *const *, float *const *, size_t, size_t);

static update_variant *find_update(enum simd_level level) {
  static update_variant *const variants[SIMD_LEVELS] = {
#define ENTRY(suffix, number, target) [number] = update_##suffix,
      SIMD_VARIANTS(ENTRY)
#undef ENTRY
  };
  return variants[level];
}

void lstm_step(const struct lstm_layer *layer, size_t rows, const float *x, size_t x_stride,
               float *const *c, float *const *h, float *const *scratch) {
  update_variant *update = find_update(layer->weights.level);
  for (size_t first = 0; first < layer->hidden; first += UNITS) {
    size_t left = layer->hidden - first;
    gemm_apply_part(&layer->weights, 4 * first, GEMM_PART, rows, x, x_stride, scratch);
    update(rows, scratch, c, h, first, left < UNITS ? left : UNITS);
  }
}

size_t lstm_gates_size(const struct lstm_layer *layer) {
  return layer->weights.outputs;
}

void lstm_project(const struct lstm_layer *layer, size_t steps, const float *x, size_t x_stride,
                  float *const *gates) {
  const struct gemm_range range = {.outputs = layer->weights.outputs, .inputs = layer->inputs};
  gemm_apply_range(&layer->weights, &range, steps, x, x_stride, gates);
}

void lstm_advance(const struct lstm_layer *layer, float *gates, const float *before, float *c,
                  float *h) {
  const struct gemm_range range = {.outputs = layer->weights.outputs,
                                   .input = layer->inputs,
                                   .inputs = layer->hidden,
                                   .onward = true};
  update_variant *update = find_update(layer->weights.level);
  // All outputs of one row at once: sums of a single row are too few to keep the multipliers busy.
  gemm_apply_range(&layer->weights, &range, 1, before, layer->hidden, &gates);
  for (size_t first = 0; first < layer->hidden; first += UNITS) {
    size_t left = layer->hidden - first;
    float *group = gates + first / UNITS * GEMM_PART;
    update(1, &group, &c, &h, first, left < UNITS ? left : UNITS);
  }
}
