// SPDX-License-Identifier: Apache-2.0
// What a body does with a shape and a pose: shaping, forward kinematics, linear blend skinning of
// T(betas) + pose part + D, and its inverse. Loper et al. 2015, equations 2 to 10.
//
// All functions are pure: no allocation, any thread, outputs must not overlap inputs unless said.
#ifndef DSNET_BODY_POSE_H
#define DSNET_BODY_POSE_H

#include "body/body.h"

// T(betas) = template + shapedirs betas -> shaped [V][3], and the rest joints J [24][3] that belong
// to it. `count` betas are used: surplus ones are ignored, missing ones are 0. Either output may be
// NULL.
void body_shape(const struct body *body, const float *betas, size_t count, float *shaped,
                float *joints);

// World transforms of the joints for a pose [22][3] axis-angle and trans [3]: row-major 3x4
// [24][12], mapping rest-pose coordinates (not joint-local ones) to the world, that is with the
// rest joint already subtracted (SMPL's G'). `posed_joints` [24][3] may be NULL.
void body_transforms(const struct body *body, const float *joints, const float *pose,
                     const float *trans, float *transforms, float *posed_joints);

// The rest-space pose part: posedirs times (R(pose) - I) of joints 1..23 (the hands' are 0), added
// to `vertices` [V][3]. Nothing happens for a body without posedirs.
void body_add_pose_part(const struct body *body, const float *pose, float *vertices);

// posed [V][3] = LBS(rest + displacement). `rest` [V][3] is T(betas) with the pose part already
// added; `displacement` [V][3] may be NULL for none. `posed` may be `rest`.
void body_skin(const struct body *body, const float *transforms, const float *rest,
               const float *displacement, float *posed);

// A run of vertices of the three above, so that a frame can be made in pieces that stay in the
// cache: vertices first .. first + count - 1 of the body, with `shaped`, `vertices`, `rest`,
// `displacement` and `posed` [count][3] beginning at `first`. The same to the bit.
void body_shape_part(const struct body *body, const float *betas, size_t betas_count, size_t first,
                     size_t count, float *shaped);
void body_add_pose_part_of(const struct body *body, const float *pose, size_t first, size_t count,
                           float *vertices);
void body_skin_part(const struct body *body, const float *transforms, size_t first, size_t count,
                    const float *rest, const float *displacement, float *posed);

// The inverse: displacement [V][3] such that LBS(rest + displacement) = posed. Where a vertex's
// blended matrix is singular (its determinant under 1e-6) DSNET_EVALUE is returned, naming the
// vertex.
int body_unskin(const struct body *body, const float *transforms, const float *rest,
                const float *posed, float *displacement, struct dsnet_error *error);

#endif
