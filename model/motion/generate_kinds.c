// SPDX-License-Identifier: Apache-2.0
// The kinds of generated motion. In the body's frame a turn about +x bends forward what hangs (a
// leg's flexion is negative), about +y turns to the left, about +z raises the left arm and spreads
// the left leg.
#include "motion/generate.h"

#include <math.h>
#include <string.h>

#include "motion/gait.h"
#include "motion/rotation.h"

enum joint {
  PELVIS,
  HIP = 1,
  SPINE1 = 3,
  KNEE = 4,
  SPINE2 = 6,
  ANKLE = 7,
  SPINE3 = 9,
  NECK = 12,
  COLLAR = 13,
  HEAD = 15,
  SHOULDER = 16,
  ELBOW = 18,
  WRIST = 20,
}; // of a pair the left one; the right one follows it

#define PI        3.14159265358979323846
#define ARMS_DOWN 1.2 // of the shoulder, from the rest pose's horizontal

enum side { LEFT, RIGHT };

// +1 for the left side: what is mirrored turns the other way about y and z.
static double mirror(enum side side) {
  return side == LEFT ? 1 : -1;
}

static double smooth(double x) {
  x = fmin(fmax(x, 0), 1);
  return x * x * (3 - 2 * x);
}

static double wave(double turns) {
  return sin(2 * PI * turns);
}

// A hump over 0..1 that begins and ends at rest.
static double hump(double x) {
  return x > 0 && x < 1 ? sin(PI * x) * sin(PI * x) : 0;
}

static double fraction(double x) {
  return x - floor(x);
}

// Turns a joint by `angle` about `axis` (0..2), before what it has been turned by already.
static void turn(struct generate_pose *pose, int joint, int axis, double angle) {
  double vector[3] = {0}, q[4];
  vector[axis] = angle;
  quaternion_from_vector(vector, q);
  quaternion_multiply(q, pose->joints[joint], pose->joints[joint]);
}

static void turn_spine(struct generate_pose *pose, int axis, double angle) {
  turn(pose, SPINE1, axis, 0.3 * angle);
  turn(pose, SPINE2, axis, 0.35 * angle);
  turn(pose, SPINE3, axis, 0.35 * angle);
}

// An arm hanging at `down` under the horizontal, swung forward by `swing`, with the elbow bent.
static void place_arm(struct generate_pose *pose, enum side side, double down, double swing,
                      double elbow) {
  turn(pose, ELBOW + (int)side, 1, -mirror(side) * elbow);
  turn(pose, SHOULDER + (int)side, 2, -mirror(side) * down);
  turn(pose, SHOULDER + (int)side, 0, -swing);
}

// A leg whose foot is `forward` of where it stands and whose sole's lowest point is `up` over the
// floor, spread outwards by `spread`. A foot pitched by `pitch` pivots on its toes (positive) or
// its heel, which raises the ankle.
static void place_leg(struct generate_pose *pose, enum side side, double forward, double up,
                      double spread, double pitch) {
  double pivot = pitch > 0 ? GAIT_TOES : -GAIT_HEEL; // in front of the ankle
  double ankle = up + GAIT_ANKLE_HEIGHT * cos(pitch) + pivot * sin(pitch);
  double shift = pivot * (1 - cos(pitch)) + GAIT_ANKLE_HEIGHT * sin(pitch);
  double down = pose->pelvis[1] - GAIT_HIP_DROP - ankle;
  struct gait_leg leg = gait_leg_reach(forward + shift, down / cos(spread), pitch);
  turn(pose, HIP + (int)side, 0, -leg.hip);
  turn(pose, HIP + (int)side, 2, mirror(side) * spread);
  turn(pose, KNEE + (int)side, 0, leg.knee);
  turn(pose, ANKLE + (int)side, 0, -leg.ankle);
  turn(pose, ANKLE + (int)side, 2, -mirror(side) * spread);
}

static void start(struct generate_pose *pose) {
  memset(pose, 0, sizeof *pose);
  for (int j = 0; j < 22; j++)
    pose->joints[j][0] = 1;
  pose->pelvis[1] = GAIT_STANDING;
}

static void stand(const struct generate_settings *settings, double time,
                  struct generate_pose *pose) {
  double t = time * settings->rate, size = settings->amplitude;
  start(pose);
  double sway = 0.02 * size * wave(0.17 * t);
  pose->pelvis[0] = sway;
  pose->pelvis[1] -= 0.004 + 0.004 * size * wave(0.34 * t);
  turn_spine(pose, 0, 0.02 + 0.025 * size * wave(0.27 * t)); // breath
  turn_spine(pose, 2, 1.5 * sway);
  turn(pose, HEAD, 1, 0.25 * size * wave(0.11 * t));
  turn(pose, PELVIS, 2, -1.2 * sway);
  for (enum side side = LEFT; side <= RIGHT; side++) {
    place_arm(pose, side, ARMS_DOWN + 0.03 * size * wave(0.27 * t), 0.05, 0.25);
    place_leg(pose, side, 0, 0, mirror(side) * -sway / 0.85, 0);
  }
}

#define TIPTOE 0.45 // pitch of the feet at take-off, in the air and at touch-down

// Both legs of a jump, spread alike. The heels rise before take-off and come down after touch-down;
// the toes leave the floor and come back to it at rest, the legs stretching a little in between.
static void bounce_legs(struct generate_pose *pose, const struct gait_bounce *bounce, double time,
                        double spread) {
  double airborne, period = bounce->stance + bounce->flight;
  double height = gait_bounce_height(bounce, time, &airborne);
  double stance = fmin(fraction(time / period) * period / bounce->stance, 1);
  double top = bounce->speed * bounce->speed / (2 * GAIT_GRAVITY);
  double pitch = TIPTOE * pow(cos(PI * stance), 2);
  pose->pelvis[1] = GAIT_STANDING + 0.03 + height;
  pose->pelvis[1] -= (GAIT_THIGH + GAIT_SHANK) * (1 - cos(spread));
  for (enum side side = LEFT; side <= RIGHT; side++)
    place_leg(pose, side, 0, top * hump(airborne), spread, pitch);
}

static void hop(const struct generate_settings *settings, double time, struct generate_pose *pose) {
  start(pose);
  double flight = 0.27 * sqrt(settings->amplitude); // the height goes with its square
  double period = flight + 0.25 / sqrt(settings->rate);
  struct gait_bounce bounce = gait_bounce_make(period, flight);
  bounce_legs(pose, &bounce, time, 0.04);
  double phase = time / period;
  turn_spine(pose, 0, 0.08 + 0.07 * settings->amplitude * wave(phase + 0.1));
  for (enum side side = LEFT; side <= RIGHT; side++)
    place_arm(pose, side, ARMS_DOWN - 0.1, 0.25 * settings->amplitude * wave(phase + 0.55), 0.9);
}

static void jacks(const struct generate_settings *settings, double time,
                  struct generate_pose *pose) {
  start(pose);
  double flight = 0.24, period = flight + 0.26 / sqrt(settings->rate); // out and in are two jumps
  struct gait_bounce bounce = gait_bounce_make(period, flight);
  double phase = fraction(time / (2 * period));
  // Opens during the first flight, closes during the second.
  double from = 0.5 * bounce.stance / period, to = 0.5;
  double open = smooth((phase - from) / (to - from)) - smooth((phase - from - 0.5) / (to - from));
  open *= fmin(settings->amplitude, 1.3);
  bounce_legs(pose, &bounce, time, 0.04 + 0.36 * open);
  for (enum side side = LEFT; side <= RIGHT; side++)
    place_arm(pose, side, ARMS_DOWN - 2.1 * open, 0.05, 0.25);
}

// One leg of a runner on the spot: on the floor for `stance` of the stride, the heel rising in its
// last part, then the foot swings up behind.
static void run_leg(struct generate_pose *pose, enum side side, double phase, double stance,
                    double lift) {
  double swing = hump((phase - stance) / (1 - stance));
  double raise = hump((phase - 0.6 * stance) / (1 - 0.6 * stance));
  place_leg(pose, side, -0.6 * lift * swing, lift * swing, 0.02, fmin(3.2 * lift, 1) * raise);
}

static void run(const struct generate_settings *settings, double time, struct generate_pose *pose) {
  start(pose);
  double step = 0.36 / sqrt(settings->rate), flight = 0.28 * step;
  struct gait_bounce bounce = gait_bounce_make(step, flight);
  pose->pelvis[1] = GAIT_STANDING - 0.02 + gait_bounce_height(&bounce, time, NULL);
  double phase = time / (2 * step), stance = 0.5 * (step - flight) / step;
  double swing = wave(phase - 0.06) * settings->amplitude;
  run_leg(pose, LEFT, fraction(phase), stance, 0.2 * settings->amplitude);
  run_leg(pose, RIGHT, fraction(phase + 0.5), stance, 0.2 * settings->amplitude);
  turn(pose, PELVIS, 1, 0.08 * swing);
  turn_spine(pose, 1, -0.2 * swing);
  turn_spine(pose, 0, 0.12);
  turn(pose, HEAD, 0, -0.06);
  for (enum side side = LEFT; side <= RIGHT; side++)
    place_arm(pose, side, ARMS_DOWN, 0.1 - mirror(side) * 0.55 * swing, 1.5);
}

static void twist(const struct generate_settings *settings, double time,
                  struct generate_pose *pose) {
  start(pose);
  double angle = settings->amplitude * wave(1.1 * settings->rate * time);
  pose->pelvis[1] -= 0.03 + 0.01 * angle * angle;
  turn(pose, PELVIS, 1, 0.2 * angle);
  turn_spine(pose, 1, 0.8 * angle);
  turn(pose, HEAD, 1, -0.4 * angle);
  for (enum side side = LEFT; side <= RIGHT; side++) {
    place_arm(pose, side, 0.35, 0.3, 1.2);
    place_leg(pose, side, 0, 0, 0.12, 0);
    turn(pose, HIP + (int)side, 1, -0.2 * angle);
  }
}

// Straight punches from a guard, left and right in turn, the trunk and the hips turning into each.
static void punch(const struct generate_settings *settings, double time,
                  struct generate_pose *pose) {
  start(pose);
  double size = fmin(settings->amplitude, 1.3), phase = 0.9 * settings->rate * time;
  double out[2] = {hump(fraction(phase) / 0.45), hump(fraction(phase + 0.5) / 0.45)};
  double angle = -0.5 * size * (out[LEFT] - out[RIGHT]);
  pose->pelvis[1] -= 0.06 + 0.02 * size * (out[LEFT] + out[RIGHT]);
  pose->pelvis[2] = 0.03 * size * (out[LEFT] + out[RIGHT]);
  turn(pose, PELVIS, 1, 0.35 * angle);
  turn_spine(pose, 1, 0.9 * angle);
  turn_spine(pose, 0, 0.1);
  turn(pose, HEAD, 1, -0.9 * angle);
  for (enum side side = LEFT; side <= RIGHT; side++) {
    place_arm(pose, side, ARMS_DOWN, 0.5 + 0.9 * size * out[side], 2.1 - 1.5 * size * out[side]);
    place_leg(pose, side, 0.12 * mirror(side) - pose->pelvis[2], 0, 0.12, 0);
    turn(pose, HIP + (int)side, 1, -0.35 * angle);
  }
}

// The shoulders shaken forward and back, the hips from side to side a little slower.
static void shimmy(const struct generate_settings *settings, double time,
                   struct generate_pose *pose) {
  start(pose);
  double t = settings->rate * time, size = settings->amplitude;
  double shoulders = 0.2 * size * wave(2.4 * t), sway = 0.025 * size * wave(1.8 * t);
  pose->pelvis[0] = sway;
  pose->pelvis[1] -= 0.04 + 0.008 * size * wave(3.6 * t);
  turn(pose, PELVIS, 2, 2.5 * sway);
  turn_spine(pose, 2, -2.5 * sway);
  turn_spine(pose, 1, shoulders);
  turn_spine(pose, 0, 0.04);
  turn(pose, HEAD, 1, -0.9 * shoulders);
  for (enum side side = LEFT; side <= RIGHT; side++) {
    turn(pose, COLLAR + (int)side, 1, 0.6 * shoulders);
    place_arm(pose, side, 0.6, 0.1, 0.7);
    place_leg(pose, side, 0, 0, 0.08 - mirror(side) * sway / 0.85, 0);
    turn(pose, HIP + (int)side, 2, -2.5 * sway);
  }
}

// Where a walker's foot is, from under the hip, at `phase` of its stride: left behind by the body
// at constant speed during stance, then brought to the front by the cubic that sets off and lands
// at that same speed, so that it neither slips nor jerks.
static double walk_forward(double phase, double stance, double length) {
  double reach = length * stance / 2;
  if (phase < stance)
    return reach - length * phase;
  double s = (phase - stance) / (1 - stance);
  return -reach + 2 * reach * smooth(s) - length * (1 - stance) * s * (1 - s) * (1 - 2 * s);
}

static void walk(const struct generate_settings *settings, double time,
                 struct generate_pose *pose) {
  start(pose);
  double stride = 1.15 / sqrt(settings->rate), length = 1.0 * sqrt(settings->amplitude),
         stance = 0.62;
  double phase = time / stride;
  pose->pelvis[0] = 0.02 * wave(phase + 0.2);
  pose->pelvis[1] -= 0.045 - 0.015 * wave(2 * phase + 0.1);
  pose->pelvis[2] = length * phase;
  for (enum side side = LEFT; side <= RIGHT; side++) {
    double p = fraction(phase + 0.5 * (double)side);
    place_leg(pose, side, walk_forward(p, stance, length),
              p < stance ? 0 : 0.05 * hump((p - stance) / (1 - stance)), 0,
              0.55 * hump((p - 0.43) / 0.45) - 0.15 * hump((p - 0.85) / 0.15));
    place_arm(pose, side, ARMS_DOWN + 0.1, -0.3 * settings->amplitude * cos(2 * PI * p), 0.35);
  }
  turn(pose, PELVIS, 1, 0.07 * settings->amplitude * cos(2 * PI * phase));
  turn_spine(pose, 1, -0.16 * settings->amplitude * cos(2 * PI * phase));
  turn_spine(pose, 0, 0.05);
}

struct segment {
  void (*pose)(const struct generate_settings *settings, double time, struct generate_pose *pose);
  double until; // seconds at which the next one has begun to take over
};

#define BLEND 0.6 // seconds of taking over

static void blend(struct generate_pose *pose, const struct generate_pose *next, double share) {
  for (int j = 0; j < 22; j++)
    quaternion_slerp(pose->joints[j], next->joints[j], share, pose->joints[j]);
  for (int k = 0; k < 3; k++)
    pose->pelvis[k] += share * (next->pelvis[k] - pose->pelvis[k]);
}

static void sample(const struct generate_settings *settings, double time,
                   struct generate_pose *pose) {
  static const struct segment segments[] = {{stand, 1.2}, {hop, 4.0},    {stand, 5.0},
                                            {run, 8.0},   {twist, 10.4}, {stand, INFINITY}};
  double begun = 0;
  size_t i = 0;
  for (; time >= segments[i].until; i++)
    begun = segments[i].until;
  segments[i].pose(settings, time - begun, pose);
  double share = 1 - smooth((time - begun) / BLEND);
  if (i == 0 || share <= 0)
    return;
  struct generate_pose before;
  double earlier = i > 1 ? segments[i - 2].until : 0;
  segments[i - 1].pose(settings, time - earlier, &before);
  blend(pose, &before, share);
}

static const struct generate_kind kinds[] = {
    {"sample", "standing, hopping, running in place and a twist, strung together", 12, sample},
    {"stand", "standing, breathing, shifting the weight", 10, stand},
    {"hop", "hopping on both feet", 6, hop},
    {"run", "running in place", 6, run},
    {"twist", "turning the trunk from side to side", 6, twist},
    {"jacks", "jumping jacks", 6, jacks},
    {"punch", "straight punches, left and right in turn", 6, punch},
    {"shimmy", "shaking the shoulders and the hips", 6, shimmy},
    {"walk", "walking forward", 8, walk},
};

const struct generate_kind *generate_kind_at(size_t index) {
  return index < sizeof kinds / sizeof kinds[0] ? &kinds[index] : NULL;
}

const struct generate_kind *generate_kind_find(const char *name) {
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (!strcmp(kinds[i].name, name))
      return &kinds[i];
  return NULL;
}
