// SPDX-License-Identifier: Apache-2.0
// A coarser surface on a subset of a closed surface's own vertices, by collapsing short edges.
// Because no vertex moves, the coarse surface of one shape of a body is at once that of all its
// shapes and poses, and every coarse vertex has skinning weights of its own.
#ifndef DSNET_SIM_DECIMATE_H
#define DSNET_SIM_DECIMATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct decimation {
  size_t faces;
  uint32_t *triangles; // [faces][3] indices of the fine vertices, same orientation
  uint32_t *root;      // [vertices] the coarse vertex that each fine vertex was merged into
};

// `edge` [vertices] is the length in metres below which an edge at a vertex is collapsed. A
// collapse that would change the topology (link condition, Dey et al. 1999), turn a triangle by
// more than 60 degrees or make a needle is not done, so features survive where they must. The
// outcome depends on the arguments alone.
int decimation_init(struct decimation *decimation, const float *positions, size_t vertices,
                    const uint32_t *triangles, size_t faces, const float *edge,
                    struct dsnet_error *error);
void decimation_deinit(struct decimation *decimation);

#endif
