// SPDX-License-Identifier: Apache-2.0
// Vertex normals of a body's surface, for shading and for whoever moves vertices along them.
#ifndef DSNET_BODY_NORMALS_H
#define DSNET_BODY_NORMALS_H

#include "body/body.h"

// normals [V][3]: unit length, outward; the mean of the normals of a vertex's faces, weighted by
// their areas. `vertices` [V][3] are the body's in any shape and pose. A vertex whose faces have no
// area, or that has none, gets 0, 0, 0. Pure, any thread; the two arrays must not overlap.
void body_normals(const struct body *body, const float *vertices, float *normals);

#endif
