// SPDX-License-Identifier: Apache-2.0
// Zero-restlength springs. With y = x - t the offset from the skinned vertex t, in the world,
//
//   y'' + kd y' + ks y = -t''
//
// whose step is exact for a t'' that is constant over a frame (taken from the last three frames).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/pose.h"
#include "eval/predictor.h"

// The grid: frequency sqrt(ks) / 2 pi in Hz times damping ratio kd / (2 sqrt(ks)). The last is
// rigid for all purposes: the choice for head, hands and feet.
#define HERTZ    15
#define DAMPINGS 5
#define CHOICES  (HERTZ * DAMPINGS)
static const double grid_hertz[HERTZ] = {2.5, 3,  3.6, 4.3, 5.2, 6.2, 7.5, 9,
                                         11,  14, 20,  40,  80,  200, 2000};
static const double grid_damping[DAMPINGS] = {0.1, 0.2, 0.35, 0.6, 0.95};

// Frames of a piece that is fitted to, and how many pieces.
#define PIECE  240
#define PIECES 12
#define SETTLE 60 // first frames of a piece that do not count

// (y, y') -> (a y + b y' - e t'', c y + d y' - b t'')
struct transition {
  float a, b, c, d, e;
};

struct springs {
  size_t vertices;
  struct transition choices[CHOICES];
  uint8_t *choice;       // [V]
  float *offset, *speed; // [V][3]
  float *skinned[3];     // [V][3] now, one and two frames before
  float *posed;          // [V][3]
};

static struct transition transition_of(double hertz, double damping) {
  double w = 2 * M_PI * hertz, dt = 1 / DYNA_FPS, decay = damping * w;
  double ring = w * sqrt(1 - damping * damping), fade = exp(-decay * dt);
  double s = sin(ring * dt) / ring, k = cos(ring * dt), a = fade * (k + decay * s);
  return (struct transition){(float)a, (float)(fade * s), (float)(-fade * w * w * s),
                             (float)(fade * (k - decay * s)), (float)((1 - a) / (w * w))};
}

static void springs_free(void *context) {
  struct springs *springs = context;
  free(springs->choice);
  free(springs->offset);
  free(springs->speed);
  for (int i = 0; i < 3; i++)
    free(springs->skinned[i]);
  free(springs->posed);
  free(springs);
}

static inline void advance(const struct transition *t, float acceleration, float *y, float *v) {
  float before = *y;
  *y = t->a * before + t->b * *v - t->e * acceleration;
  *v = t->c * before + t->d * *v - t->b * acceleration;
}

static void springs_predict(void *context, const struct predictor_frame *frame,
                            float *displacement) {
  struct springs *s = context;
  const struct unpose *unpose = frame->unpose;
  float *oldest = s->skinned[2];
  s->skinned[2] = s->skinned[1];
  s->skinned[1] = s->skinned[0];
  s->skinned[0] = oldest;
  body_skin(unpose->body, unpose->transforms, unpose->rest, NULL, s->skinned[0]);
  if (frame->index == 0) {
    memset(s->offset, 0, s->vertices * 3 * sizeof(float));
    memset(s->speed, 0, s->vertices * 3 * sizeof(float));
  }
  for (size_t i = 0; i < s->vertices * 3; i++) {
    float acceleration = 0;
    if (frame->index >= 2)
      acceleration = (float)(DYNA_FPS * DYNA_FPS) * ((s->skinned[0][i] - s->skinned[1][i]) -
                                                     (s->skinned[1][i] - s->skinned[2][i]));
    advance(&s->choices[s->choice[i / 3]], acceleration, &s->offset[i], &s->speed[i]);
    s->posed[i] = s->skinned[0][i] + s->offset[i];
  }
  // Where the blended matrix of a vertex is singular the truth could not be un-posed either.
  if (body_unskin(unpose->body, unpose->transforms, unpose->rest, s->posed, displacement, NULL) < 0)
    memset(displacement, 0, s->vertices * 3 * sizeof(float));
}

// Squared errors of all choices for one coordinate over a piece: skinned and offset [PIECE][V][3].
static void add_errors(const struct springs *s, const float *skinned, const float *offset,
                       size_t frames, size_t i, double *errors) {
  size_t stride = s->vertices * 3;
  for (size_t c = 0; c < CHOICES; c++) {
    float y = 0, v = 0;
    double sum = 0;
    for (size_t t = 2; t < frames; t++) {
      const float *now = skinned + t * stride + i;
      float acceleration = (float)(DYNA_FPS * DYNA_FPS) *
                           ((now[0] - *(now - stride)) - (*(now - stride) - *(now - 2 * stride)));
      advance(&s->choices[c], acceleration, &y, &v);
      double e = (double)y - (double)offset[t * stride + i];
      sum += t >= SETTLE ? e * e : 0;
    }
    errors[(i / 3) * CHOICES + c] += sum;
  }
}

// A piece from the middle of a training sequence.
static int fit_piece(const struct springs *s, const struct body *body, struct dyna *dyna,
                     size_t index, float *skinned, float *offset, double *errors,
                     struct dsnet_error *error) {
  struct clip *clip;
  size_t frames, values = s->vertices * 3;
  int result = unpose_clip(dyna_at(dyna, index), &clip, &frames, error);
  if (result < 0)
    return result;
  size_t count = frames < PIECE ? frames : PIECE, first = (frames - count) / 2;
  struct unpose unpose;
  result = unpose_init(&unpose, body, clip->betas, 10, error);
  if (result == 0)
    result = dyna_read(dyna, index, first, count, offset, error);
  for (size_t t = 0; result == 0 && t < count; t++) {
    unpose_frame(&unpose, clip->pose + (first + t) * CLIP_POSE_SIZE, clip->trans + (first + t) * 3);
    body_skin(body, unpose.transforms, unpose.rest, NULL, skinned + t * values);
    for (size_t i = 0; i < values; i++)
      offset[t * values + i] -= skinned[t * values + i];
  }
  for (size_t i = 0; result == 0 && i < values; i++)
    add_errors(s, skinned, offset, count, i, errors);
  unpose_deinit(&unpose);
  clip_free(clip);
  return result;
}

static int fit(struct springs *s, const struct body *body, struct dyna *dyna,
               const struct splits *splits, struct dsnet_error *error) {
  size_t values = s->vertices * 3, training = 0, seen = 0;
  float *skinned = memory_alloc(PIECE * values, sizeof *skinned);
  float *offset = memory_alloc(PIECE * values, sizeof *offset);
  double *errors = memory_alloc(s->vertices * CHOICES, sizeof *errors);
  int result =
      skinned && offset && errors ? 0 : dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  for (size_t i = 0; i < dyna_count(dyna); i++)
    training +=
        splits_of(splits, dyna_at(dyna, i)->subject, dyna_at(dyna, i)->motion) == SPLIT_TRAIN;
  size_t every = training > PIECES ? training / PIECES : 1;
  for (size_t i = 0; result == 0 && i < dyna_count(dyna); i++)
    if (splits_of(splits, dyna_at(dyna, i)->subject, dyna_at(dyna, i)->motion) == SPLIT_TRAIN &&
        seen++ % every == 0)
      result = fit_piece(s, body, dyna, i, skinned, offset, errors, error);
  for (size_t v = 0; result == 0 && v < s->vertices; v++)
    for (size_t c = 1; c < CHOICES; c++)
      if (errors[v * CHOICES + c] < errors[v * CHOICES + s->choice[v]])
        s->choice[v] = (uint8_t)c;
  free(skinned);
  free(offset);
  free(errors);
  return result;
}

int predictor_springs(struct predictor *predictor, const struct body *body, struct dyna *dyna,
                      const struct splits *splits, struct dsnet_error *error) {
  struct springs *s = calloc(1, sizeof *s);
  if (!s)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  *predictor = (struct predictor){.name = "zero-restlength springs",
                                  .context = s,
                                  .predict = springs_predict,
                                  .release = springs_free};
  s->vertices = body_vertices(body);
  for (size_t c = 0; c < CHOICES; c++)
    s->choices[c] = transition_of(grid_hertz[c / DAMPINGS], grid_damping[c % DAMPINGS]);
  size_t values = s->vertices * 3;
  bool ok = (s->choice = calloc(s->vertices, 1)) != NULL;
  ok &= (s->offset = memory_alloc(values, sizeof(float))) != NULL;
  ok &= (s->speed = memory_alloc(values, sizeof(float))) != NULL;
  ok &= (s->posed = memory_alloc(values, sizeof(float))) != NULL;
  for (int i = 0; i < 3; i++)
    ok &= (s->skinned[i] = memory_alloc(values, sizeof(float))) != NULL;
  if (!ok)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  return fit(s, body, dyna, splits, error);
}
