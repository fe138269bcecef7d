// SPDX-License-Identifier: Apache-2.0
// motion/gait.c and motion/generate.c: legs that reach their foot, bounces that obey gravity, and
// clips whose joints move no faster than people do.
#include "motion/generate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "motion/gait.h"
#include "motion/rotation.h"

static void a_leg_ends_at_the_foot_it_reaches_for(void **state) {
  (void)state;
  for (double forward = -0.3; forward <= 0.3; forward += 0.1)
    for (double down = 0.4; down <= 0.65; down += 0.1) {
      struct gait_leg leg = gait_leg_reach(forward, down, 0.2);
      double shank = leg.hip - leg.knee; // forward of straight down
      double f = GAIT_THIGH * sin(leg.hip) + GAIT_SHANK * sin(shank);
      double d = GAIT_THIGH * cos(leg.hip) + GAIT_SHANK * cos(shank);
      assert_true(fabs(f - forward) < 1e-9 && fabs(d - down) < 1e-9);
      assert_true(leg.knee >= 0);
      assert_true(fabs(shank + leg.ankle + 0.2) < 1e-9); // the sole's pitch: toes down
    }
  struct gait_leg far = gait_leg_reach(0, 2, 0);
  assert_true(isfinite(far.hip) && far.knee < 0.25);
}

static void a_bounce_is_smooth_and_falls_freely(void **state) {
  (void)state;
  struct gait_bounce bounce = gait_bounce_make(0.5, 0.25);
  const double h = 1e-4;
  for (double t = h; t < 1; t += 0.003) {
    double before = gait_bounce_height(&bounce, t - h, NULL), airborne;
    double here = gait_bounce_height(&bounce, t, &airborne);
    double after = gait_bounce_height(&bounce, t + h, NULL);
    double acceleration = (before - 2 * here + after) / (h * h);
    if (airborne > 0.01 && airborne < 0.99)
      assert_true(fabs(acceleration + GAIT_GRAVITY) < 1e-3);
    else
      assert_true(acceleration > -GAIT_GRAVITY - 1e-3); // legs push, they never pull
    assert_true(fabs(after - before) / (2 * h) < bounce.speed * 2);
  }
  assert_true(fabs(gait_bounce_height(&bounce, bounce.stance + 0.125, NULL) -
                   GAIT_GRAVITY * 0.125 * 0.125 / 2) < 1e-9);
}

// Angular speed of a joint between two frames, rad/s.
static double joint_speed(const float *a, const float *b, double fps) {
  double u[3] = {a[0], a[1], a[2]}, v[3] = {b[0], b[1], b[2]}, p[4], q[4], way[3];
  quaternion_from_vector(u, p);
  quaternion_from_vector(v, q);
  quaternion_conjugate(p, p);
  quaternion_multiply(p, q, q);
  quaternion_to_vector(q, way);
  return fps * sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2]);
}

static void check_clip(const struct clip *clip, const char *name) {
  for (size_t t = 0; t < clip->frames; t++) {
    const float *trans = clip->trans + 3 * t;
    if (!(trans[2] > 0.6f && trans[2] < 1.4f))
      fail_msg("%s: frame %zu: the pelvis is at %g m", name, t, (double)trans[2]);
    for (int j = 0; t > 0 && j < 22; j++) {
      const float *now = clip->pose + t * CLIP_POSE_SIZE + 3 * j;
      double speed = joint_speed(now - CLIP_POSE_SIZE, now, clip->fps);
      if (!(speed < 22))
        fail_msg("%s: frame %zu, joint %d: %g rad/s", name, t, j, speed);
      for (int k = 0; k < 3; k++)
        assert_true(fabsf(now[k] - now[k - CLIP_POSE_SIZE]) < 1); // no jump of representation
    }
  }
}

static void every_kind_moves_as_a_person_could(void **state) {
  (void)state;
  static const double scales[] = {GENERATE_SCALE_MIN, 1, GENERATE_SCALE_MAX};
  const struct generate_kind *kind;
  for (size_t i = 0; (kind = generate_kind_at(i)); i++)
    for (int s = 0; s < 9; s++) {
      struct generate_settings settings = {scales[s % 3], scales[s / 3]};
      struct clip *clip;
      assert_int_equal(generate_clip(&clip, kind, &settings, kind->seconds, 60, 0.7, NULL), 0);
      assert_int_equal(clip->frames, (size_t)ceil(kind->seconds * 60));
      check_clip(clip, kind->name);
      clip_free(clip);
    }
}

static void heading_turns_the_clip_and_nothing_else(void **state) {
  (void)state;
  struct generate_settings settings = {1, 1};
  struct clip *a, *b;
  assert_int_equal(generate_clip(&a, generate_kind_find("walk"), &settings, 2, 60, 0, NULL), 0);
  assert_int_equal(
      generate_clip(&b, generate_kind_find("walk"), &settings, 2, 60, acos(-1) / 2, NULL), 0);
  assert_true(a->trans[3 * 119 + 1] < -1); // forward is -y
  for (size_t t = 0; t < a->frames; t++) {
    assert_true(fabsf(b->trans[3 * t] + a->trans[3 * t + 1]) < 1e-6f);
    assert_true(fabsf(b->trans[3 * t + 1] - a->trans[3 * t]) < 1e-6f);
    assert_memory_equal(a->pose + t * CLIP_POSE_SIZE + 3, b->pose + t * CLIP_POSE_SIZE + 3,
                        (CLIP_POSE_SIZE - 3) * sizeof(float));
  }
  clip_free(a);
  clip_free(b);
}

static void lengths_out_of_range_are_refused(void **state) {
  (void)state;
  struct generate_settings settings = {1, 1};
  struct clip *clip = NULL;
  const struct generate_kind *kind = generate_kind_find("hop");
  static const double wrong[][2] = {{0, 60}, {-1, 60}, {NAN, 60}, {4000, 60}, {1, 0}, {1, NAN}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_int_equal(generate_clip(&clip, kind, &settings, wrong[i][0], wrong[i][1], 0, NULL),
                     DSNET_EVALUE);
  assert_null(generate_kind_find("fly"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_leg_ends_at_the_foot_it_reaches_for),
      cmocka_unit_test(a_bounce_is_smooth_and_falls_freely),
      cmocka_unit_test(every_kind_moves_as_a_person_could),
      cmocka_unit_test(heading_turns_the_clip_and_nothing_else),
      cmocka_unit_test(lengths_out_of_range_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
