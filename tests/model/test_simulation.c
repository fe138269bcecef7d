// SPDX-License-Identifier: Apache-2.0
// model/sim/drive and simulation on the built-in body: what must not move does not, what moves does
// so like tissue, and nothing depends on where the body is or which way it looks.
#include "sim/simulation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "body/region.h"
#include "builtin/builtin.h"
#include "motion/deglitch.h"
#include "motion/rotation.h"

// Unoptimised builds (debug, sanitizers) use a coarser tissue.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&    \
    defined(NDEBUG)
static const struct tissue_settings settings = {.edge = 0.03, .layers = 2};
static const double frequency_high = 8;
#else
static const struct tissue_settings settings = {.edge = 0.07, .layers = 2};
static const double frequency_high = 10; // coarse elements are too stiff
#endif

static const double pi = 3.14159265358979323846;
static struct body *body;
static struct tissue *tissue;
static uint8_t *regions;

static int setup(void **state) {
  (void)state;
  struct dsnet_error error = {0};
  if (builtin_body_load(&body, &error) || tissue_new(&tissue, body, &settings, &error))
    fail_msg("%s", error.text);
  regions = malloc(body_vertices(body));
  assert_non_null(regions);
  body_regions(body, regions);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  tissue_free(tissue);
  body_free(body);
  free(regions);
  return 0;
}

// --- clips --------------------------------------------------------------------------------------

// A body that stands upright in the world, arms out as in the rest pose, looking along `heading`.
static void stand(struct clip *clip, double heading) {
  double up[3] = {pi / 2, 0, 0}, turn[3] = {0, 0, heading}, q[2][4], both[4], vector[3];
  quaternion_from_vector(up, q[0]);
  quaternion_from_vector(turn, q[1]);
  quaternion_multiply(q[1], q[0], both);
  quaternion_to_vector(both, vector);
  for (size_t t = 0; t < clip->frames; t++)
    for (int c = 0; c < 3; c++)
      clip->pose[t * CLIP_POSE_SIZE + (size_t)c] = (float)vector[c];
}

static struct clip *clip_make(size_t frames) {
  struct clip *clip;
  assert_int_equal(clip_new(&clip, frames, SIMULATION_FPS, NULL), DSNET_OK);
  stand(clip, 0);
  return clip;
}

// Hops at two a second, 12 cm up and down, with swinging arms and hips, at a heading and from a
// place.
static struct clip *hop(size_t frames, double heading, double x, double y) {
  struct clip *clip = clip_make(frames);
  stand(clip, heading);
  for (size_t t = 0; t < frames; t++) {
    double phase = 2 * pi * 2 * (double)t / SIMULATION_FPS, s = sin(phase);
    float *pose = clip->pose + t * CLIP_POSE_SIZE;
    pose[3 * 1] = pose[3 * 2] = (float)(-0.4 * s * s);
    pose[3 * 4] = pose[3 * 5] = (float)(0.8 * s * s);
    pose[3 * 16 + 2] = (float)(0.5 * s - 0.9);
    pose[3 * 17 + 2] = (float)(0.9 - 0.5 * s);
    clip->trans[3 * t] = (float)x;
    clip->trans[3 * t + 1] = (float)y;
    clip->trans[3 * t + 2] = (float)(1 + 0.06 * (1 - cos(phase)));
  }
  return clip;
}

// --- runs ---------------------------------------------------------------------------------------

struct outcome {
  double rms[BODY_REGION_COUNT], largest[BODY_REGION_COUNT]; // metres
  double peak;                                               // of all
  float *last;                                               // [V][3]
};

static void outcome_free(struct outcome *outcome) {
  free(outcome->last);
}

static struct simulation *simulation_make(float mass) {
  float betas[BODY_SHAPES_MAX] = {0, mass};
  struct simulation *simulation;
  struct dsnet_error error = {0};
  if (simulation_new(&simulation, tissue, betas, BODY_SHAPES_MAX, &error))
    fail_msg("%s", error.text);
  return simulation;
}

static struct outcome run(struct simulation *simulation, const struct clip *clip) {
  struct outcome outcome = {.peak = 0};
  size_t vertices = body_vertices(body), frames = 0;
  double count[BODY_REGION_COUNT] = {0};
  outcome.last = malloc(vertices * 3 * sizeof *outcome.last);
  assert_non_null(outcome.last);
  assert_int_equal(simulation_start(simulation, clip, NULL), DSNET_OK);
  for (; simulation_next(simulation, outcome.last); frames++)
    for (size_t v = 0; v < vertices; v++) {
      double square = 0;
      for (size_t c = 0; c < 3; c++)
        square += pow((double)outcome.last[3 * v + c], 2);
      assert_true(isfinite(square));
      outcome.rms[regions[v]] += square;
      count[regions[v]]++;
      outcome.largest[regions[v]] = fmax(outcome.largest[regions[v]], sqrt(square));
    }
  assert_int_equal(frames, clip->frames);
  for (int r = 0; r < BODY_REGION_COUNT; r++) {
    outcome.rms[r] = sqrt(outcome.rms[r] / count[r]);
    outcome.peak = fmax(outcome.peak, outcome.largest[r]);
  }
  return outcome;
}

static void standing_and_uniform_motion_give_no_displacement(void **state) {
  (void)state;
  struct simulation *simulation = simulation_make(1);
  const double velocities[][3] = {{0, 0, 0}, {3, 0, 0}, {-4, 5, 1}}, headings[] = {0, 1, 2.5};
  for (int i = 0; i < 3; i++) {
    struct clip *clip = clip_make(40);
    stand(clip, headings[i]);
    for (size_t t = 0; t < clip->frames; t++)
      for (size_t c = 0; c < 3; c++)
        clip->trans[3 * t + c] = (float)(velocities[i][c] * (double)t / SIMULATION_FPS + 2);
    struct outcome outcome = run(simulation, clip);
    print_message("uniform motion %d: D up to %.2g m\n", i, outcome.peak);
    assert_true(outcome.peak < 1e-5);
    outcome_free(&outcome);
    clip_free(clip);
  }
  simulation_free(simulation);
}

static void the_answer_knows_neither_heading_nor_origin(void **state) {
  (void)state;
  struct simulation *simulation = simulation_make(1);
  struct clip *here = hop(40, 0, 0, 0), *there = hop(40, 2.2, 7, -11);
  struct outcome a = run(simulation, here), b = run(simulation, there);
  double difference = 0;
  for (size_t i = 0; i < 3 * body_vertices(body); i++)
    difference = fmax(difference, fabs((double)a.last[i] - b.last[i]));
  print_message("heading and origin change D by %.2g m of %.2g\n", difference, a.peak);
  assert_true(a.peak > 5e-3);
  assert_true(difference < 2e-5);
  outcome_free(&a);
  outcome_free(&b);
  clip_free(here);
  clip_free(there);
  simulation_free(simulation);
}

static void a_run_repeats_exactly_and_leaves_nothing_behind(void **state) {
  (void)state;
  struct simulation *first = simulation_make(0), *second = simulation_make(0);
  struct clip *clip = hop(20, 0, 0, 0), *other = hop(15, 1, 0, 0);
  struct outcome a = run(first, clip), between = run(first, other), again = run(first, clip),
                 b = run(second, clip);
  assert_memory_equal(a.last, again.last, body_vertices(body) * 3 * sizeof(float));
  assert_memory_equal(a.last, b.last, body_vertices(body) * 3 * sizeof(float));
  outcome_free(&a);
  outcome_free(&again);
  outcome_free(&between);
  outcome_free(&b);
  clip_free(clip);
  clip_free(other);
  simulation_free(first);
  simulation_free(second);
}

static void heavier_shapes_and_softer_regions_move_more(void **state) {
  (void)state;
  static const enum body_region soft[] = {BODY_REGION_BELLY, BODY_REGION_CHEST,
                                          BODY_REGION_BUTTOCKS, BODY_REGION_THIGHS};
  struct clip *clip = hop(90, 0, 0, 0);
  struct outcome outcomes[3];
  for (int i = 0; i < 3; i++) {
    struct simulation *simulation = simulation_make((float)(2 * i - 2));
    outcomes[i] = run(simulation, clip);
    simulation_free(simulation);
  }
  for (size_t i = 0; i < sizeof soft / sizeof soft[0]; i++) {
    double light = outcomes[0].rms[soft[i]], mean = outcomes[1].rms[soft[i]],
           heavy = outcomes[2].rms[soft[i]];
    print_message("%s: %.2f, %.2f and %.2f mm rms from light to heavy\n", body_region_name(soft[i]),
                  1e3 * light, 1e3 * mean, 1e3 * heavy);
    assert_true(light < mean && mean < heavy);
    for (int k = 0; k < 3; k++) {
      assert_true(outcomes[k].rms[soft[i]] > 1.2 * outcomes[k].rms[BODY_REGION_CALVES]);
      assert_true(outcomes[k].rms[soft[i]] > 2 * outcomes[k].rms[BODY_REGION_FOREARMS]);
    }
  }
  assert_true(outcomes[1].peak < 0.1);
  for (int i = 0; i < 3; i++)
    outcome_free(&outcomes[i]);
  clip_free(clip);
}

// A fall that ends at once, half a second into the clip, and then nothing.
static struct clip *landing(size_t frames) {
  struct clip *clip = clip_make(frames);
  for (size_t t = 0; t < frames; t++)
    clip->trans[3 * t + 2] = t < 30 ? (float)(2 * (30 - (double)t) / SIMULATION_FPS) : 0;
  return clip;
}

// Where the spectrum of a trace is highest, Hz.
static double spectral_peak(const double *trace, int frames) {
  double best = 0, found = 0;
  for (double f = 1; f < 20; f += 0.1) {
    double a = 0, b = 0;
    for (int t = 0; t < frames; t++) {
      a += trace[t] * cos(2 * pi * f * t / SIMULATION_FPS);
      b += trace[t] * sin(2 * pi * f * t / SIMULATION_FPS);
    }
    if (a * a + b * b > best) {
      best = a * a + b * b;
      found = f;
    }
  }
  return found;
}

static void free_oscillation_is_slow_and_dies_out(void **state) {
  (void)state;
  static const enum body_region soft[] = {BODY_REGION_BELLY, BODY_REGION_CHEST,
                                          BODY_REGION_BUTTOCKS, BODY_REGION_THIGHS};
  enum { FRAMES = 30 + 125, SOFT = 4 };
  double trace[SOFT][FRAMES] = {{0}};
  for (int heavy = 0; heavy < 2; heavy++) {
    struct simulation *simulation = simulation_make(heavy ? 2 : 0);
    struct clip *clip = landing(FRAMES);
    float *d = malloc(body_vertices(body) * 3 * sizeof *d);
    assert_non_null(d);
    assert_int_equal(simulation_start(simulation, clip, NULL), DSNET_OK);
    for (size_t t = 0; simulation_next(simulation, d); t++)
      for (int r = 0; r < SOFT; r++) {
        double sum = 0, weight = 0; // downwards, where it is softest
        for (size_t v = 0; v < body_vertices(body); v++)
          if (regions[v] == soft[r]) {
            double w = pow(body_soft_tissue(body)[v], 4);
            sum += w * d[3 * v + 1];
            weight += w;
          }
        trace[r][t] = sum / weight;
      }
    for (int r = 0; r < SOFT; r++) {
      double peak = 0, left = 0, frequency = spectral_peak(trace[r] + 30, FRAMES - 30);
      for (int t = 30; t < FRAMES; t++) {
        peak = fmax(peak, fabs(trace[r][t]));
        if (t >= FRAMES - 6)
          left = fmax(left, fabs(trace[r][t]));
      }
      print_message("%s%s: %.1f mm at the landing, %.1f Hz, %.2f%% left after 2 s\n",
                    heavy ? "heavy " : "", body_region_name(soft[r]), 1e3 * peak, frequency,
                    100 * left / peak);
      assert_true(peak > 5e-3);
      assert_true(frequency > 2 && frequency < frequency_high);
      assert_true(left < 0.02 * peak);
    }
    free(d);
    clip_free(clip);
    simulation_free(simulation);
  }
}

static void a_glitch_stays_bounded_and_mending_takes_it_away(void **state) {
  (void)state;
  struct simulation *simulation = simulation_make(1);
  struct clip *good = hop(60, 0, 0, 0), *bad = hop(60, 0, 0, 0);
  const int joints[] = {0, 1, 3, 16}; // the root, a hip, the spine, a shoulder
  for (size_t i = 0; i < 4; i++)
    bad->pose[(15 + 10 * i) * CLIP_POSE_SIZE + (size_t)(3 * joints[i])] += (float)pi;
  bad->trans[3 * 52] += 5; // and a jump of the root
  struct outcome a = run(simulation, good), b = run(simulation, bad);
  assert_int_equal(clip_deglitch(bad, DEGLITCH_SPEED, NULL, NULL), DSNET_OK);
  bad->trans[3 * 52] -= 5;
  struct outcome c = run(simulation, bad);
  print_message("largest D: %.1f mm, with glitches %.1f, mended %.1f\n", 1e3 * a.peak, 1e3 * b.peak,
                1e3 * c.peak);
  assert_true(b.peak > a.peak && b.peak < 0.5);
  assert_true(c.peak < 1.05 * a.peak);
  outcome_free(&a);
  outcome_free(&b);
  outcome_free(&c);
  clip_free(good);
  clip_free(bad);
  simulation_free(simulation);
}

static void only_clips_at_sixty_frames_are_taken(void **state) {
  (void)state;
  struct simulation *simulation = simulation_make(0);
  struct clip *clip;
  assert_int_equal(clip_new(&clip, 10, 120, NULL), DSNET_OK);
  struct dsnet_error error = {0};
  assert_int_equal(simulation_start(simulation, clip, &error), DSNET_EVALUE);
  assert_non_null(strstr(error.text, "120"));
  clip_free(clip);
  assert_int_equal(clip_new(&clip, 1, 60, NULL), DSNET_OK); // a single frame has no motion
  struct outcome outcome = run(simulation, clip);
  assert_true(outcome.peak == 0);
  outcome_free(&outcome);
  clip_free(clip);
  simulation_free(simulation);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(standing_and_uniform_motion_give_no_displacement),
      cmocka_unit_test(the_answer_knows_neither_heading_nor_origin),
      cmocka_unit_test(a_run_repeats_exactly_and_leaves_nothing_behind),
      cmocka_unit_test(heavier_shapes_and_softer_regions_move_more),
      cmocka_unit_test(free_oscillation_is_slow_and_dies_out),
      cmocka_unit_test(a_glitch_stays_bounded_and_mending_takes_it_away),
      cmocka_unit_test(only_clips_at_sixty_frames_are_taken),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
