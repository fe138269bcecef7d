// SPDX-License-Identifier: Apache-2.0
#include "train/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/region.h"
#include "io/file.h"
#include "train/predict.h"

#define WIDTH        900.0
#define HEIGHT       260.0
#define MARGIN       50.0
#define TRACES       4
#define TRACE_FRAMES 600

// One curve of a chart.
struct curve {
  const char *name, *colour;
  const double *values;
  size_t count;
};

static void draw_curve(FILE *out, const struct curve *curve, size_t longest, double low,
                       double high) {
  fprintf(out, "<polyline fill='none' stroke='%s' stroke-width='1.3' points='", curve->colour);
  for (size_t i = 0; i < curve->count; i++)
    fprintf(out, "%.1f,%.1f ",
            MARGIN + (WIDTH - MARGIN) * (double)i / (double)(longest > 1 ? longest - 1 : 1),
            (HEIGHT - 20) - (HEIGHT - 30) * (curve->values[i] - low) / (high - low));
  fputs("'/>\n", out);
}

static void draw_chart(FILE *out, const char *title, const struct curve *curves, size_t count) {
  double low = INFINITY, high = -INFINITY;
  size_t longest = 0;
  for (size_t c = 0; c < count; c++) {
    longest = curves[c].count > longest ? curves[c].count : longest;
    for (size_t i = 0; i < curves[c].count; i++) {
      low = fmin(low, curves[c].values[i]);
      high = fmax(high, curves[c].values[i]);
    }
  }
  if (!(high > low))
    high = low + 1;
  fprintf(out, "<h3>%s</h3>\n<svg viewBox='0 0 %g %g' width='%g'>\n", title, WIDTH, HEIGHT, WIDTH);
  fprintf(out, "<rect x='%g' y='10' width='%g' height='%g' fill='none' stroke='#bbb'/>\n", MARGIN,
          WIDTH - MARGIN, HEIGHT - 30);
  fprintf(out, "<text x='0' y='20'>%.3g</text><text x='0' y='%g'>%.3g</text>\n", high, HEIGHT - 20,
          low);
  for (size_t c = 0; c < count; c++) {
    draw_curve(out, &curves[c], longest, low, high);
    fprintf(out, "<text x='%g' y='%g' fill='%s'>%s</text>\n", MARGIN + 10 + 180 * (double)c,
            HEIGHT - 4, curves[c].colour, curves[c].name);
  }
  fputs("</svg>\n", out);
}

static double *column(const struct trainer *trainer, size_t offset) {
  double *values = memory_alloc(trainer->epoch + 1, sizeof *values);
  for (size_t i = 0; values && i < trainer->epoch; i++)
    memcpy(&values[i], (const char *)&trainer->records[i] + offset, sizeof *values);
  return values;
}

static int draw_progress(FILE *out, const struct trainer *trainer, struct dsnet_error *error) {
  size_t epochs = trainer->epoch;
  double *loss = column(trainer, offsetof(struct epoch_record, loss));
  double *explained = column(trainer, offsetof(struct epoch_record, explained));
  double *validation = column(trainer, offsetof(struct epoch_record, validation));
  int result =
      loss && explained && validation ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0) {
    draw_chart(out, "Loss by epoch", &(struct curve){"training loss", "#1f77b4", loss, epochs}, 1);
    const struct curve curves[2] = {{"training", "#1f77b4", explained, epochs},
                                    {"validation", "#d62728", validation, epochs}};
    draw_chart(out, "Share of the motion explained by epoch", curves, 2);
  }
  free(loss);
  free(explained);
  free(validation);
  return result;
}

// What the validation split adds up to, per vertex.
struct vertex_sums {
  double *error, *energy; // [V] m^2
  size_t frames;
};

static int expand_sequence(const struct trainer *trainer, const struct sequence *sequence,
                           struct vertex_sums *sums, struct dsnet_error *error) {
  const struct subspace *subspace = &trainer->dataset->subspace;
  size_t latent = subspace->latent, values = subspace->values;
  float *latents = memory_alloc(sequence->frames * latent, sizeof *latents);
  float *frame = memory_alloc(values, sizeof *frame), *truth = memory_alloc(values, sizeof *truth);
  int result =
      latents && frame && truth ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0)
    result = predict_latents(trainer, trainer->best, sequence, latents, error);
  for (size_t t = 0; result == 0 && t < sequence->frames; t += 4) { // every fourth says enough
    subspace_expand(subspace, latents + t * latent, 1, frame);
    subspace_expand(subspace, sequence->latents + t * latent, 1, truth);
    for (size_t i = 0; i < values; i++) {
      double e = (double)frame[i] - (double)truth[i];
      sums->error[i / 3] += e * e;
      sums->energy[i / 3] += (double)truth[i] * (double)truth[i];
    }
    sums->frames++;
  }
  free(latents);
  free(frame);
  free(truth);
  return result;
}

static int write_regions(FILE *out, const struct body *body, const struct vertex_sums *sums,
                         struct dsnet_error *error) {
  size_t vertices = body_vertices(body);
  double errors[BODY_REGION_COUNT] = {0}, energies[BODY_REGION_COUNT] = {0};
  size_t counts[BODY_REGION_COUNT] = {0};
  uint8_t *regions = calloc(vertices, 1);
  if (!regions)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  body_regions(body, regions);
  for (size_t v = 0; v < vertices; v++) {
    errors[regions[v]] += sums->error[v];
    energies[regions[v]] += sums->energy[v];
    counts[regions[v]]++;
  }
  free(regions);
  fputs("<h3>Validation by region (inside the subspace)</h3><table><tr><th>region</th>"
        "<th>motion, RMS mm</th><th>error, RMS mm</th><th>explained</th></tr>\n",
        out);
  for (int r = 0; r < BODY_REGION_COUNT; r++) {
    double n = (double)counts[r] * (double)(sums->frames ? sums->frames : 1);
    if (counts[r])
      fprintf(out, "<tr><td>%s</td><td>%.3f</td><td>%.3f</td><td>%.3f</td></tr>\n",
              body_region_name((enum body_region)r), 1000 * sqrt(energies[r] / n),
              1000 * sqrt(errors[r] / n), energies[r] > 0 ? 1 - errors[r] / energies[r] : 0);
  }
  fputs("</table>\n", out);
  return 0;
}

// The component that moves most of the given vertex over the start of a sequence, in mm.
static int draw_trace(FILE *out, const struct trainer *trainer, const struct sequence *sequence,
                      const float *latents, size_t vertex, struct dsnet_error *error) {
  const struct subspace *subspace = &trainer->dataset->subspace;
  size_t frames = sequence->frames < TRACE_FRAMES ? sequence->frames : TRACE_FRAMES;
  size_t latent = subspace->latent;
  double *series = memory_alloc(6 * frames, sizeof *series), energy[3] = {0};
  if (!series)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  for (size_t axis = 0; axis < 3; axis++)
    for (size_t t = 0; t < frames; t++)
      for (size_t k = 0; k < latent; k++) {
        double direction = 1000 * (double)subspace->scale[k] *
                           (double)subspace->basis[k * subspace->values + 3 * vertex + axis];
        series[axis * frames + t] += direction * (double)sequence->latents[t * latent + k];
        series[(3 + axis) * frames + t] += direction * (double)latents[t * latent + k];
      }
  size_t most = 0;
  for (size_t axis = 0; axis < 3; axis++) {
    for (size_t t = 0; t < frames; t++)
      energy[axis] += series[axis * frames + t] * series[axis * frames + t];
    most = energy[axis] > energy[most] ? axis : most;
  }
  char title[DYNA_NAME_SIZE + 64];
  snprintf(title, sizeof title, "Vertex %zu, axis %c, mm, %s", vertex, "xyz"[most],
           sequence -> name);
  const struct curve curves[2] = {{"true", "#333", series + most * frames, frames},
                                  {"predicted", "#d62728", series + (3 + most) * frames, frames}};
  draw_chart(out, title, curves, 2);
  free(series);
  return 0;
}

// Traces of the vertices that move most in their quarter of the body's vertices.
static int draw_traces(FILE *out, const struct trainer *trainer, const struct sequence *sequence,
                       const struct vertex_sums *sums, struct dsnet_error *error) {
  size_t vertices = trainer->dataset->vertices;
  float *latents = memory_alloc(sequence->frames * trainer->layout.latent, sizeof *latents);
  if (!latents)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = predict_latents(trainer, trainer->best, sequence, latents, error);
  for (size_t part = 0; result == 0 && part < TRACES; part++) {
    size_t best = part * vertices / TRACES;
    for (size_t v = best; v < (part + 1) * vertices / TRACES; v++)
      best = sums->energy[v] > sums->energy[best] ? v : best;
    result = draw_trace(out, trainer, sequence, latents, best, error);
  }
  free(latents);
  return result;
}

static void write_escaped(FILE *out, const char *text) {
  for (; *text; text++) {
    if (*text == '<' || *text == '>' || *text == '&')
      fprintf(out, "&#%d;", *text);
    else
      fputc(*text, out);
  }
}

static int write_body(FILE *out, const struct trainer *trainer, const struct body *body,
                      struct vertex_sums *sums, struct dsnet_error *error) {
  const struct dataset *dataset = trainer->dataset;
  const struct sequence *shown = NULL;
  int result = draw_progress(out, trainer, error);
  for (size_t s = 0; result == 0 && s < dataset->count; s++) {
    if (dataset->sequences[s].split != SPLIT_VALIDATION)
      continue;
    shown = shown ? shown : &dataset->sequences[s];
    result = expand_sequence(trainer, &dataset->sequences[s], sums, error);
  }
  if (result == 0)
    result = write_regions(out, body, sums, error);
  if (result == 0 && shown)
    result = draw_traces(out, trainer, shown, sums, error);
  return result;
}

int report_write(struct trainer *trainer, const struct body *body, const char *provenance,
                 const char *path, struct dsnet_error *error) {
  size_t vertices = trainer->dataset->vertices, size = 0;
  char *text = NULL;
  FILE *out = open_memstream(&text, &size);
  struct vertex_sums sums = {memory_alloc(vertices, sizeof(double)),
                             memory_alloc(vertices, sizeof(double)), 0};
  int result =
      out && sums.error && sums.energy ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0) {
    fputs("<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>Training report</title>"
          "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}"
          "td,th{border:1px solid #bbb;padding:2px 8px}svg text{font-size:12px}"
          "pre{white-space:pre-wrap;overflow-wrap:anywhere}</style><h1>Training report</h1><pre>",
          out);
    write_escaped(out, provenance);
    fputs("</pre>\n", out);
    result = write_body(out, trainer, body, &sums, error);
    fputs("</html>\n", out);
  }
  if (out && (fclose(out) != 0) && result == 0)
    result = dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  if (result == 0)
    result = file_write(path, text, size, error);
  free(text);
  free(sums.error);
  free(sums.energy);
  return result;
}
