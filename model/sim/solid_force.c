// SPDX-License-Identifier: Apache-2.0
// The internal forces of a solid: two passes over the elements, with the nodal pressures between.
// Every quantity is computed from the displacement gradient G = F - I rather than from F, so that
// small displacements lose no digits in single precision:
//
//   J - 1     = tr G + M(G) + det G               (M: sum of the principal 2x2 minors)
//   m         = |G|^2 - 2 M(G) - 2 det G
//   F - cof F = G + G^T - tr(G) I - cof G
//   cof F     = (1 + tr G) I - G^T + cof G
//   P         = mu (1 + b m+) (F - cof F) + p cof F + F S_v
#include "sim/solid_private.h"

#include <string.h>

#define LANES for (int l = 0; l < SOLID_LANES; l++)

// Says that the lanes of the following loop do not depend on each other.
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

// The rotation of each lane's element at `time`: the quaternions are mixed linearly and turned into
// a matrix without needing unit length.
static inline __attribute__((always_inline)) void rotation_mix(struct solid_block *restrict block,
                                                               float time) {
  LANES {
    float w = block->turn[0][0][l] + time * (block->turn[1][0][l] - block->turn[0][0][l]);
    float x = block->turn[0][1][l] + time * (block->turn[1][1][l] - block->turn[0][1][l]);
    float y = block->turn[0][2][l] + time * (block->turn[1][2][l] - block->turn[0][2][l]);
    float z = block->turn[0][3][l] + time * (block->turn[1][3][l] - block->turn[0][3][l]);
    float s = 2 / (w * w + x * x + y * y + z * z);
    block->rotation[0][l] = 1 - s * (y * y + z * z);
    block->rotation[1][l] = s * (x * y - w * z);
    block->rotation[2][l] = s * (x * z + w * y);
    block->rotation[3][l] = s * (x * y + w * z);
    block->rotation[4][l] = 1 - s * (x * x + z * z);
    block->rotation[5][l] = s * (y * z - w * x);
    block->rotation[6][l] = s * (x * z - w * y);
    block->rotation[7][l] = s * (y * z + w * x);
    block->rotation[8][l] = 1 - s * (x * x + y * y);
  }
}

// cof A, rows in order.
#define COFACTOR(c, a)                                                                             \
  float c##0 = a##4 * a##8 - a##5 * a##7, c##1 = a##5 * a##6 - a##3 * a##8,                        \
        c##2 = a##3 * a##7 - a##4 * a##6, c##3 = a##2 * a##7 - a##1 * a##8,                        \
        c##4 = a##0 * a##8 - a##2 * a##6, c##5 = a##1 * a##6 - a##0 * a##7,                        \
        c##6 = a##1 * a##5 - a##2 * a##4, c##7 = a##2 * a##3 - a##0 * a##5,                        \
        c##8 = a##0 * a##4 - a##1 * a##3

#define LOAD9(a, array)                                                                            \
  float a##0 = array[0][l], a##1 = array[1][l], a##2 = array[2][l], a##3 = array[3][l],            \
        a##4 = array[4][l], a##5 = array[5][l], a##6 = array[6][l], a##7 = array[7][l],            \
        a##8 = array[8][l]

// Pass 1: G and J - 1 of every element; V (J - 1) / 4 to its corners.
static inline __attribute__((always_inline)) void strain_pass(struct solid *solid, float time) {
  memset(solid->swell, 0, solid->nodes * sizeof *solid->swell);
  for (size_t i = 0; i < solid->blocks; i++) {
    struct solid_block *restrict block = &solid->block[i];
    rotation_mix(block, time);
    float edge[9][SOLID_LANES]; // edge[3 k + c]: component c of w_{k+1} - w_0
    LANES {
      const float *w0 = solid->displacement[block->corner[0][l]];
      for (int k = 0; k < 3; k++) {
        const float *w = solid->displacement[block->corner[k + 1][l]];
        for (int c = 0; c < 3; c++)
          edge[3 * k + c][l] = w[c] - w0[c];
      }
    }
    float swell[SOLID_LANES];
    INDEPENDENT LANES {
      LOAD9(e, edge);
      LOAD9(r, block->rotation);
      LOAD9(b, block->gradient);
      // columns of R^T [edges]
      float a0 = r0 * e0 + r3 * e1 + r6 * e2, a1 = r1 * e0 + r4 * e1 + r7 * e2,
            a2 = r2 * e0 + r5 * e1 + r8 * e2;
      float a3 = r0 * e3 + r3 * e4 + r6 * e5, a4 = r1 * e3 + r4 * e4 + r7 * e5,
            a5 = r2 * e3 + r5 * e4 + r8 * e5;
      float a6 = r0 * e6 + r3 * e7 + r6 * e8, a7 = r1 * e6 + r4 * e7 + r7 * e8,
            a8 = r2 * e6 + r5 * e7 + r8 * e8;
      float g0 = a0 * b0 + a3 * b3 + a6 * b6, g1 = a0 * b1 + a3 * b4 + a6 * b7,
            g2 = a0 * b2 + a3 * b5 + a6 * b8;
      float g3 = a1 * b0 + a4 * b3 + a7 * b6, g4 = a1 * b1 + a4 * b4 + a7 * b7,
            g5 = a1 * b2 + a4 * b5 + a7 * b8;
      float g6 = a2 * b0 + a5 * b3 + a8 * b6, g7 = a2 * b1 + a5 * b4 + a8 * b7,
            g8 = a2 * b2 + a5 * b5 + a8 * b8;
      float c0 = g4 * g8 - g5 * g7, c1 = g5 * g6 - g3 * g8, c2 = g3 * g7 - g4 * g6;
      float c4 = g0 * g8 - g2 * g6, c8 = g0 * g4 - g1 * g3;
      float dilation = g0 + g4 + g8 + c0 + c4 + c8 + g0 * c0 + g1 * c1 + g2 * c2;
      block->strain[0][l] = g0, block->strain[1][l] = g1, block->strain[2][l] = g2;
      block->strain[3][l] = g3, block->strain[4][l] = g4, block->strain[5][l] = g5;
      block->strain[6][l] = g6, block->strain[7][l] = g7, block->strain[8][l] = g8;
      block->dilation[l] = dilation;
      swell[l] = 0.25f * block->volume[l] * dilation;
    }
    for (int k = 0; k < 4; k++)
      LANES solid->swell[block->corner[k][l]] += swell[l];
  }
}

// Pass 2: stress of every element and its forces on the corners. Returns the largest squared
// frequency of an element over the largest one at rest.
static inline __attribute__((always_inline)) float stress_pass(struct solid *solid, float decay,
                                                               float gain) {
  const float cap = (float)MATERIAL_DISTORTION_MAX;
  float growth[SOLID_LANES] = {0};
  for (size_t i = 0; i < solid->blocks; i++) {
    struct solid_block *restrict block = &solid->block[i];
    struct solid_branch *restrict branch = &solid->branch[i];
    float pressure[SOLID_LANES];
    LANES pressure[l] =
        0.25f * (solid->pressure[block->corner[0][l]] + solid->pressure[block->corner[1][l]] +
                 solid->pressure[block->corner[2][l]] + solid->pressure[block->corner[3][l]]);
    float force[9][SOLID_LANES]; // force[3 k + c]: component c on corner k + 1
    INDEPENDENT LANES {
      LOAD9(g, block->strain);
      COFACTOR(c, g);
      float trace = g0 + g4 + g8;
      float square =
          g0 * g0 + g1 * g1 + g2 * g2 + g3 * g3 + g4 * g4 + g5 * g5 + g6 * g6 + g7 * g7 + g8 * g8;
      float m = square - 2 * (c0 + c4 + c8) - 2 * (g0 * c0 + g1 * c1 + g2 * c2);
      m = m > 0 ? m : 0;
      m = m < cap ? m : cap;
      float stiffer = 1 + block->stiffening[l] * m;
      float mu = block->shear[l] * stiffer;
      float p = pressure[l] + block->bulk[l] * block->dilation[l];
      float viscous = block->viscous[l];
      // E = (G + G^T + G^T G) / 2 and the branch
#define BRANCH(s, k, twice)                                                                        \
  float s;                                                                                         \
  {                                                                                                \
    float now = 0.5f * (twice);                                                                    \
    float h = decay * branch->stretched[k][l] + gain * (now - branch->green[k][l]);                \
    branch->green[k][l] = now;                                                                     \
    branch->stretched[k][l] = h;                                                                   \
    s = viscous * h;                                                                               \
  }
      BRANCH(sxx, 0, 2 * g0 + g0 * g0 + g3 * g3 + g6 * g6)
      BRANCH(syy, 1, 2 * g4 + g1 * g1 + g4 * g4 + g7 * g7)
      BRANCH(szz, 2, 2 * g8 + g2 * g2 + g5 * g5 + g8 * g8)
      BRANCH(sxy, 3, g1 + g3 + g0 * g1 + g3 * g4 + g6 * g7)
      BRANCH(sxz, 4, g2 + g6 + g0 * g2 + g3 * g5 + g6 * g8)
      BRANCH(syz, 5, g5 + g7 + g1 * g2 + g4 * g5 + g7 * g8)
#undef BRANCH
      float fx = 1 + g0, fy = 1 + g4, fz = 1 + g8, one = 1 + trace;
      float p0 = mu * (2 * g0 - trace - c0) + p * (one - g0 + c0) + fx * sxx + g1 * sxy + g2 * sxz;
      float p1 = mu * (g1 + g3 - c1) + p * (c1 - g3) + fx * sxy + g1 * syy + g2 * syz;
      float p2 = mu * (g2 + g6 - c2) + p * (c2 - g6) + fx * sxz + g1 * syz + g2 * szz;
      float p3 = mu * (g3 + g1 - c3) + p * (c3 - g1) + g3 * sxx + fy * sxy + g5 * sxz;
      float p4 = mu * (2 * g4 - trace - c4) + p * (one - g4 + c4) + g3 * sxy + fy * syy + g5 * syz;
      float p5 = mu * (g5 + g7 - c5) + p * (c5 - g7) + g3 * sxz + fy * syz + g5 * szz;
      float p6 = mu * (g6 + g2 - c6) + p * (c6 - g2) + g6 * sxx + g7 * sxy + fz * sxz;
      float p7 = mu * (g7 + g5 - c7) + p * (c7 - g5) + g6 * sxy + g7 * syy + fz * syz;
      float p8 = mu * (2 * g8 - trace - c8) + p * (one - g8 + c8) + g6 * sxz + g7 * syz + fz * szz;
      // H = -V P B^T, then turned into the world
      LOAD9(b, block->gradient);
      LOAD9(r, block->rotation);
      float v = -block->volume[l];
#define CORNER(k, bx, by, bz)                                                                      \
  {                                                                                                \
    float hx = v * (p0 * bx + p1 * by + p2 * bz);                                                  \
    float hy = v * (p3 * bx + p4 * by + p5 * bz);                                                  \
    float hz = v * (p6 * bx + p7 * by + p8 * bz);                                                  \
    force[3 * (k)][l] = r0 * hx + r1 * hy + r2 * hz;                                               \
    force[3 * (k) + 1][l] = r3 * hx + r4 * hy + r5 * hz;                                           \
    force[3 * (k) + 2][l] = r6 * hx + r7 * hy + r8 * hz;                                           \
  }
      CORNER(0, b0, b1, b2)
      CORNER(1, b3, b4, b5)
      CORNER(2, b6, b7, b8)
#undef CORNER
      // How much stiffer than at rest this element has become: the secant and tangent of the
      // distortion (at most 1 + 3 b m), the branch like the largest |F n|^2 (|F|^2 - 2 while the
      // other two stretches are 1), volume like the largest |cof F n|^2 ((|F|^2 - 1)^2 / 4 while
      // the third is).
      float length = 1 + 2 * trace + square, area = 1 + trace + 0.5f * square;
      length = length > 1 ? length : 1;
      area = area > 1 ? area : 1;
      float now = block->limit[l] * (block->wave[0][l] * (1 + 3 * block->stiffening[l] * m) +
                                     block->wave[1][l] * length + block->wave[2][l] * area * area);
      growth[l] = growth[l] > now ? growth[l] : now;
    }
    LANES {
      float *f0 = solid->force[block->corner[0][l]];
      for (int k = 0; k < 3; k++) {
        float *f = solid->force[block->corner[k + 1][l]];
        for (int c = 0; c < 3; c++) {
          f[c] += force[3 * k + c][l];
          f0[c] -= force[3 * k + c][l];
        }
      }
    }
  }
  float largest = 0;
  LANES largest = growth[l] > largest ? growth[l] : largest;
  return largest;
}

static inline __attribute__((always_inline)) void evaluate(struct solid *solid, float time,
                                                           float decay, float gain) {
  strain_pass(solid, time);
  for (size_t n = 0; n < solid->nodes; n++)
    solid->pressure[n] = solid->pressure_factor[n] * solid->swell[n];
  memset(solid->force, 0, solid->nodes * sizeof *solid->force);
  solid->growth = stress_pass(solid, decay, gain);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void evaluate_avx2(struct solid *solid, float time,
                                                              float decay, float gain) {
  evaluate(solid, time, decay, gain);
}
#endif

static void evaluate_plain(struct solid *solid, float time, float decay, float gain) {
  evaluate(solid, time, decay, gain);
}

void solid_evaluate(struct solid *solid, float time, float decay, float gain) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    evaluate_avx2(solid, time, decay, gain);
    return;
  }
#endif
  evaluate_plain(solid, time, decay, gain);
}
