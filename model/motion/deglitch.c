// SPDX-License-Identifier: Apache-2.0
#include "motion/deglitch.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "motion/rotation.h"

#define JOINTS       (CLIP_POSE_SIZE / 3)
#define GAP          0.25 // seconds: bad steps nearer than this belong to one stretch
#define BRIDGE_SPEED 0.4  // mean speed of a bridge, of the limit; easing peaks at 1.5 times it
#define PASSES_MAX   40
#define TRUNK_SPEED  0.6 // of the limit: pelvis and spine carry most of the body and turn slower

static bool is_trunk(int joint) {
  return joint == 0 || joint == 3 || joint == 6 || joint == 9;
}

// One joint's rotations as unit quaternions [frames][4].
struct track {
  double (*q)[4];
  size_t frames;
  double fps;
};

static double angle_between(const double a[4], const double b[4]) {
  double back[4], between[4], vector[3];
  quaternion_conjugate(a, back);
  quaternion_multiply(back, b, between);
  quaternion_to_vector(between, vector);
  return sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]);
}

static double step_speed(const struct track *track, size_t frame) {
  return angle_between(track->q[frame], track->q[frame + 1]) * track->fps;
}

static void track_read(struct track *track, const struct clip *clip, int joint) {
  for (size_t t = 0; t < clip->frames; t++) {
    double vector[3];
    for (int c = 0; c < 3; c++)
      vector[c] = clip->pose[t * CLIP_POSE_SIZE + (size_t)(3 * joint + c)];
    quaternion_from_vector(vector, track->q[t]);
  }
}

double clip_joint_speed(const struct clip *clip) {
  double fastest = 0;
  for (int joint = 0; joint < JOINTS; joint++)
    for (size_t t = 0; t + 1 < clip->frames; t++) {
      double q[2][4], vector[3];
      for (size_t i = 0; i < 2; i++) {
        for (int c = 0; c < 3; c++)
          vector[c] = clip->pose[(t + i) * CLIP_POSE_SIZE + (size_t)(3 * joint + c)];
        quaternion_from_vector(vector, q[i]);
      }
      fastest = fmax(fastest, angle_between(q[0], q[1]) * clip->fps);
    }
  return fastest;
}

// Rotation vector of the step into `frame` (before) or out of it, seen in the world of the parent;
// 0 where there is no such step or it is a bad one.
static void step_vector(const struct track *track, size_t frame, bool before, double speed,
                        double vector[3]) {
  memset(vector, 0, 3 * sizeof *vector);
  if ((before && frame == 0) || (!before && frame + 1 >= track->frames))
    return;
  size_t from = before ? frame - 1 : frame;
  if (step_speed(track, from) > speed)
    return;
  double back[4], between[4];
  quaternion_conjugate(track->q[from], back);
  quaternion_multiply(track->q[from + 1], back, between);
  quaternion_to_vector(between, vector);
}

// The rotation `scale` times a step on from q.
static void carry(const double q[4], const double step[3], double scale, double out[4]) {
  double vector[3], turn[4];
  for (int c = 0; c < 3; c++)
    vector[c] = scale * step[c];
  quaternion_from_vector(vector, turn);
  quaternion_multiply(turn, q, out);
}

// Replaces the frames strictly between two good ones.
static void bridge(struct track *track, size_t first, size_t last, double speed) {
  double before[3], after[3], length = (double)(last - first);
  double from[4], to[4];
  memcpy(from, track->q[first], sizeof from);
  memcpy(to, track->q[last], sizeof to);
  step_vector(track, first, true, speed, before);
  step_vector(track, last, false, speed, after);
  for (size_t t = first + 1; t < last; t++) {
    // u (1 - u)^2 and its mirror carry the motion on at full speed at their own end and bring it to
    // rest at the other; the eased slerp has no speed at either.
    double u = (double)(t - first) / length, left[4], right[4];
    carry(from, before, length * u * (1 - u) * (1 - u), left);
    carry(to, after, -length * (1 - u) * u * u, right);
    quaternion_slerp(left, right, u * u * (3 - 2 * u), track->q[t]);
  }
}

// A stretch without a good frame on one side holds the other side's.
static void hold(struct track *track, size_t first, size_t last, size_t good) {
  for (size_t t = first; t <= last; t++)
    if (t != good)
      memcpy(track->q[t], track->q[good], sizeof track->q[t]);
}

// The last frame of the stretch that begins with the bad step after `first`.
static size_t stretch_end(const struct track *track, size_t first, double speed) {
  size_t gap = (size_t)ceil(GAP * track->fps), last = first + 1;
  for (size_t t = first + 1; t + 1 < track->frames && t <= last + gap; t++)
    if (step_speed(track, t) > speed)
      last = t + 1;
  return last;
}

// Mends the stretch from good frame `first` to good frame `last`. Each pass widens more, since a
// stretch that is found again needed more room.
static void stretch_mend(struct track *track, size_t first, size_t last, size_t widen,
                         double speed) {
  bool open_left = first < widen, open_right = last + widen >= track->frames;
  first = open_left ? 0 : first - widen;
  last = open_right ? track->frames - 1 : last + widen;
  while (!open_left && !open_right &&
         angle_between(track->q[first], track->q[last]) * track->fps >
             BRIDGE_SPEED * speed * (double)(last - first)) {
    open_left = first == 0;
    open_right = last + 1 >= track->frames;
    first -= !open_left;
    last += !open_right;
  }
  if (open_left && !open_right)
    hold(track, 0, last, last);
  else if (open_right)
    hold(track, first, track->frames - 1, first);
  else
    bridge(track, first, last, speed);
}

// Whether anything had to be mended in this pass.
static size_t track_pass(struct track *track, size_t widen, double speed) {
  size_t spans = 0;
  for (size_t t = 0; t + 1 < track->frames; t++) {
    if (step_speed(track, t) <= speed)
      continue;
    size_t last = stretch_end(track, t, speed);
    stretch_mend(track, t, last, widen, speed);
    spans++;
    t = last;
  }
  return spans;
}

// Writes back what has changed, each vector near the one before it.
static size_t track_write(const struct track *track, const struct track *original,
                          struct clip *clip, int joint) {
  size_t changed = 0;
  for (size_t t = 0; t < track->frames; t++) {
    if (!memcmp(track->q[t], original->q[t], sizeof track->q[t]))
      continue;
    float *pose = clip->pose + t * CLIP_POSE_SIZE + 3 * (size_t)joint;
    const float *near = t > 0 ? pose - CLIP_POSE_SIZE : pose;
    double reference[3] = {near[0], near[1], near[2]}, vector[3];
    rotation_vector_near(track->q[t], reference, vector);
    for (int c = 0; c < 3; c++)
      pose[c] = (float)vector[c];
    changed++;
  }
  return changed;
}

int clip_deglitch(struct clip *clip, double speed, struct deglitch_report *report,
                  struct dsnet_error *error) {
  if (!(speed > 0) || !isfinite(speed))
    return dsnet_error_set(error, DSNET_EVALUE, "the speed of a glitch must be positive");
  struct deglitch_report found = {.fastest = clip_joint_speed(clip)};
  struct track track = {.frames = clip->frames, .fps = clip->fps}, original = track;
  track.q = memory_alloc(clip->frames, sizeof *track.q);
  original.q = memory_alloc(clip->frames, sizeof *original.q);
  if (!track.q || !original.q) {
    free(track.q);
    free(original.q);
    return dsnet_error_set(error, DSNET_ENOMEM, "no memory to mend the clip");
  }
  // Rounding to float may add a little to a step that is just slow enough.
  const double most = speed * (1 - 1e-4);
  for (int joint = 0; joint < JOINTS; joint++) {
    double limit = is_trunk(joint) ? TRUNK_SPEED * most : most;
    track_read(&track, clip, joint);
    memcpy(original.q, track.q, clip->frames * sizeof *track.q);
    size_t spans = track_pass(&track, 0, limit), left = spans;
    for (size_t pass = 1; left > 0; pass++)
      left = track_pass(&track, pass < PASSES_MAX ? pass : clip->frames, limit);
    found.spans += spans;
    if (spans > 0)
      found.frames += track_write(&track, &original, clip, joint);
  }
  free(track.q);
  free(original.q);
  if (report)
    *report = found;
  return DSNET_OK;
}
