// SPDX-License-Identifier: Apache-2.0
#include "train/unpose.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "body/pose.h"

int unpose_clip(const struct dyna_sequence *sequence, struct clip **out, size_t *frames,
                struct dsnet_error *error) {
  struct clip *clip = NULL;
  *out = NULL;
  int result = clip_load(&clip, sequence->clip, error);
  if (result < 0)
    return result;
  result = clip_resample(clip, DYNA_FPS, out, error);
  clip_free(clip);
  if (result < 0)
    return result;
  size_t a = (*out)->frames, b = sequence->frames;
  if ((a > b ? a - b : b - a) > UNPOSE_SLACK) {
    clip_free(*out);
    *out = NULL;
    return dsnet_error_set(error, DSNET_EMISMATCH, "%s: %zu frames, the sequence %s has %zu",
                           sequence->clip, a, sequence->name, b);
  }
  *frames = a < b ? a : b;
  return 0;
}

int unpose_check_body(const struct dyna *dyna, const struct body *body, struct dsnet_error *error) {
  if (dyna_vertices(dyna) != body_vertices(body))
    return dsnet_error_set(error, DSNET_EMISMATCH, "the data has %zu vertices, the body %zu",
                           dyna_vertices(dyna), body_vertices(body));
  if (dyna_faces(dyna) != body_faces(body) || memcmp(dyna_triangles(dyna), body_triangles(body),
                                                     body_faces(body) * 3 * sizeof(uint32_t)) != 0)
    return dsnet_error_set(error, DSNET_EMISMATCH, "the data's faces are not those of the body");
  return 0;
}

int unpose_init(struct unpose *unpose, const struct body *body, const float *betas, size_t count,
                struct dsnet_error *error) {
  memset(unpose, 0, sizeof *unpose);
  unpose->body = body;
  unpose->shaped = memory_alloc(body_vertices(body) * 3, sizeof(float));
  unpose->rest = memory_alloc(body_vertices(body) * 3, sizeof(float));
  if (!unpose->shaped || !unpose->rest) {
    unpose_deinit(unpose);
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  }
  body_shape(body, betas, count, unpose->shaped, unpose->joints);
  return 0;
}

void unpose_deinit(struct unpose *unpose) {
  free(unpose->shaped);
  free(unpose->rest);
  memset(unpose, 0, sizeof *unpose);
}

void unpose_frame(struct unpose *unpose, const float *pose, const float *trans) {
  body_transforms(unpose->body, unpose->joints, pose, trans, unpose->transforms, NULL);
  memcpy(unpose->rest, unpose->shaped, body_vertices(unpose->body) * 3 * sizeof(float));
  body_add_pose_part(unpose->body, pose, unpose->rest);
}

int unpose_range(struct unpose *unpose, const struct clip *clip, size_t first, size_t count,
                 const float *posed, float *displacements, struct dsnet_error *error) {
  size_t values = body_vertices(unpose->body) * 3;
  for (size_t f = 0; f < count; f++) {
    size_t frame = first + f;
    unpose_frame(unpose, clip->pose + frame * CLIP_POSE_SIZE, clip->trans + frame * 3);
    int result = body_unskin(unpose->body, unpose->transforms, unpose->rest, posed + f * values,
                             displacements + f * values, error);
    if (result < 0)
      return result;
  }
  return 0;
}
