// SPDX-License-Identifier: Apache-2.0
// model/sim/solid: blocks with known answers. Beam theory, orders of convergence, conservation,
// damping, and recovery from states that no tissue should be in.
#include "sim/solid.h"

#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "sim_block.h"

// Unoptimised builds (debug, sanitizers) run the same checks on coarser beams.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&    \
    defined(NDEBUG)
enum { BEAM_CELLS = 8 };
#else
enum { BEAM_CELLS = 4 };
#endif

static const double pi = 3.14159265358979323846;
static const double beam_length = 0.2, beam_height = 0.04;

// Tissue without damping or stiffening.
static const struct material elastic = {
    .young = 10e3, .poisson = 0.45, .density = 1000, .stiffening = 0, .relaxing = 0};

static struct block_plan beam_plan(int cells, double poisson) {
  struct block_plan plan = {.cells = {5 * cells, cells, cells},
                            .size = {beam_length, beam_height, beam_height},
                            .material = elastic,
                            .relaxation_time = 0.05,
                            .bound_axis = 0};
  plan.material.poisson = poisson;
  return plan;
}

// Cowper 1966, rectangular section.
static double shear_coefficient(double poisson) {
  return 10 * (1 + poisson) / (12 + 11 * poisson);
}

// Characteristic function of the Timoshenko cantilever (Huang 1961), zero at b = omega L^2
// sqrt(rho A / E I).
static double timoshenko_characteristic(double b, double poisson) {
  double slender = beam_height * beam_height / 12 / (beam_length * beam_length);
  double r2 = slender, s2 = slender * 2 * (1 + poisson) / shear_coefficient(poisson);
  double root = sqrt((r2 - s2) * (r2 - s2) + 4 / (b * b));
  double alpha = sqrt((root - r2 - s2) / 2), beta = sqrt((root + r2 + s2) / 2);
  return 2 + (b * b * (r2 - s2) * (r2 - s2) + 2) * cosh(b * alpha) * cos(b * beta) -
         b * (r2 + s2) / sqrt(1 - b * b * r2 * s2) * sinh(b * alpha) * sin(b * beta);
}

static double beam_frequency(double poisson) { // Hz
  const struct material *m = &elastic;
  double low = 2, high = 3.6;
  for (int i = 0; i < 60; i++) {
    double middle = (low + high) / 2;
    if (timoshenko_characteristic(low, poisson) * timoshenko_characteristic(middle, poisson) <= 0)
      high = middle;
    else
      low = middle;
  }
  return low / (2 * pi) * sqrt(m->young * beam_height * beam_height / 12 / m->density) /
         (beam_length * beam_length);
}

// The first bending mode of the Euler-Bernoulli cantilever, 1e-4 m large, along z.
static float *beam_mode(const double *positions, size_t nodes) {
  float *w = calloc(nodes, 3 * sizeof *w);
  assert_non_null(w);
  const double b = 1.8751040687;
  double ratio = (sinh(b) - sin(b)) / (cosh(b) + cos(b));
  for (size_t n = 0; n < nodes; n++) {
    double z = b * positions[3 * n] / beam_length;
    w[3 * n + 2] = (float)(0.5e-4 * (cosh(z) - cos(z) - ratio * (sinh(z) - sin(z))));
  }
  return w;
}

// Mass-weighted product of the state with a mode.
static double modal(const struct solid *solid, const float *mode, const float *state) {
  double sum = 0;
  for (size_t n = 0; n < solid_nodes(solid); n++)
    for (size_t c = 0; c < 3; c++)
      sum += (double)mode[3 * n + c] * state[4 * n + c] * solid_masses(solid)[n];
  return sum;
}

// Frequency in Hz by the time of the first passage through zero, a quarter period after release.
static double beam_measure(int cells, double poisson) {
  struct block_plan plan = beam_plan(cells, poisson);
  double *positions;
  struct solid *solid = block_new(&plan, &positions);
  float *mode = beam_mode(positions, solid_nodes(solid));
  solid_start(solid, mode, NULL, NULL, NULL);
  const double dt = 2e-3;
  double before = modal(solid, mode, solid_displacement(solid)), time = 0, after = before;
  while (after > 0 && time < 2) {
    before = after;
    solid_advance(solid, dt, NULL, NULL);
    time += dt;
    after = modal(solid, mode, solid_displacement(solid));
  }
  time -= dt * after / (after - before);
  free(mode);
  free(positions);
  solid_free(solid);
  return 0.25 / time;
}

static void first_frequency_of_a_cantilever_is_the_beams(void **state) {
  (void)state;
  // Near-incompressible. Beam theory knows nothing of the clamp that keeps the root from
  // contracting sideways, so this is not the place to measure an order.
  double exact = beam_frequency(elastic.poisson), found = beam_measure(BEAM_CELLS, elastic.poisson);
  print_message("cantilever: %.4f Hz with %d cells, beam theory %.4f, error %.1f%%\n", found,
                BEAM_CELLS, exact, 100 * (found / exact - 1));
  assert_true(fabs(found / exact - 1) < (BEAM_CELLS == 8 ? 0.05 : 0.11));
}

static void error_falls_with_the_square_of_the_cell(void **state) {
  (void)state;
  // Without lateral contraction the beam's answer is that of the solid.
  double exact = beam_frequency(0), coarse = beam_measure(BEAM_CELLS / 2, 0),
         fine = beam_measure(BEAM_CELLS, 0);
  double ratio = (coarse / exact - 1) / (fine / exact - 1);
  print_message(
      "cantilever without contraction: error %.2f%%, with half the cells %.2f%%: by %.2f\n",
      100 * (fine / exact - 1), 100 * (coarse / exact - 1), ratio);
  assert_true(ratio > 3 && ratio < 5);
  assert_true(fabs((fine + (fine - coarse) / 3) / exact - 1) < 0.01);
}

// Static deflection of the tip under a uniform load, by letting a heavily damped beam come to
// rest.
static double beam_sag(int cells, double poisson, double load) {
  struct block_plan plan = beam_plan(cells, poisson);
  plan.material.relaxing = 2; // damps near-critically at the beam's frequency; no static effect
  plan.relaxation_time = 0.15;
  struct solid *solid = block_new(&plan, NULL);
  float *loads = calloc(solid_nodes(solid), 3 * sizeof *loads);
  assert_non_null(loads);
  for (size_t n = 0; n < solid_nodes(solid); n++)
    loads[3 * n + 2] = (float)load;
  solid_start(solid, NULL, NULL, NULL, loads);
  solid_advance(solid, 4, NULL, NULL);
  size_t tip = block_node(&plan, 5 * cells, cells / 2, cells / 2);
  double sag = solid_displacement(solid)[4 * tip + 2];
  free(loads);
  solid_free(solid);
  return sag;
}

static void a_cantilever_sags_as_beam_theory_says(void **state) {
  (void)state;
  const double load = 0.02, l2 = beam_length * beam_length, h2 = beam_height * beam_height;
  const double poissons[] = {0, 0.45}, allowed[] = {0.025, 0.065};
  const int cells = BEAM_CELLS == 8 ? 6 : 4;
  for (int i = 0; i < 2; i++) {
    double shear = elastic.young / (2 * (1 + poissons[i]));
    double exact =
        elastic.density * load *
        (1.5 * l2 * l2 / (elastic.young * h2) + l2 / (2 * shear_coefficient(poissons[i]) * shear));
    double coarse = beam_sag(cells / 2, poissons[i], load),
           fine = beam_sag(cells, poissons[i], load);
    double limit = fine + (fine - coarse) / 3;
    print_message("cantilever, Poisson's ratio %.2f: sag %.4f mm, %.4f with half the cells, "
                  "extrapolated %.4f; beam theory %.4f\n",
                  poissons[i], 1e3 * fine, 1e3 * coarse, 1e3 * limit, 1e3 * exact);
    // The clamped root, stiffer than the beam's, shows more the less the tissue can shrink.
    assert_true(fabs(limit / exact - 1) < allowed[i] * (BEAM_CELLS == 8 ? 1 : 3));
  }
}

// A layer bound at the bottom, like tissue on bone: omega = pi / (2 h) sqrt(mu / rho).
static double layer_frequency(int layers, double poisson) {
  struct block_plan plan = {.cells = {1, 1, layers},
                            .size = {0.02, 0.02, 0.05},
                            .material = elastic,
                            .relaxation_time = 0.05,
                            .bound_axis = 2};
  plan.material.poisson = poisson;
  double *positions;
  struct solid *solid = block_new(&plan, &positions);
  size_t nodes = solid_nodes(solid);
  float *mode = calloc(nodes, 3 * sizeof *mode);
  assert_non_null(mode);
  for (size_t n = 0; n < nodes; n++)
    mode[3 * n] = (float)(1e-4 * sin(pi / 2 * positions[3 * n + 2] / 0.05));
  // The Rayleigh quotient of the layer's own forces; sideways motion is left out, as in a wide
  // layer.
  solid_start(solid, mode, NULL, NULL, NULL);
  double stiffness = 0, mass = 0;
  for (size_t n = 0; n < nodes; n++) {
    stiffness -= (double)solid_forces(solid)[4 * n] * mode[3 * n];
    mass += (double)solid_masses(solid)[n] * mode[3 * n] * mode[3 * n];
  }
  free(mode);
  free(positions);
  solid_free(solid);
  return sqrt(stiffness / mass) / (2 * pi);
}

static void two_layers_suffice_for_the_shear_of_tissue_on_bone(void **state) {
  (void)state;
  const double poissons[] = {0.3, 0.47};
  for (int i = 0; i < 2; i++) {
    double mu = elastic.young / (2 * (1 + poissons[i]));
    double exact = sqrt(mu / elastic.density) / (4 * 0.05);
    assert_true(fabs(layer_frequency(2, poissons[i]) / exact - 1) < 0.04);
    double coarse = fabs(layer_frequency(4, poissons[i]) / exact - 1),
           fine = fabs(layer_frequency(8, poissons[i]) / exact - 1);
    assert_true(coarse / fine > 3.5 && coarse / fine < 4.5);
  }
}

static struct block_plan cube_plan(int cells, int bound_axis) {
  return (struct block_plan){.cells = {cells, cells, cells},
                             .size = {0.06, 0.06, 0.06},
                             .material = elastic,
                             .relaxation_time = 0.05,
                             .bound_axis = bound_axis};
}

static double nodes_distance(const struct solid *solid, const float *other) {
  double sum = 0;
  for (size_t i = 0; i < 4 * solid_nodes(solid); i++) {
    double d = (double)solid_displacement(solid)[i] - other[i];
    sum += d * d;
  }
  return sqrt(sum);
}

// The state after 0.25 s of a cube that starts with a shearing velocity, at a fraction of the
// stability limit.
static float *cube_state(double courant) {
  struct block_plan plan = cube_plan(3, 2);
  plan.material.stiffening = 2;
  plan.material.relaxing = 0.8;
  double *positions;
  struct solid *solid = block_new(&plan, &positions);
  size_t nodes = solid_nodes(solid);
  float *velocity = calloc(nodes, 3 * sizeof *velocity);
  float *state = calloc(nodes, 4 * sizeof *state);
  assert_true(velocity && state);
  for (size_t n = 0; n < nodes; n++)
    velocity[3 * n] = (float)(8 * positions[3 * n + 2]);
  solid_set_courant(solid, courant);
  solid_start(solid, NULL, velocity, NULL, NULL);
  solid_advance(solid, 0.25, NULL, NULL);
  memcpy(state, solid_displacement(solid), 4 * nodes * sizeof *state);
  free(velocity);
  free(positions);
  solid_free(solid);
  return state;
}

static void error_falls_with_the_square_of_the_time_step(void **state) {
  (void)state;
  struct block_plan plan = cube_plan(3, 2);
  struct solid *solid = block_new(&plan, NULL); // for its size only
  size_t values = 4 * solid_nodes(solid);
  float *exact = cube_state(0.02), *fine = cube_state(0.2), *coarse = cube_state(0.4);
  double error_fine = 0, error_coarse = 0;
  for (size_t i = 0; i < values; i++) {
    error_fine += pow((double)fine[i] - exact[i], 2);
    error_coarse += pow((double)coarse[i] - exact[i], 2);
  }
  double ratio = sqrt(error_coarse / error_fine);
  print_message("halving the time step divides the error by %.2f\n", ratio);
  assert_true(ratio > 3.2 && ratio < 5);
  free(exact);
  free(fine);
  free(coarse);
  solid_free(solid);
}

// Random unit quaternions for every element, and displacements of up to `size` metres.
static void disturb(const struct solid *solid, uint64_t seed, double size, float *displacement,
                    float *rotations) {
  struct random_state random;
  random_init(&random, seed);
  for (size_t i = 0; i < 3 * solid_nodes(solid); i++)
    displacement[i] = (float)(size * (2 * random_uniform(&random) - 1));
  for (size_t t = 0; rotations && t < solid_tets(solid); t++) {
    double q[4], norm = 0;
    for (int c = 0; c < 4; c++) {
      q[c] = random_normal(&random);
      norm += q[c] * q[c];
    }
    for (int c = 0; c < 4; c++)
      rotations[4 * t + (size_t)c] = (float)(q[c] / sqrt(norm));
  }
}

static void forces_are_the_gradient_of_the_energy(void **state) {
  (void)state;
  struct block_plan plan = cube_plan(2, -1);
  plan.material.stiffening = 3;
  struct solid *solid = block_new(&plan, NULL);
  size_t nodes = solid_nodes(solid);
  float *w = calloc(nodes, 3 * sizeof *w), *q = calloc(solid_tets(solid), 4 * sizeof *q);
  float *force = calloc(nodes, 4 * sizeof *force);
  assert_true(w && q && force);
  const double sizes[] = {0.002, 0.01, 0.05}; // the last inverts elements and passes the cap
  for (int s = 0; s < 3; s++) {
    disturb(solid, 7 + (uint64_t)s, sizes[s], w, q);
    solid_start(solid, w, NULL, q, NULL);
    memcpy(force, solid_forces(solid), 4 * nodes * sizeof *force);
    double scale = 0;
    for (size_t i = 0; i < 4 * nodes; i++)
      scale = fmax(scale, fabs((double)force[i]));
    for (size_t i = 0; i < 3 * nodes; i++) {
      const float step = (float)(1e-3 * sizes[s]), kept = w[i];
      double up, down;
      w[i] = kept + step;
      solid_start(solid, w, NULL, q, NULL);
      solid_energy(solid, NULL, &up);
      double span = w[i];
      w[i] = kept - step;
      span -= w[i];
      solid_start(solid, w, NULL, q, NULL);
      solid_energy(solid, NULL, &down);
      w[i] = kept;
      double expected = -(up - down) / span;
      assert_true(fabs(force[4 * (i / 3) + i % 3] - expected) < 2e-3 * scale);
    }
  }
  free(w);
  free(q);
  free(force);
  solid_free(solid);
}

static void a_free_block_keeps_momentum_and_energy(void **state) {
  (void)state;
  struct block_plan plan = cube_plan(3, -1);
  plan.material.stiffening = 2;
  struct solid *solid = block_new(&plan, NULL);
  size_t nodes = solid_nodes(solid);
  float *w = calloc(nodes, 3 * sizeof *w), *v = calloc(nodes, 3 * sizeof *v);
  float *q = calloc(solid_tets(solid), 4 * sizeof *q), *g = calloc(nodes, 3 * sizeof *g);
  assert_true(w && v && q && g);
  disturb(solid, 3, 0.003, w, q);
  disturb(solid, 4, 0.2, v, NULL);
  double mass = 0, before[3] = {0}, after[3] = {0}, scale = 0;
  for (size_t n = 0; n < nodes; n++) {
    mass += solid_masses(solid)[n];
    for (size_t c = 0; c < 3; c++) {
      before[c] += (double)solid_masses(solid)[n] * v[3 * n + c];
      scale += solid_masses(solid)[n] * fabs((double)v[3 * n + c]);
    }
  }
  assert_true(fabs(mass - 0.06 * 0.06 * 0.06 * 1000) < 1e-6);
  // Without loads: nothing changes either, though every element is turned its own way.
  solid_set_courant(solid, 0.3);
  solid_start(solid, w, v, q, NULL);
  double kinetic, stored, energy;
  solid_energy(solid, &kinetic, &stored);
  energy = kinetic + stored;
  solid_advance(solid, 0.5, NULL, NULL);
  solid_energy(solid, &kinetic, &stored);
  assert_true(fabs((kinetic + stored) / energy - 1) < 0.02);
  for (size_t n = 0; n < nodes; n++)
    for (size_t c = 0; c < 3; c++)
      after[c] += (double)solid_masses(solid)[n] * solid_velocity(solid)[4 * n + c];
  for (int c = 0; c < 3; c++)
    assert_true(fabs(after[c] - before[c]) < 1e-4 * scale);
  // Under gravity: by mass times gravity times time.
  for (size_t n = 0; n < nodes; n++)
    g[3 * n + 2] = -9.81f;
  solid_start(solid, w, v, q, g);
  solid_advance(solid, 0.25, q, g);
  memset(after, 0, sizeof after);
  for (size_t n = 0; n < nodes; n++)
    for (size_t c = 0; c < 3; c++)
      after[c] += (double)solid_masses(solid)[n] * solid_velocity(solid)[4 * n + c];
  assert_true(fabs(after[0] - before[0]) < 1e-4 * scale);
  assert_true(fabs(after[2] - before[2] + mass * 9.81 * 0.25) < 1e-3 * mass * 9.81 * 0.25);
  free(w);
  free(v);
  free(q);
  free(g);
  solid_free(solid);
}

static void rest_is_exact_in_any_rotation(void **state) {
  (void)state;
  struct block_plan plan = cube_plan(2, 1);
  struct solid *solid = block_new(&plan, NULL);
  size_t nodes = solid_nodes(solid);
  float *w = calloc(nodes, 3 * sizeof *w), *q = calloc(solid_tets(solid), 4 * sizeof *q);
  assert_true(w && q);
  for (uint64_t seed = 0; seed < 5; seed++) {
    disturb(solid, seed, 0, w, q);
    if (seed == 0)
      solid_start(solid, NULL, NULL, q, NULL);
    solid_advance(solid, 1 / 60.0, q, NULL);
  }
  for (size_t i = 0; i < 4 * nodes; i++)
    assert_true(solid_displacement(solid)[i] == 0);
  free(w);
  free(q);
  solid_free(solid);
}

// Without lateral contraction, elastic and viscous stress are proportional, and s of a mode with
// the undamped frequency omega solves s^2 (1 + s tau) + omega^2 (1 + s tau (1 + r)) = 0.
static double complex sls_root(double omega, double tau, double relaxing) {
  double complex s = -1 + I * omega * sqrt(1 + relaxing / 2);
  for (int i = 0; i < 60; i++) {
    double complex p = tau * s * s * s + s * s + omega * omega * (1 + s * tau * (1 + relaxing));
    double complex d = 3 * tau * s * s + 2 * s + omega * omega * tau * (1 + relaxing);
    s -= p / d;
  }
  return s;
}

// Makes a mode shape that of the solid itself: the shape at rest under loads like the mode, which
// divides what there is of the next mode by some forty. Returns its frequency in rad/s, from the
// Rayleigh quotient.
static double mode_sharpen(struct solid *solid, const struct block_plan *plan, float *mode) {
  struct block_plan damped = *plan;
  damped.material.relaxing = 2;
  damped.relaxation_time = 0.15;
  struct solid *slow = block_new(&damped, NULL);
  solid_start(slow, NULL, NULL, NULL, mode);
  solid_advance(slow, 6, NULL, NULL);
  size_t nodes = solid_nodes(slow);
  float peak = 0;
  for (size_t i = 0; i < 3 * nodes; i++) {
    mode[i] = solid_displacement(slow)[4 * (i / 3) + i % 3];
    peak = fmaxf(peak, fabsf(mode[i]));
  }
  for (size_t i = 0; i < 3 * nodes; i++)
    mode[i] *= 1e-4f / peak;
  solid_free(slow);
  solid_start(solid, mode, NULL, NULL, NULL);
  double stiffness = 0;
  for (size_t i = 0; i < 3 * nodes; i++)
    stiffness -= (double)solid_forces(solid)[4 * (i / 3) + i % 3] * mode[i];
  return sqrt(stiffness / modal(solid, mode, solid_displacement(solid)));
}

static void damping_is_the_standard_linear_solids(void **state) {
  (void)state;
  const double relaxing = 1.2;
  struct block_plan plan = beam_plan(2, 0);
  double *positions;
  struct solid *solid = block_new(&plan, &positions);
  float *mode = beam_mode(positions, solid_nodes(solid));
  double omega = mode_sharpen(solid, &plan, mode), tau = 0.7 / omega;
  double complex root = sls_root(omega, tau, relaxing);
  solid_free(solid);
  plan.material.relaxing = relaxing;
  plan.relaxation_time = tau;
  solid = block_new(&plan, NULL);
  solid_start(solid, mode, NULL, NULL, NULL);
  const double dt = 2e-3;
  double previous = modal(solid, mode, solid_displacement(solid)), crossings[6], peaks[6], peak = 0;
  int found = 0;
  for (int i = 1; found < 6 && i < 5000; i++) {
    solid_advance(solid, dt, NULL, NULL);
    double now = modal(solid, mode, solid_displacement(solid));
    peak = fmax(peak, fabs(now));
    if (now * previous < 0) {
      crossings[found] = (i - now / (now - previous)) * dt;
      peaks[found++] = peak;
      peak = 0;
    }
    previous = now;
  }
  assert_int_equal(found, 6);
  double half = crossings[5] - crossings[4];
  double frequency = pi / half, decay = log(peaks[4] / peaks[5]) / half;
  print_message("damped beam: %.3f rad/s, decay %.3f /s; theory %.3f and %.3f\n", frequency, decay,
                cimag(root), -creal(root));
  assert_true(fabs(frequency / cimag(root) - 1) < 0.02);
  assert_true(fabs(decay / -creal(root) - 1) < 0.05);
  free(mode);
  free(positions);
  solid_free(solid);
}

static void collapsed_and_inverted_elements_recover(void **state) {
  (void)state;
  struct block_plan plan = cube_plan(3, 2);
  plan.material.stiffening = 2;
  plan.material.relaxing = 1;
  double *positions;
  struct solid *solid = block_new(&plan, &positions);
  size_t nodes = solid_nodes(solid);
  float *w = calloc(nodes, 3 * sizeof *w);
  assert_non_null(w);
  for (int kind = 0; kind < 3; kind++) {
    if (kind == 0) // a heap of random points
      disturb(solid, 11, 0.06, w, NULL);
    for (size_t i = 0; kind > 0 && i < 3 * nodes; i++) // flat, then turned inside out
      w[i] = i % 3 == 2 ? (float)(-kind * positions[i]) : 0;
    solid_start(solid, w, NULL, NULL, NULL);
    solid_advance(solid, 4, NULL, NULL);
    double largest = 0;
    for (size_t i = 0; i < 4 * nodes; i++)
      largest = fmax(largest, fabs((double)solid_displacement(solid)[i]));
    print_message("recovery %d: %.3g m from rest after 4 s\n", kind, largest);
    assert_true(largest < 1e-3);
  }
  free(w);
  free(positions);
  solid_free(solid);
}

static void absurd_loads_give_finite_bounded_answers(void **state) {
  (void)state;
  struct block_plan plan = cube_plan(3, 2);
  plan.material.stiffening = 4;
  plan.material.relaxing = 1;
  struct solid *solid = block_new(&plan, NULL);
  size_t nodes = solid_nodes(solid);
  float *loads = calloc(nodes, 3 * sizeof *loads);
  assert_non_null(loads);
  solid_start(solid, NULL, NULL, NULL, NULL);
  for (int frame = 0; frame < 60; frame++) {
    for (size_t i = 0; i < 3 * nodes; i++)
      loads[i] = frame < 6 ? (frame & 1 ? -1e5f : 1e5f) : 0;
    size_t steps = solid_advance(solid, 1 / 60.0, NULL, loads);
    assert_true(steps < 2000);
    for (size_t i = 0; i < 4 * nodes; i++) {
      assert_true(isfinite(solid_displacement(solid)[i]));
      assert_true(fabsf(solid_displacement(solid)[i]) < 1);
    }
  }
  solid_advance(solid, 4, NULL, NULL);
  float *zero = calloc(nodes, 4 * sizeof *zero);
  assert_non_null(zero);
  assert_true(nodes_distance(solid, zero) < 1e-2);
  free(zero);
  free(loads);
  solid_free(solid);
}

static void impossible_meshes_are_refused(void **state) {
  (void)state;
  double x[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
  uint32_t corners[4] = {0, 1, 2, 3};
  uint8_t bound[4] = {0};
  struct material material = elastic;
  struct solid_mesh mesh = {4, 1, x, corners, bound, &material, 0.05};
  struct solid *solid;
  struct dsnet_error error = {0};
  assert_int_equal(solid_new(&solid, &mesh, &error), DSNET_OK);
  solid_free(solid);
  corners[1] = 2, corners[2] = 1; // inside out
  assert_int_equal(solid_new(&solid, &mesh, &error), DSNET_EVALUE);
  assert_null(solid);
  corners[1] = 9;
  assert_int_equal(solid_new(&solid, &mesh, NULL), DSNET_EVALUE);
  corners[1] = 1, corners[2] = 2;
  material.poisson = 0.5;
  assert_int_equal(solid_new(&solid, &mesh, NULL), DSNET_EVALUE);
  material = elastic;
  material.young = NAN;
  assert_int_equal(solid_new(&solid, &mesh, NULL), DSNET_EVALUE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forces_are_the_gradient_of_the_energy),
      cmocka_unit_test(first_frequency_of_a_cantilever_is_the_beams),
      cmocka_unit_test(error_falls_with_the_square_of_the_cell),
      cmocka_unit_test(a_cantilever_sags_as_beam_theory_says),
      cmocka_unit_test(two_layers_suffice_for_the_shear_of_tissue_on_bone),
      cmocka_unit_test(error_falls_with_the_square_of_the_time_step),
      cmocka_unit_test(a_free_block_keeps_momentum_and_energy),
      cmocka_unit_test(rest_is_exact_in_any_rotation),
      cmocka_unit_test(damping_is_the_standard_linear_solids),
      cmocka_unit_test(collapsed_and_inverted_elements_recover),
      cmocka_unit_test(absurd_loads_give_finite_bounded_answers),
      cmocka_unit_test(impossible_meshes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
