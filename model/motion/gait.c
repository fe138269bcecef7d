// SPDX-License-Identifier: Apache-2.0
#include "motion/gait.h"

#include <math.h>

// A knee that straightens at full reach does so infinitely fast, so the last of the reach is given
// up smoothly, as people do: distances over 0.965 of the leg approach 0.997 of it.
static double soften_reach(double distance) {
  const double length = GAIT_THIGH + GAIT_SHANK, from = 0.965 * length, room = 0.032 * length;
  return distance <= from ? distance : from + room * (1 - exp((from - distance) / room));
}

static double clamp(double x, double low, double high) {
  return fmin(fmax(x, low), high);
}

struct gait_leg gait_leg_reach(double forward, double down, double pitch) {
  const double a = GAIT_THIGH, b = GAIT_SHANK;
  double distance = fmax(soften_reach(hypot(forward, down)), fabs(a - b) + 1e-3);
  double inner = acos(clamp((a * a + b * b - distance * distance) / (2 * a * b), -1, 1));
  double before = acos(clamp((a * a + distance * distance - b * b) / (2 * a * distance), -1, 1));
  struct gait_leg leg;
  leg.hip = atan2(forward, down) + before;
  leg.knee = acos(-1) - inner;
  leg.ankle = leg.knee - leg.hip - pitch;
  return leg;
}

// x'' = -w^2 x - g from x = 0, x' = -v is back at 0 with x' = v when w * stance = 2 theta, where
// theta in (pi/2, pi) solves tan(theta) = -v w / g. With w = 2 theta / stance that is one equation
// in theta.
static double stance_omega(double speed, double stance) {
  double low = acos(-1) / 2, high = acos(-1);
  for (int i = 0; i < 60; i++) {
    double theta = (low + high) / 2;
    double excess = tan(theta) + speed * 2 * theta / stance / GAIT_GRAVITY;
    if (excess < 0)
      low = theta;
    else
      high = theta;
  }
  return (low + high) / stance;
}

struct gait_bounce gait_bounce_make(double period, double flight) {
  struct gait_bounce bounce = {.flight = flight, .stance = period - flight};
  bounce.speed = GAIT_GRAVITY * flight / 2;
  bounce.omega = stance_omega(bounce.speed, bounce.stance);
  return bounce;
}

double gait_bounce_height(const struct gait_bounce *bounce, double time, double *airborne) {
  double period = bounce->flight + bounce->stance;
  double t = time - period * floor(time / period);
  double ignored;
  if (!airborne)
    airborne = &ignored;
  if (t < bounce->stance) {
    *airborne = 0;
    double w = bounce->omega;
    return -GAIT_GRAVITY / (w * w) * (1 - cos(w * t)) - bounce->speed / w * sin(w * t);
  }
  t -= bounce->stance;
  *airborne = t / bounce->flight;
  return bounce->speed * t - GAIT_GRAVITY / 2 * t * t;
}
