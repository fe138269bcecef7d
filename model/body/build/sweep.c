// SPDX-License-Identifier: Apache-2.0
#include "sweep.h"

#include "vector.h"

void sweep_add(struct sweep *sweep, double at, double u0, double u1, double v0, double v1,
               double cu, double cv, double power) {
  double *value = sweep->value[sweep->count];
  sweep->at[sweep->count++] = at;
  value[SWEEP_CENTRE_U] = cu;
  value[SWEEP_CENTRE_V] = cv;
  value[SWEEP_U_MINUS] = cu - u0;
  value[SWEEP_U_PLUS] = u1 - cu;
  value[SWEEP_V_MINUS] = cv - v0;
  value[SWEEP_V_PLUS] = v1 - cv;
  value[SWEEP_POWER] = power;
}

// Finite differences weighted as a parabola through three stations (Catmull-Rom on uneven steps).
void sweep_finish(struct sweep *sweep) {
  int last = sweep->count - 1;
  for (int i = 0; i <= last; i++) {
    int a = i > 0 ? i - 1 : 0, b = i < last ? i + 1 : last;
    double h0 = sweep->at[i] - sweep->at[a], h1 = sweep->at[b] - sweep->at[i];
    for (int c = 0; c < SWEEP_CHANNELS; c++) {
      double d0 = h0 > 0 ? (sweep->value[i][c] - sweep->value[a][c]) / h0 : 0;
      double d1 = h1 > 0 ? (sweep->value[b][c] - sweep->value[i][c]) / h1 : 0;
      sweep->slope[i][c] = h0 > 0 && h1 > 0 ? (d0 * h1 + d1 * h0) / (h0 + h1) : d0 + d1;
    }
  }
}

// Cubic Hermite interpolation of all channels at `s`, clamped to the ends.
static void interpolate(const struct sweep *sweep, double s, double out[SWEEP_CHANNELS]) {
  int last = sweep->count - 1, i = 0;
  s = fmin(fmax(s, sweep->at[0]), sweep->at[last]);
  while (i < last - 1 && s > sweep->at[i + 1])
    i++;
  double h = sweep->at[i + 1] - sweep->at[i], t = (s - sweep->at[i]) / h;
  double t2 = t * t, t3 = t2 * t;
  double a = 2 * t3 - 3 * t2 + 1, b = h * (t3 - 2 * t2 + t), c = 1 - a, d = h * (t3 - t2);
  for (int k = 0; k < SWEEP_CHANNELS; k++)
    out[k] = a * sweep->value[i][k] + b * sweep->slope[i][k] + c * sweep->value[i + 1][k] +
             d * sweep->slope[i + 1][k];
}

double sweep_distance(const struct sweep *sweep, const double point[3]) {
  double p[3], section[SWEEP_CHANNELS];
  vector_subtract(point, sweep->origin, p);
  double s = vector_dot(p, sweep->axis);
  interpolate(sweep, s, section);
  double u = vector_dot(p, sweep->u) - section[SWEEP_CENTRE_U];
  double v = vector_dot(p, sweep->v) - section[SWEEP_CENTRE_V];
  double start = sweep->at[0], end = sweep->at[sweep->count - 1];
  double w = s < start ? s - start : s > end ? s - end : 0;
  double qu = fabs(u) / section[u < 0 ? SWEEP_U_MINUS : SWEEP_U_PLUS];
  double qv = fabs(v) / section[v < 0 ? SWEEP_V_MINUS : SWEEP_V_PLUS];
  double qw = fabs(w) / (w < 0 ? sweep->cap_start : sweep->cap_end);
  double power = section[SWEEP_POWER], rho2;
  if (power == 2)
    rho2 = qu * qu + qv * qv;
  else
    rho2 = pow(pow(qu, power) + pow(qv, power), 2 / power);
  double rho = sqrt(rho2 + qw * qw), radius = sqrt(u * u + v * v + w * w);
  if (rho < 1e-9) // on the axis the ray has no direction
    return -fmin(section[SWEEP_U_MINUS], section[SWEEP_V_MINUS]);
  return radius - radius / rho;
}

void sweep_bound(const struct sweep *sweep, double centre[3], double *radius) {
  int last = sweep->count - 1;
  double points[SWEEP_STATIONS_MAX][3];
  for (int i = 0; i < 3; i++)
    centre[i] = 0;
  for (int k = 0; k <= last; k++) {
    for (int i = 0; i < 3; i++)
      points[k][i] = sweep->origin[i];
    vector_add_scaled(points[k], sweep->at[k], sweep->axis);
    vector_add_scaled(points[k], sweep->value[k][SWEEP_CENTRE_U], sweep->u);
    vector_add_scaled(points[k], sweep->value[k][SWEEP_CENTRE_V], sweep->v);
    vector_add_scaled(centre, 1.0 / sweep->count, points[k]);
  }
  *radius = 0;
  for (int k = 0; k <= last; k++) {
    const double *value = sweep->value[k];
    double u = fmax(value[SWEEP_U_MINUS], value[SWEEP_U_PLUS]);
    double v = fmax(value[SWEEP_V_MINUS], value[SWEEP_V_PLUS]);
    double cap = fmax(k == 0 ? sweep->cap_start : 0, k == last ? sweep->cap_end : 0);
    *radius = fmax(*radius, vector_distance(centre, points[k]) + 1.1 * sqrt(u * u + v * v) + cap);
  }
}
