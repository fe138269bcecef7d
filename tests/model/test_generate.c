// SPDX-License-Identifier: Apache-2.0
// motion/gait.c and motion/generate.c: legs that reach their foot, bounces that obey gravity, and
// clips whose joints move no faster than people do.
#include "motion/generate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "body/pose.h"
#include "builtin/builtin.h"
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

// The lowest vertex of the built-in body over a clip's frames, every third one: the least and the
// greatest, metres over the floor.
static void sole_heights(const struct body *body, const struct clip *clip, float *low,
                         float *high) {
  size_t count = body_vertices(body);
  float *shaped = memory_alloc(count, 3 * sizeof *shaped);
  float *posed = memory_alloc(count, 3 * sizeof *posed);
  float joints[BODY_JOINTS * 3], transforms[BODY_JOINTS * 12];
  assert_true(shaped && posed);
  body_shape(body, NULL, 0, shaped, joints);
  *low = INFINITY, *high = -INFINITY;
  for (size_t t = 0; t < clip->frames; t += 3) {
    body_transforms(body, joints, clip->pose + t * CLIP_POSE_SIZE, clip->trans + 3 * t, transforms,
                    NULL);
    body_skin(body, transforms, shaped, NULL, posed);
    float sole = INFINITY;
    for (size_t v = 0; v < count; v++)
      sole = fminf(sole, posed[3 * v + 2]);
    *low = fminf(*low, sole);
    *high = fmaxf(*high, sole);
  }
  free(shaped);
  free(posed);
}

static void feet_stand_on_the_floor_and_leave_it_to_jump(void **state) {
  (void)state;
  // How far the soles come off the floor at the most, at least and at most so.
  static const struct {
    const char *kind;
    float least, most;
  } cases[] = {{"stand", 0, 0.02f},   {"twist", 0, 0.02f},   {"walk", 0, 0.02f},
               {"run", 0.02f, 0.05f}, {"hop", 0.07f, 0.11f}, {"jacks", 0.05f, 0.1f},
               {"punch", 0, 0.02f},   {"shimmy", 0, 0.02f},  {"sample", 0.07f, 0.11f}};
  const struct generate_settings settings = {1, 1};
  struct body *body;
  assert_int_equal(builtin_body_load(&body, NULL), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct generate_kind *kind = generate_kind_find(cases[i].kind);
    struct clip *clip;
    float low, high;
    assert_int_equal(generate_clip(&clip, kind, &settings, kind->seconds, 60, 0, NULL), 0);
    sole_heights(body, clip, &low, &high);
    if (!(low > -0.01f && low < 0.02f && high >= cases[i].least && high <= cases[i].most))
      fail_msg("%s: soles between %g and %g m", kind->name, (double)low, (double)high);
    clip_free(clip);
  }
  body_free(body);
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
      cmocka_unit_test(feet_stand_on_the_floor_and_leave_it_to_jump),
      cmocka_unit_test(heading_turns_the_clip_and_nothing_else),
      cmocka_unit_test(lengths_out_of_range_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
