// SPDX-License-Identifier: Apache-2.0
// Inference requests of the Open Inference Protocol (KServe v2, kserve.github.io/website; with
// Triton's extensions binary_tensor_data and sequence): JSON, or JSON followed by the blobs of the
// tensors that say so. Codec only: any thread.
//
// Inputs, all FP32, data nested or flat, row-major:
//   pose   [T, 66]          radians, axis-angle of 22 SMPL joints, in a z-up world
//   trans  [T, 3]           metres
//   betas  [n] or [1, n]    shape, n of 1 to 300, of which 10 count; optional
//   fps    [1]              frames a second of the poses; optional
// Outputs: displacement [T, V, 3] metres in the rest pose, latent [T, Z]. Without a list: both.
#ifndef DSNET_INFER_REQUEST_H
#define DSNET_INFER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INFER_POSE          66
#define INFER_BETAS         10
#define INFER_BETAS_MAX     300
#define INFER_FPS_MAX       1000
#define INFER_SEQUENCE_SIZE 129 // of a name, with its NUL
#define INFER_JSON_MAX                                                                             \
  4194304 // bytes of the JSON part, which takes some ten times as much in memory

enum infer_output_kind { INFER_DISPLACEMENT, INFER_LATENT, INFER_OUTPUT_KINDS };
extern const char *const infer_output_names[INFER_OUTPUT_KINDS];

struct infer_output {
  enum infer_output_kind kind;
  bool binary;
};

struct infer_request {
  char *id; // echoed; NULL for none
  size_t frames;
  float *pose;  // [frames][66]
  float *trans; // [frames][3]
  bool has_betas;
  float betas[INFER_BETAS];
  float fps; // 0: not given
  struct infer_output outputs[INFER_OUTPUT_KINDS];
  size_t output_count;
  // "" for none. A number is written in digits after "#", a name after "$", so that 7 and "7"
  // differ.
  char sequence[INFER_SEQUENCE_SIZE + 1];
  bool start, end;
};

enum infer_read { INFER_READ, INFER_MALFORMED, INFER_NOMEM };
#define INFER_TEXT_SIZE 256

// Reads a body of which the first `json_size` bytes are JSON. On failure `why` says what is wrong
// with what, and nothing is left to free. infer_request_free otherwise.
enum infer_read infer_request_read(struct infer_request *request, const char *body, size_t size,
                                   size_t json_size, size_t max_frames, char why[INFER_TEXT_SIZE]);
void infer_request_free(struct infer_request *request);

#endif
