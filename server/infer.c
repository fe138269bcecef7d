// SPDX-License-Identifier: Apache-2.0
#include "infer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "infer/response.h"
#include "net/output.h"
#include "sequences.h"

#define ROUND_MAX   64  // requests stepped together
#define WAITING_MAX 64  // requests that may wait
#define LOOK_MS     500 // between two looks for sequences to forget

// A request that is being answered.
struct turn {
  struct infer_job *job;
  struct infer_request request;
  struct sequence *sequence;
  float *latents; // [frames][Z]
  size_t frame;   // the one being stepped
  struct retimer_plan plan;
  uint32_t stepped; // model frames of the plan that are done
  bool planned;
  float pose[NET_POSE_SIZE], trans[3], betas[SEQUENCES_BETAS];
};

struct infer {
  const struct config *config;
  const struct models *models;
  pthread_t thread;
  bool started;
  uv_async_t answered;

  pthread_mutex_t lock;
  pthread_cond_t work;
  struct infer_job *first, **end;     // under the lock: to be taken, oldest first
  struct infer_job *done, **done_end; // under the lock: answered
  struct infer_counts counted;        // under the lock
  bool stop;                          // under the lock

  // The thread only.
  struct sequences sequences;
  struct net_scratch **scratch;         // [models]
  struct net_output_scratch **decoding; // [models]
  struct turn turns[ROUND_MAX];
  size_t turn_count, turn_model;
  struct net_item items[ROUND_MAX];
};

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static const struct net *net_of(const struct infer *infer, size_t model) {
  return infer->models->items[model].net;
}

// A round of requests --------------------------------------------------------------------------

static void answer(struct infer *infer, struct infer_job *job, enum infer_outcome outcome,
                   const char *why) {
  job->outcome = outcome;
  if (why != job->why)
    snprintf(job->why, sizeof job->why, "%s", why);
  job->next = NULL;
  pthread_mutex_lock(&infer->lock);
  *infer->done_end = job;
  infer->done_end = &job->next;
  infer->counted.failed += outcome != INFER_DONE;
  infer->counted.sequences = infer->sequences.count;
  pthread_mutex_unlock(&infer->lock);
  uv_async_send(&infer->answered);
}

static struct infer_response response_to(const struct infer *infer, const struct turn *turn) {
  const struct net_config *net = net_config(net_of(infer, turn->job->model));
  return (struct infer_response){.model = infer->models->items[turn->job->model].name,
                                 .id = turn->request.id,
                                 .frames = turn->request.frames,
                                 .vertices = net->vertices,
                                 .latents = net->latent,
                                 .outputs = turn->request.outputs,
                                 .output_count = turn->request.output_count};
}

// The displacements of a turn's latents, [frames][V][3]; NULL when memory is out.
static float *decode(struct infer *infer, const struct turn *turn) {
  size_t model = turn->job->model, frames = turn->request.frames;
  const struct net *net = net_of(infer, model);
  const size_t latents = net_config(net)->latent, numbers = 3 * net_config(net)->vertices;
  struct net_output outputs[ROUND_MAX];
  float *displacement = memory_alloc(frames, numbers * sizeof *displacement);
  for (size_t at = 0; displacement && at < frames; at += ROUND_MAX) {
    size_t count = frames - at < ROUND_MAX ? frames - at : ROUND_MAX;
    for (size_t i = 0; i < count; i++)
      outputs[i] = (struct net_output){.kind = NET_DISPLACEMENT,
                                       .encoding = NET_AS_F32,
                                       .latent = turn->latents + (at + i) * latents,
                                       .payload = displacement + (at + i) * numbers};
    net_output_write(net, infer->decoding[model], outputs, count);
  }
  return displacement;
}

static bool wants(const struct turn *turn, enum infer_output_kind kind) {
  bool wanted = false;
  for (size_t i = 0; i < turn->request.output_count; i++)
    wanted = wanted || turn->request.outputs[i].kind == kind;
  return wanted;
}

// The turn's frames are done: writes its response, and lets its sequence go.
static void end_turn(struct infer *infer, struct turn *turn) {
  struct infer_job *job = turn->job;
  struct infer_response response = response_to(infer, turn);
  float *displacement = wants(turn, INFER_DISPLACEMENT) ? decode(infer, turn) : NULL;
  response.values[INFER_LATENT] = turn->latents;
  response.values[INFER_DISPLACEMENT] = displacement;
  if (displacement || !wants(turn, INFER_DISPLACEMENT))
    job->response = infer_response_write(&response, &job->response_size, &job->response_json_size);
  struct sequence *sequence = turn->sequence;
  sequence->busy = false;
  if (sequence->kept && turn->request.end)
    sequences_drop(&infer->sequences, sequence);
  if (sequence->kept)
    sequences_touch(&infer->sequences, sequence, now_ms());
  else
    sequence_free(sequence);
  pthread_mutex_lock(&infer->lock);
  infer->counted.frames += turn->request.frames;
  pthread_mutex_unlock(&infer->lock);
  infer_request_free(&turn->request);
  free(turn->latents);
  free(displacement);
  infer_hold(infer, job, job->response_size);
  answer(infer, job, job->response ? INFER_DONE : INFER_FAILED,
         job->response ? "" : "out of memory");
}

static void plan(const struct net *net, struct turn *turn) {
  struct sequence *sequence = turn->sequence;
  const struct infer_request *request = &turn->request;
  retimer_push(&sequence->retimer, request->pose + turn->frame * INFER_POSE,
               request->trans + turn->frame * 3, (double)sequence->frames / (double)sequence->fps,
               &turn->plan);
  if (turn->plan.restart)
    net_restart_motion(net, sequence->state);
  sequence->frames++;
  turn->stepped = 0;
  turn->planned = true;
}

static void add_step(struct infer *infer, struct turn *turn, size_t latents, size_t index) {
  struct sequence *sequence = turn->sequence;
  retimer_frame(&sequence->retimer, turn->stepped++, turn->pose, turn->trans);
  memcpy(sequence->before, sequence->latent, latents * sizeof *sequence->before);
  infer->items[index] = (struct net_item){.state = sequence->state,
                                          .pose = turn->pose,
                                          .trans = turn->trans,
                                          .betas = sequence->betas,
                                          .latent = sequence->latent};
}

// The latents of the turn's frame: the newest, or a mixture of the two newest.
static void take_latents(struct turn *turn, size_t latents) {
  struct sequence *sequence = turn->sequence;
  float mix = turn->plan.mix, *out = turn->latents + turn->frame * latents;
  if (turn->plan.restart) // there is none before it
    memcpy(sequence->before, sequence->latent, latents * sizeof *sequence->before);
  for (size_t k = 0; k < latents; k++)
    out[k] = mix == 1 ? sequence->latent[k]
                      : mix * sequence->latent[k] + (1 - mix) * sequence->before[k];
  turn->frame++;
  turn->planned = false;
}

// One model frame of every turn that needs one. Whether any turn goes on.
static bool step(struct infer *infer) {
  const struct net *net = net_of(infer, infer->turn_model);
  const size_t latents = net_config(net)->latent;
  size_t items = 0;
  bool more = false;
  for (size_t i = 0; i < infer->turn_count; i++) {
    struct turn *turn = &infer->turns[i];
    if (turn->frame == turn->request.frames)
      continue;
    if (!turn->planned)
      plan(net, turn);
    if (turn->stepped < turn->plan.steps)
      add_step(infer, turn, latents, items++);
  }
  if (items)
    net_step(net, infer->scratch[infer->turn_model], infer->items, items);
  for (size_t i = 0; i < infer->turn_count; i++) {
    struct turn *turn = &infer->turns[i];
    if (turn->planned && turn->stepped == turn->plan.steps)
      take_latents(turn, latents);
    more = more || turn->frame < turn->request.frames;
  }
  return more;
}

static void run_round(struct infer *infer) {
  if (!infer->turn_count)
    return;
  while (step(infer))
    ;
  for (size_t i = 0; i < infer->turn_count; i++)
    end_turn(infer, &infer->turns[i]);
  infer->turn_count = 0;
}

// Beginning a request ----------------------------------------------------------------------------

// What takes long is the model's frames, of which a slow client's pose needs many.
static bool is_short(const struct infer *infer, const struct turn *turn, float fps, char *why) {
  double rate = net_config(net_of(infer, turn->job->model))->rate;
  double frames = (double)turn->request.frames * rate / (double)fps;
  if (frames <= (double)infer->config->max_infer_frames)
    return true;
  snprintf(why, INFER_TEXT_SIZE,
           "%zu frames at %g fps are %.0f at the model's %g; a request may have %lld",
           turn->request.frames, (double)fps, frames, rate, infer->config->max_infer_frames);
  return false;
}

// The sequence that a request goes on with, or a new one.
static enum infer_outcome find_sequence(struct infer *infer, struct turn *turn, char *why) {
  const struct infer_request *request = &turn->request;
  size_t model = turn->job->model;
  const struct net *net = net_of(infer, model);
  struct sequence *found =
      *request->sequence ? sequences_find(&infer->sequences, model, request->sequence) : NULL;
  if (found && found->busy) { // by an earlier request of this round
    run_round(infer);
    found = sequences_find(&infer->sequences, model, request->sequence);
  }
  if (found && !request->start) {
    turn->sequence = found;
    if (!request->fps || request->fps == found->fps)
      return is_short(infer, turn, found->fps, why) ? INFER_DONE : INFER_BAD;
    snprintf(why, INFER_TEXT_SIZE, "fps is %g, the sequence began with %g", (double)request->fps,
             (double)found->fps);
    return INFER_BAD;
  }
  if (*request->sequence && !request->start) {
    snprintf(why, INFER_TEXT_SIZE,
             "there is no sequence of that id: it was not started, has ended, or was idle for too "
             "long");
    return INFER_BAD;
  }
  float fps = request->fps > 0 ? request->fps : (float)net_config(net)->rate;
  if (!is_short(infer, turn, fps, why))
    return INFER_BAD;
  turn->sequence = sequence_new(model, net, fps);
  if (!turn->sequence)
    return INFER_FAILED;
  if (!*request->sequence || sequences_keep(&infer->sequences, turn->sequence, request->sequence))
    return INFER_DONE;
  sequence_free(turn->sequence);
  return INFER_FULL;
}

// Everything that can be refused is, before a sequence is touched.
static enum infer_outcome prepare(struct infer *infer, struct turn *turn) {
  struct infer_job *job = turn->job;
  const struct config *config = infer->config;
  enum infer_read outcome = infer_request_read(&turn->request, job->body, job->size, job->json_size,
                                               (size_t)config->max_infer_frames, job->why);
  if (outcome != INFER_READ)
    return outcome == INFER_NOMEM ? INFER_FAILED : INFER_BAD;
  struct infer_response response = response_to(infer, turn);
  size_t bound = infer_response_bound(&response), frames = turn->request.frames;
  size_t working = frames * (INFER_POSE + 3 + response.latents) * sizeof(float);
  enum infer_outcome result = INFER_DONE;
  if (bound > (size_t)config->max_infer_bytes) {
    snprintf(job->why, sizeof job->why,
             "the response would have up to %zu bytes, %lld are allowed; ask for fewer frames, "
             "latents, or binary data",
             bound, config->max_infer_bytes);
    result = INFER_TOO_LARGE;
  } else if (!infer_hold(infer, job, job->held + bound + working)) {
    result = INFER_BUSY;
  } else {
    turn->latents = memory_alloc(frames, response.latents * sizeof *turn->latents);
    result = turn->latents ? INFER_DONE : INFER_FAILED;
  }
  if (result == INFER_DONE)
    result = find_sequence(infer, turn, job->why);
  if (result == INFER_DONE)
    return result;
  free(turn->latents);
  infer_request_free(&turn->request);
  return result;
}

static void begin(struct infer *infer, struct infer_job *job) {
  static const char *const texts[INFER_FAILED + 1] = {
      [INFER_FULL] = "every sequence is taken",
      [INFER_BUSY] = "the requests under way take all the memory they may",
      [INFER_FAILED] = "out of memory"};
  size_t body = job->held;
  if (infer->turn_count == ROUND_MAX || (infer->turn_count && infer->turn_model != job->model))
    run_round(infer);
  struct turn turn = {.job = job};
  enum infer_outcome outcome = prepare(infer, &turn);
  free(job->body);
  job->body = NULL;
  infer_hold(infer, job, outcome == INFER_DONE ? job->held - body : 0);
  if (outcome != INFER_DONE) {
    answer(infer, job, outcome, texts[outcome] ? texts[outcome] : job->why);
    return;
  }
  turn.sequence->busy = true;
  if (turn.request.has_betas)
    memcpy(turn.sequence->betas, turn.request.betas, sizeof turn.request.betas);
  infer->turn_model = job->model;
  infer->turns[infer->turn_count++] = turn;
}

// The thread -------------------------------------------------------------------------------------

static void wait_for_work(struct infer *infer) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += LOOK_MS * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  if (infer->sequences.count)
    pthread_cond_timedwait(&infer->work, &infer->lock, &until);
  else
    pthread_cond_wait(&infer->work, &infer->lock);
}

static void forget_idle(struct infer *infer) {
  uint64_t now = now_ms(), idle = (uint64_t)(infer->config->sequence_idle * 1000);
  if (now > idle)
    sequences_forget(&infer->sequences, now - idle);
}

static void *run(void *user) {
  struct infer *infer = user;
  pthread_mutex_lock(&infer->lock);
  while (!infer->stop) {
    if (!infer->first)
      wait_for_work(infer);
    struct infer_job *job = infer->first;
    infer->first = NULL;
    infer->end = &infer->first;
    infer->counted.waiting = 0;
    pthread_mutex_unlock(&infer->lock);
    forget_idle(infer);
    for (struct infer_job *next; job; job = next) {
      next = job->next;
      begin(infer, job);
    }
    run_round(infer);
    pthread_mutex_lock(&infer->lock);
    infer->counted.sequences = infer->sequences.count;
  }
  pthread_mutex_unlock(&infer->lock);
  return NULL;
}

// The server's side ------------------------------------------------------------------------------

static void on_answered(uv_async_t *async) {
  struct infer *infer = async->data;
  pthread_mutex_lock(&infer->lock);
  struct infer_job *job = infer->done;
  infer->done = NULL;
  infer->done_end = &infer->done;
  pthread_mutex_unlock(&infer->lock);
  for (struct infer_job *next; job; job = next) {
    next = job->next;
    if (job->done)
      job->done(job->user, job);
    else
      infer_job_free(infer, job);
  }
}

static int make_scratch(struct infer *infer, struct dsnet_error *error) {
  size_t count = infer->models->count;
  infer->scratch = calloc(count, sizeof(struct net_scratch *));
  infer->decoding = calloc(count, sizeof(struct net_output_scratch *));
  if (!infer->scratch || !infer->decoding)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  int result = 0;
  for (size_t i = 0; i < count && result == 0; i++) {
    const struct net *net = net_of(infer, i);
    result = net_scratch_new(&infer->scratch[i], net, ROUND_MAX, error);
    if (result == 0)
      result = net_output_scratch_new(&infer->decoding[i], net, ROUND_MAX, error);
  }
  return result;
}

int infer_new(struct infer **out, uv_loop_t *loop, const struct config *config,
              const struct models *models, struct dsnet_error *error) {
  *out = NULL;
  struct infer *infer = calloc(1, sizeof *infer);
  if (!infer)
    return dsnet_error_set(error, DSNET_ENOMEM, "out of memory");
  infer->config = config;
  infer->models = models;
  infer->end = &infer->first;
  infer->done_end = &infer->done;
  sequences_init(&infer->sequences, (size_t)config->max_sequences);
  pthread_mutex_init(&infer->lock, NULL);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&infer->work, &monotonic);
  pthread_condattr_destroy(&monotonic);
  uv_async_init(loop, &infer->answered, on_answered);
  infer->answered.data = infer;
  int result = make_scratch(infer, error);
  if (result == 0 && pthread_create(&infer->thread, NULL, run, infer))
    result = dsnet_error_set(error, DSNET_EIO, "cannot start the thread of inference requests");
  infer->started = result == 0;
  *out = infer;
  if (result < 0) {
    infer_stop(infer);
    uv_run(loop, UV_RUN_NOWAIT);
    infer_free(infer);
    *out = NULL;
  }
  return result;
}

bool infer_hold(struct infer *infer, struct infer_job *job, size_t bytes) {
  const size_t max = INFER_HELD_MAX * (size_t)infer->config->max_infer_bytes;
  pthread_mutex_lock(&infer->lock);
  size_t held = infer->counted.held - job->held + bytes;
  bool room = bytes <= job->held || held <= max;
  if (room) {
    infer->counted.held = held;
    job->held = bytes;
  }
  pthread_mutex_unlock(&infer->lock);
  return room;
}

bool infer_submit(struct infer *infer, struct infer_job *job) {
  pthread_mutex_lock(&infer->lock);
  bool room = infer->counted.waiting < WAITING_MAX;
  infer->counted.requests++;
  infer->counted.failed += !room;
  if (room) {
    job->next = NULL;
    *infer->end = job;
    infer->end = &job->next;
    infer->counted.waiting++;
    pthread_cond_signal(&infer->work);
  }
  pthread_mutex_unlock(&infer->lock);
  return room;
}

void infer_abandon(struct infer *infer, struct infer_job *job) {
  (void)infer; // `done` belongs to the loop, which alone looks at it
  job->done = NULL;
}

void infer_job_free(struct infer *infer, struct infer_job *job) {
  infer_hold(infer, job, 0);
  free(job->body);
  free(job->response);
  free(job);
}

void infer_counts(struct infer *infer, struct infer_counts *counts) {
  pthread_mutex_lock(&infer->lock);
  *counts = infer->counted;
  pthread_mutex_unlock(&infer->lock);
}

void infer_stop(struct infer *infer) {
  pthread_mutex_lock(&infer->lock);
  infer->stop = true;
  pthread_cond_signal(&infer->work);
  pthread_mutex_unlock(&infer->lock);
  if (infer->started)
    pthread_join(infer->thread, NULL);
  infer->started = false;
  uv_close((uv_handle_t *)&infer->answered, NULL);
}

static void free_jobs(struct infer *infer, struct infer_job *job) {
  for (struct infer_job *next; job; job = next) {
    next = job->next;
    infer_job_free(infer, job);
  }
}

void infer_free(struct infer *infer) {
  if (!infer)
    return;
  free_jobs(infer, infer->first);
  free_jobs(infer, infer->done);
  sequences_deinit(&infer->sequences);
  for (size_t i = 0; i < infer->models->count; i++) {
    if (infer->scratch)
      net_scratch_free(infer->scratch[i]);
    if (infer->decoding)
      net_output_scratch_free(infer->decoding[i]);
  }
  free(infer->scratch);
  free(infer->decoding);
  pthread_cond_destroy(&infer->work);
  pthread_mutex_destroy(&infer->lock);
  free(infer);
}
