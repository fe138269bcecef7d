// SPDX-License-Identifier: Apache-2.0
// The document is head, times (of an mdd), frames, tail (of an npz). All sizes are known before the
// first byte, so that any part of it can be made alone; only the tail of an npz needs a checksum
// over all frames, which are made once more for it when they were not all sent before.
#include "job_download.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "io/mdd.h"
#include "io/npy.h"
#include "io/npz_layout.h"
#include "io/pc2.h"
#include "job_output.h"
#include "job_routes.h"
#include "server.h"

#define DOWNLOADS_MAX 64
#define BLOCK         65536 // bytes asked for at once

enum format { FORMAT_NPZ, FORMAT_NPY, FORMAT_PC2, FORMAT_MDD };
static const char format_words[] = "npz|npy|pc2|mdd";
static const char *const format_names[] = {"npz", "npy", "pc2", "mdd"};
static const char kind_words[] = "displacement|vertices|latent";
static const char *const kind_names[] = {"displacement", "vertices", "latent"};
static const enum net_output_kind kinds[] = {NET_DISPLACEMENT, NET_VERTICES, NET_LATENT};

struct download {
  struct request *request;
  struct server *server;
  size_t model;
  enum format format;
  size_t kind; // place in kind_names
  struct job_output_form form;
  struct job_result_head head;
  uint64_t from, count; // frames
  size_t frame_size;
  double rate; // of the frames
  // The document.
  struct npz_layout npz;
  uint8_t start[NPY_HEADER_TEXT_MAX]; // of the other formats
  size_t start_size;
  uint64_t times_size, frames_size;
  // Frames that have been made: `made` from `first` on.
  struct job_output *output;
  char *block;
  uint64_t first;
  size_t made;
  // The checksum of frames 0 .. summed - 1.
  uint64_t summed;
  uint32_t crc;
  // Making more, on another thread.
  uv_work_t work;
  uint64_t wanted;
  bool summing; // until all is summed
  int failed;
  struct dsnet_error error;
};

// Making frames -----------------------------------------------------------------------------------

// On a thread of its own; nobody else touches the download meanwhile.
static void make_block(uv_work_t *work) {
  struct download *d = work->data;
  uint64_t left = d->count - d->wanted;
  size_t together = job_output_block(d->output);
  d->first = d->wanted;
  d->made = left < together ? (size_t)left : together;
  d->failed = job_output_write(d->output, d->from + d->first, d->made, d->block, &d->error);
  if (d->failed == 0 && d->format == FORMAT_NPZ && d->first == d->summed) {
    d->crc = npz_layout_crc(d->crc, d->block, d->made * d->frame_size);
    d->summed += d->made;
  }
}

static void made_block(uv_work_t *work, int status) {
  (void)status;
  struct download *d = work->data;
  if (d->failed < 0)
    log_client_event(&d->server->log_limit, uv_now(&d->server->loop), LOG_LEVEL_ERROR, "job_result",
                     NULL, "%s", d->error.text);
  if (d->failed == 0 && d->summing && d->summed < d->count && !d->server->stopping) {
    d->wanted = d->summed;
    uv_queue_work(&d->server->loop, &d->work, make_block, made_block);
    return;
  }
  if (d->summing && d->summed < d->count)
    d->failed = DSNET_ECANCELLED;
  request_resume(d->request);
}

static ssize_t make(struct download *d, uint64_t frame, bool summing) {
  d->wanted = frame;
  d->summing = summing;
  d->work.data = d;
  return uv_queue_work(&d->server->loop, &d->work, make_block, made_block) ? ANSWER_FAILED
                                                                           : ANSWER_WAIT;
}

// The parts of the document -----------------------------------------------------------------------

// Copies from `offset` of a part that is in memory.
static ssize_t copy(const void *part, uint64_t part_size, uint64_t offset, char *data,
                    size_t size) {
  uint64_t left = part_size - offset;
  size = left < size ? (size_t)left : size;
  memcpy(data, (const char *)part + offset, size);
  return (ssize_t)size;
}

static ssize_t read_times(const struct download *d, uint64_t offset, char *data, size_t size) {
  uint8_t number[4];
  float seconds = (float)((double)(offset / 4) / d->rate);
  mdd_floats_write(&seconds, 1, number);
  return copy(number, 4, offset % 4, data, size);
}

static ssize_t read_frames(struct download *d, uint64_t offset, char *data, size_t size) {
  uint64_t frame = offset / d->frame_size;
  if (frame < d->first || frame >= d->first + d->made)
    return make(d, frame, false);
  return copy(d->block, (uint64_t)d->made * d->frame_size, offset - d->first * d->frame_size, data,
              size);
}

static ssize_t read_tail(struct download *d, uint64_t offset, char *data, size_t size) {
  uint8_t tail[NPZ_LAYOUT_TAIL_MAX];
  if (d->summed < d->count)
    return make(d, d->summed, true);
  npz_layout_tail(&d->npz, d->crc, tail);
  return copy(tail, d->npz.tail_size, offset, data, size);
}

static ssize_t read_part(struct download *d, uint64_t offset, char *data, size_t size) {
  const uint8_t *start = d->format == FORMAT_NPZ ? d->npz.prefix : d->start;
  if (d->failed < 0)
    return ANSWER_FAILED;
  if (offset < d->start_size)
    return copy(start, d->start_size, offset, data, size);
  offset -= d->start_size;
  if (offset < d->times_size)
    return read_times(d, offset, data, size);
  offset -= d->times_size;
  if (offset < d->frames_size)
    return read_frames(d, offset, data, size);
  return read_tail(d, offset - d->frames_size, data, size);
}

// Fills what it can without waiting.
static ssize_t read_document(void *user, uint64_t offset, char *data, size_t size) {
  struct download *d = user;
  uint64_t end = d->start_size + d->times_size + d->frames_size + d->npz.tail_size;
  if (!d->block && !(d->block = malloc(job_output_block(d->output) * d->frame_size)))
    return ANSWER_FAILED;
  size_t done = 0;
  while (done < size && offset + done < end) {
    // Only the first part may set work going: the bytes before it would wait for nothing.
    if (done && offset + done >= d->start_size + d->times_size)
      break;
    ssize_t got = read_part(d, offset + done, data + done, size - done);
    if (got <= 0)
      return got;
    done += (size_t)got;
  }
  return (ssize_t)done;
}

static void close_download(void *user) {
  struct download *d = user;
  d->server->downloads--;
  job_output_free(d->output);
  free(d->block);
  free(d);
}

// What is asked for -------------------------------------------------------------------------------

static bool read_form(struct download *d, struct answer *answer) {
  const struct request *request = d->request;
  size_t format = 0, kind = 0, encoding = 0, rate = 0;
  if (!request_query_choice(request, "format", format_words, &format, answer) ||
      !request_query_choice(request, "kind", kind_words, &kind, answer) ||
      !request_query_choice(request, "encoding", "f32|f16", &encoding, answer) ||
      !request_query_choice(request, "fps", "model|clip", &rate, answer))
    return false;
  d->format = (enum format)format;
  d->kind = kind;
  d->form = (struct job_output_form){.kind = kinds[kind],
                                     .encoding = encoding ? NET_AS_F16 : NET_AS_F32,
                                     .clip_rate = rate == 1,
                                     .big_endian = d->format == FORMAT_MDD};
  bool cache = d->format == FORMAT_PC2 || d->format == FORMAT_MDD;
  if (cache && d->form.kind == NET_LATENT)
    answer_problem(answer, PROBLEM_BAD_PARAMETER,
                   "kind: a point cache holds vertices or displacements, not latents");
  else if (cache && encoding)
    answer_problem(answer, PROBLEM_BAD_PARAMETER, "encoding: a point cache has f32 numbers");
  return !answer->status;
}

static bool read_range(struct download *d, struct answer *answer) {
  uint64_t frames = job_output_frames(&d->head, d->form.clip_rate), to = frames;
  if (!request_query_number(d->request, "from", 0, frames - 1, &d->from, answer) ||
      !request_query_number(d->request, "to", 1, frames, &to, answer))
    return false;
  if (to <= d->from) {
    answer_problem(answer, PROBLEM_BAD_PARAMETER, "to: it must be above from");
    return false;
  }
  d->count = to - d->from;
  return true;
}

static int plan_npz(struct download *d, const char *dtype, size_t dimensions, const size_t *shape,
                    struct dsnet_error *error) {
  int result = npz_layout_add(&d->npz, "fps", "<f8", 0, NULL, &d->rate, error);
  if (result == 0)
    result = npz_layout_add(&d->npz, "betas", "<f4", 1, (const size_t[]){JOB_BETAS}, d->head.betas,
                            error);
  if (result == 0)
    result = npz_layout_end(&d->npz, kind_names[d->kind], dtype, dimensions, shape, error);
  d->start_size = d->npz.prefix_size;
  d->crc = npz_layout_crc_begin(&d->npz);
  return result;
}

static int plan_document(struct download *d, struct dsnet_error *error) {
  const struct net_config *net = net_config(d->server->models->items[d->model].net);
  bool latent = d->form.kind == NET_LATENT;
  const char *dtype = d->form.encoding == NET_AS_F16 ? "<f2" : "<f4";
  size_t shape[] = {(size_t)d->count, latent ? net->latent : net->vertices, 3};
  size_t dimensions = latent ? 2 : 3;
  d->rate = d->form.clip_rate && d->head.clip_frames ? d->head.clip_fps : d->head.rate;
  d->frame_size = job_output_frame_size(d->server->models, d->model, &d->form);
  d->frames_size = d->count * d->frame_size;
  switch (d->format) {
  case FORMAT_NPZ:
    return plan_npz(d, dtype, dimensions, shape, error);
  case FORMAT_NPY:
    d->start_size = npy_header_format(dtype, dimensions, shape, (char *)d->start);
    break;
  case FORMAT_PC2:
    pc2_header_write((uint32_t)net->vertices, (uint32_t)d->count, d->start);
    d->start_size = PC2_HEADER_SIZE;
    break;
  case FORMAT_MDD:
    mdd_header_write((uint32_t)net->vertices, (uint32_t)d->count, d->start);
    d->start_size = MDD_HEADER_SIZE;
    d->times_size = d->count * 4;
    break;
  }
  return 0;
}

// The same for the same bytes, and for no others.
static void write_etag(const struct download *d, const struct job *job,
                       char etag[ANSWER_ETAG_MAX]) {
  char text[256], hex[33];
  uint8_t hash[16];
  int size = snprintf(text, sizeof text, "1 %s %" PRIu64 " %d %zu %d %d %" PRIu64 " %" PRIu64,
                      job->id, job->attempts, (int)d->format, d->kind, (int)d->form.encoding,
                      d->form.clip_rate, d->from, d->count);
  crypto_generichash(hash, sizeof hash, (const uint8_t *)text, (size_t)size, d->head.identity,
                     sizeof d->head.identity);
  sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
  snprintf(etag, ANSWER_ETAG_MAX, "\"%s\"", hex);
}

// Opens the result's file. Returns its descriptor, or -1 with the answer filled.
static int open_result(struct download *d, const struct job *job, struct answer *answer) {
  char path[JOB_PATH_SIZE];
  const struct models *models = d->server->models;
  int model = models_find(models, job->model);
  job_files_result(jobs_files(d->server->jobs), job, path);
  int descriptor = job_result_open(path, &d->head, &d->error);
  if (descriptor < 0) {
    log_event(LOG_LEVEL_ERROR, "job_result", NULL, "%s", d->error.text);
    answer_problem(answer, PROBLEM_INTERNAL, "the result cannot be read");
    return -1;
  }
  if (model >= 0 &&
      !memcmp(models->items[model].identity, d->head.identity, sizeof d->head.identity)) {
    d->model = (size_t)model;
    return descriptor;
  }
  close(descriptor);
  answer_problem(answer, PROBLEM_MODEL_CHANGED,
                 "the model or body that made this result is not served any more");
  return -1;
}

static bool plan(struct download *d, const struct job *job, struct answer *answer) {
  if (!read_form(d, answer))
    return false;
  int descriptor = open_result(d, job, answer);
  if (descriptor < 0)
    return false;
  if (!read_range(d, answer)) {
    close(descriptor);
    return false;
  }
  if (job_output_new(&d->output, d->server->models, d->model, descriptor, &d->head, &d->form,
                     &d->error) < 0 ||
      plan_document(d, &d->error) < 0) {
    answer_problem(answer, PROBLEM_INTERNAL, "%s", d->error.text);
    return false;
  }
  return true;
}

static void answer_document(struct download *d, const struct job *job, struct answer *answer) {
  char etag[ANSWER_ETAG_MAX], disposition[96];
  const struct answer_source source = {.read = read_document, .close = close_download, .user = d};
  write_etag(d, job, etag);
  answer_stream(answer, d->format == FORMAT_NPZ ? "application/zip" : "application/octet-stream",
                d->start_size + d->times_size + d->frames_size + d->npz.tail_size, etag, &source,
                BLOCK);
  snprintf(disposition, sizeof disposition, "attachment; filename=\"%s.%s\"", job->id,
           format_names[d->format]);
  answer_header(answer, "Content-Disposition", disposition);
}

void job_answer_result(struct request *request, struct answer *answer) {
  struct server *server = request->server;
  struct job job;
  if (!job_find(request, &job, answer))
    return;
  if (job.state != JOB_DONE) {
    answer_problem(answer, PROBLEM_NOT_DONE, "the job is %s", job_state_word(job.state));
    return;
  }
  struct download *d = server->downloads < DOWNLOADS_MAX ? calloc(1, sizeof *d) : NULL;
  if (!d) {
    answer_problem(answer, PROBLEM_AT_LIMIT, "no more results can be sent at once");
    answer_header(answer, "Retry-After", RETRY_AFTER);
    return;
  }
  server->downloads++;
  d->request = request;
  d->server = server;
  if (plan(d, &job, answer))
    answer_document(d, &job, answer);
  else
    close_download(d);
}
