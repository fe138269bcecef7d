// SPDX-License-Identifier: Apache-2.0
// net/output.c and io/int16.c: every kind and encoding against the plain way to make it, whatever
// else is made at once.
#include "net/output.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "body/pose.h"
#include "builtin/builtin.h"
#include "io/half.h"
#include "io/int16.h"

enum { LATENT = 12, OUTPUTS = 37, KINDS = 3, ENCODINGS = 3 };

static struct body *body;
static struct net *net;
static size_t floats; // of a frame

static int set_up(void **state) {
  (void)state;
  assert_int_equal(builtin_body_load(&body, NULL), 0);
  const struct net_config config = {.layers = 1,
                                    .hidden = 16,
                                    .latent = LATENT,
                                    .vertices = body_vertices(body),
                                    .features = feature_set_find("paper"),
                                    .rate = 60};
  floats = 3 * config.vertices;
  return net_new_random(&net, &config, 3, NULL);
}

static int tear_down(void **state) {
  (void)state;
  net_free(net);
  body_free(body);
  return 0;
}

// A frame to make: random latents, pose and shape.
struct frame {
  float latent[LATENT], pose[NET_POSE_SIZE], trans[3], betas[FEATURES_BETAS];
  float transforms[BODY_JOINTS * 12];
  struct net_placement placement;
};

static void make_frame(struct frame *frame, uint64_t seed) {
  struct random_state random;
  random_init(&random, seed);
  for (size_t i = 0; i < LATENT; i++)
    frame->latent[i] = (float)(3 * random_normal(&random));
  for (size_t i = 0; i < NET_POSE_SIZE; i++)
    frame->pose[i] = (float)(0.4 * random_normal(&random));
  for (size_t i = 0; i < 3; i++)
    frame->trans[i] = (float)random_normal(&random);
  for (size_t i = 0; i < FEATURES_BETAS; i++)
    frame->betas[i] = (float)random_normal(&random);
  float joints[BODY_JOINTS * 3];
  body_shape(body, frame->betas, FEATURES_BETAS, NULL, joints);
  body_transforms(body, joints, frame->pose, frame->trans, frame->transforms, NULL);
  frame->placement = (struct net_placement){.body = body,
                                            .pose = frame->pose,
                                            .betas = frame->betas,
                                            .transforms = frame->transforms,
                                            .y_up = seed % 2};
}

// The numbers of an output by the functions that make a whole frame. Returns how many.
static size_t plain_values(const struct frame *frame, enum net_output_kind kind, float *values) {
  if (kind == NET_LATENT) {
    memcpy(values, frame->latent, sizeof frame->latent);
    return LATENT;
  }
  net_decode(net, frame->latent, values);
  if (kind == NET_DISPLACEMENT)
    return floats;
  float *rest = memory_alloc(floats, sizeof *rest);
  body_shape(body, frame->betas, FEATURES_BETAS, rest, NULL);
  body_add_pose_part(body, frame->pose, rest);
  body_skin(body, frame->transforms, rest, values, values);
  for (size_t v = 0; frame->placement.y_up && v < floats; v += 3) {
    float y = values[v + 1];
    values[v + 1] = values[v + 2];
    values[v + 2] = -y;
  }
  free(rest);
  return floats;
}

static void check_payload(const struct net_output *output, const float *values, size_t count) {
  float *read = memory_alloc(count, sizeof *read);
  const uint8_t *payload = output->payload;
  if (output->encoding == NET_AS_F32) {
    assert_memory_equal(payload, values, count * sizeof *values);
  } else if (output->encoding == NET_AS_F16) {
    uint16_t *halves = calloc(count, sizeof *halves);
    half_encode(values, halves, count);
    assert_memory_equal(payload, halves, count * sizeof *halves);
    free(halves);
  } else {
    float scale, most = 0;
    memcpy(&scale, payload, sizeof scale);
    int16_decode(scale, payload + sizeof scale, read, count);
    for (size_t i = 0; i < count; i++) {
      most = fmaxf(most, fabsf(values[i]));
      assert_true(fabsf(read[i] - values[i]) <= 0.506f * scale);
    }
    assert_true(fabsf(scale * 32767 - most) <= 1e-5f * most);
  }
  free(read);
}

static void every_kind_and_encoding_is_what_it_says(void **state) {
  (void)state;
  static struct frame frames[OUTPUTS];
  struct net_output outputs[OUTPUTS];
  struct net_output_scratch *scratch;
  assert_int_equal(net_output_scratch_new(&scratch, net, OUTPUTS, NULL), 0);
  float *values = memory_alloc(floats, sizeof *values);
  for (size_t i = 0; i < OUTPUTS; i++) {
    make_frame(&frames[i], i);
    outputs[i] = (struct net_output){.kind = (enum net_output_kind)(i % KINDS),
                                     .encoding = (enum net_output_encoding)(i / KINDS % ENCODINGS),
                                     .latent = frames[i].latent,
                                     .placement = &frames[i].placement};
    size_t size = net_output_size(net, outputs[i].kind, outputs[i].encoding);
    outputs[i].payload = malloc(size); // the address sanitizer watches its ends
    memset(outputs[i].payload, 0xff, size);
  }
  net_output_write(net, scratch, outputs, OUTPUTS);
  for (size_t i = 0; i < OUTPUTS; i++) {
    size_t count = plain_values(&frames[i], outputs[i].kind, values);
    check_payload(&outputs[i], values, count);
    // Alone it is the same to the bit.
    size_t size = net_output_size(net, outputs[i].kind, outputs[i].encoding);
    void *together = outputs[i].payload;
    outputs[i].payload = malloc(size);
    net_output_write(net, scratch, &outputs[i], 1);
    assert_memory_equal(outputs[i].payload, together, size);
    free(together);
    free(outputs[i].payload);
  }
  free(values);
  net_output_scratch_free(scratch);
}

static void integers_hold_the_largest_and_survive_the_smallest(void **state) {
  (void)state;
  static const float most[] = {0, 1e-45f, 1e-38f, 1e-30f, 1, 3e38f};
  for (size_t i = 0; i < sizeof most / sizeof most[0]; i++)
    for (size_t count = 1; count < 1200; count += 149) {
      float values[1200], read[1200];
      int16_t q[1200];
      for (size_t k = 0; k < count; k++)
        values[k] = most[i] * ((float)(k % 7) / 6) * (k % 2 ? -1.0f : 1.0f);
      values[count - 1] = -most[i];
      float scale = int16_encode(values, q, count);
      int16_decode(scale, q, read, count);
      for (size_t k = 0; k < count; k++) {
        // What is smaller than the smallest scale is 0.
        float allowed = scale > 0 ? 0.506f * scale : 4e-33f;
        assert_true(fabsf(read[k] - values[k]) <= allowed);
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_and_encoding_is_what_it_says),
      cmocka_unit_test(integers_hold_the_largest_and_survive_the_smallest),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
