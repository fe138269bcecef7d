// SPDX-License-Identifier: Apache-2.0
// Turns poses given in a y-up world into the z-up world that the models know (AMASS).
#ifndef DSNET_SERVER_ORIENT_H
#define DSNET_SERVER_ORIENT_H

// Rotates the world by 90 degrees about x (y-up (x, y, z) is z-up (x, -z, y)): the root's rotation
// pose[0..2], axis-angle in radians, and its translation trans [3]. The root joint's own offset
// from the origin stays where it was, a constant that no motion feature sees. The result's root
// angle is within 0..pi.
void orient_y_up_to_z_up(float pose[3], float trans[3]);

#endif
