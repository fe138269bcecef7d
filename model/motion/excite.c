// SPDX-License-Identifier: Apache-2.0
#include "motion/excite.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "motion/rotation.h"

#define JOINTS 22
#define TONES  6

// A sum of random sines, amplitude falling with frequency so that no tone's speed outweighs the
// others', scaled to a root mean square.
struct signal {
  double frequency[TONES], phase[TONES], amplitude[TONES];
};

static void signal_draw(struct signal *signal, const struct excite_settings *settings, double rms,
                        struct random_state *random) {
  double power = 0;
  for (int i = 0; i < TONES; i++) {
    signal->frequency[i] =
        settings->low + (settings->high - settings->low) * random_uniform(random);
    signal->phase[i] = 2 * M_PI * random_uniform(random);
    signal->amplitude[i] = 1 / signal->frequency[i];
    power += 0.5 * signal->amplitude[i] * signal->amplitude[i];
  }
  for (int i = 0; i < TONES; i++)
    signal->amplitude[i] *= rms / sqrt(power);
}

static double signal_at(const struct signal *signal, double time) {
  double sum = 0;
  for (int i = 0; i < TONES; i++)
    sum += signal->amplitude[i] * sin(2 * M_PI * signal->frequency[i] * time + signal->phase[i]);
  return sum;
}

struct excitation {
  struct signal joints[JOINTS][3], root[3];
  double strength[JOINTS]; // of this clip's joints: not all move alike
  double bout, offset;     // seconds between the starts of bouts, and where they begin
  double heading;
};

static void excitation_draw(struct excitation *e, const struct excite_settings *settings) {
  struct random_state random;
  random_init(&random, settings->seed);
  for (int j = 0; j < JOINTS; j++) {
    e->strength[j] = (j ? 1 : 0.5) * (0.3 + 1.2 * random_uniform(&random));
    for (int i = 0; i < 3; i++)
      signal_draw(&e->joints[j][i], settings, settings->rotation / sqrt(3), &random);
  }
  for (int i = 0; i < 3; i++)
    signal_draw(&e->root[i], settings, settings->shake, &random);
  e->bout = 3 + 3 * random_uniform(&random);
  e->offset = e->bout * random_uniform(&random);
  e->heading = 2 * M_PI * random_uniform(&random);
}

// 0 in a rest, 1 in a bout, with smooth ramps of about a fifth of a second: three quarters bout.
static double envelope(const struct excitation *e, double time) {
  double phase = fmod(time + e->offset, e->bout) / e->bout, ramp = 0.2 / e->bout;
  double rise = phase / ramp, fall = (0.75 - phase) / ramp, level = fmin(rise, fall);
  level = fmin(fmax(level, 0), 1);
  return level * level * (3 - 2 * level);
}

static void joint_rotation(const struct clip *clip, size_t frame, size_t joint, double q[4]) {
  const float *pose = clip->pose + frame * CLIP_POSE_SIZE + 3 * joint;
  const double vector[3] = {(double)pose[0], (double)pose[1], (double)pose[2]};
  quaternion_from_vector(vector, q);
}

static void excite_frame(const struct clip *clip, const struct excitation *e, size_t frame,
                         float *pose, float *trans) {
  double time = (double)frame / clip->fps, level = envelope(e, time);
  double place[3], about[3] = {0, 0, e->heading}, turn[4];
  const float *own = clip->trans + 3 * frame;
  quaternion_from_vector(about, turn);
  for (size_t j = 0; j < JOINTS; j++) {
    double q[4], extra[4], vector[3];
    joint_rotation(clip, frame, j, q);
    for (int i = 0; i < 3; i++)
      vector[i] = level * e->strength[j] * signal_at(&e->joints[j][i], time);
    quaternion_from_vector(vector, extra);
    quaternion_multiply(q, extra, q);
    if (j == 0)
      quaternion_multiply(turn, q, q);
    quaternion_to_vector(q, vector);
    for (size_t i = 0; i < 3; i++)
      pose[3 * j + i] = (float)vector[i];
  }
  for (int i = 0; i < 3; i++)
    place[i] = (double)own[i] + level * signal_at(&e->root[i], time);
  trans[0] = (float)(cos(e->heading) * place[0] - sin(e->heading) * place[1]);
  trans[1] = (float)(sin(e->heading) * place[0] + cos(e->heading) * place[1]);
  trans[2] = (float)place[2];
}

struct excite_settings excite_settings_default(uint64_t seed) {
  return (struct excite_settings){
      .low = 0.5, .high = 4, .rotation = 0.12, .shake = 0.012, .seed = seed};
}

int excite_clip(const struct clip *clip, const struct excite_settings *settings,
                struct clip **excited, struct dsnet_error *error) {
  *excited = NULL;
  if (!(settings->low > 0 && settings->high >= settings->low && settings->rotation >= 0 &&
        settings->shake >= 0))
    return dsnet_error_set(error, DSNET_EVALUE, "excitation: a band above 0 and sizes from 0 up");
  int result = clip_new(excited, clip->frames, clip->fps, error);
  if (result < 0)
    return result;
  struct excitation excitation;
  excitation_draw(&excitation, settings);
  memcpy((*excited)->betas, clip->betas, sizeof clip->betas);
  (*excited)->betas_count = clip->betas_count;
  memcpy((*excited)->gender, clip->gender, sizeof clip->gender);
  for (size_t t = 0; t < clip->frames; t++)
    excite_frame(clip, &excitation, t, (*excited)->pose + t * CLIP_POSE_SIZE,
                 (*excited)->trans + t * 3);
  return 0;
}
