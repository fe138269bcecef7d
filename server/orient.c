// SPDX-License-Identifier: Apache-2.0
#include "orient.h"

#include <math.h>

void orient_y_up_to_z_up(float pose[3], float trans[3]) {
  // q = unit quaternion of the root; w, x, y, z.
  double angle =
      sqrt((double)pose[0] * pose[0] + (double)pose[1] * pose[1] + (double)pose[2] * pose[2]);
  double scale = angle > 1e-12 ? sin(angle / 2) / angle : 0.5;
  double w = cos(angle / 2), x = pose[0] * scale, y = pose[1] * scale, z = pose[2] * scale;

  // r = (cos 45, sin 45, 0, 0) q: the quarter turn about x, applied after q.
  double half = sqrt(0.5);
  double rw = half * (w - x), rx = half * (x + w), ry = half * (y - z), rz = half * (z + y);

  // Back to axis-angle; q and -q are the same rotation, the one with w >= 0 has the angle <= pi.
  double sign = rw < 0 ? -1 : 1;
  double sine = sqrt(rx * rx + ry * ry + rz * rz);
  double turned = 2 * atan2(sine, sign * rw);
  double back = sine > 1e-12 ? sign * turned / sine : 2;
  pose[0] = (float)(rx * back);
  pose[1] = (float)(ry * back);
  pose[2] = (float)(rz * back);

  float up = trans[1];
  trans[1] = -trans[2];
  trans[2] = up;
}
