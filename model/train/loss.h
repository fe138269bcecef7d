// SPDX-License-Identifier: Apache-2.0
// The training loss of a window: squared displacement error relative to the window's own energy, so
// that a quiet walk teaches as much as a jump, plus optionally the same for velocities. Latents are
// whitened; `weights` turn them into metres: w_k = s_k^2 / V, s_k the scale of latent k and V the
// vertex count, so that sum_k w_k z_k^2 is the mean squared displacement of a frame in m^2.
//
// For a stream with frames first .. end - 1 counted, e = predicted - target, d the difference of
// consecutive frames:
//
//   loss = sum_t,k w_k e^2 / (sum_t,k w_k z^2 + n floor)
//        + velocity * sum_t,k w_k (d e)^2 / (sum_t,k w_k (d z)^2 + n velocity_floor)
//
// The floors (m^2 a frame) keep a window without motion from being divided by nothing.
#ifndef DSNET_TRAIN_LOSS_H
#define DSNET_TRAIN_LOSS_H

#include <stddef.h>

struct loss_config {
  size_t latent;
  const float *weights; // [Z] m^2
  double floor;         // m^2, above 0
  double velocity;      // share of the velocity term, 0 leaves it out
  double velocity_floor;
};

// Which frames of a window count for a stream; first == end when none do.
struct loss_range {
  size_t first, end;
};

// Sums over calls; start from {0}.
struct loss_sums {
  double loss;    // of all streams that count
  double streams; // their number
  double error;   // m^2, mean squared displacement error summed over frames
  double energy;  // m^2, mean squared displacement summed over frames
  double frames;
};

// Over predicted and target [T][streams][Z]; gradient [T][streams][Z], when not NULL, receives the
// derivative of the sum of the streams' losses, zeros where nothing counts.
void loss_window(const struct loss_config *config, size_t streams, size_t frames,
                 const struct loss_range *ranges, const float *predicted, const float *target,
                 float *gradient, struct loss_sums *sums);

#endif
