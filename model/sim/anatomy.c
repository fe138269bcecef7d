// SPDX-License-Identifier: Apache-2.0
// Moduli are the relaxed ones; at the 50 to 90 Hz of magnetic resonance elastography the Maxwell
// branch adds its share, so that |G*| there is 2.2 times the shear modulus E / 3 of the table.
// Fat: Young's modulus 1.6 +- 0.8 kPa of human subcutaneous tissue in slow tension (Alkhouli et al.
// 2013, Am J Physiol Endocrinol Metab 305:E1427); shear modulus 0.53 +- 0.31 kPa by MRI and inverse
// FEM (Sims et al. 2010, Biomech Model Mechanobiol 9:703); |G*| = 0.75 kPa in vivo at 50 Hz, rising
// steeply with strain (Hatt et al. 2023, doi 10.1016/j.jmbbm.2023.105924). E = 1.2 kPa lies within
// all three, with a stiffening that doubles the secant modulus at a shear of 0.5.
// Muscle at rest: |G*| of 1.0 kPa in the gluteus at 50 Hz (Hatt et al.) and of 3.7 kPa in the vasti
// at 90 Hz (Bensamoun et al. 2006, J Magn Reson Imaging 23:242), so E from 1.4 to 5 kPa: the
// buttock at the low end, the thigh between, and calf and forearm, which are seldom slack, at the
// high end. The belly's "muscle" is its wall with what lies behind, the breast's is what holds it
// to the chest. Densities: fat 0.92 to 0.95, muscle 1.06 kg/l (Ward and Lieber 2005, J Biomech
// 38:2317). Damping: a damping ratio of 0.215 was measured on freely vibrating breasts, whose
// response peaks at 4 Hz (Chen et al. 2013, Ergonomics 56:868); a relaxing share of 1.2 gives 0.2
// there. Poisson's ratio: soft tissue is all but incompressible. 0.47 keeps volume to some per cent
// in motion, and each step of 0.01 towards 0.5 costs time as the inverse root of what is left. The
// skin is not a membrane of its own: in small strain its sheet is slack (its toe region).
#include "sim/anatomy.h"

#define FAT_YOUNG      1200.0
#define FAT_DENSITY    940.0
#define MUSCLE_DENSITY 1060.0
#define POISSON        0.47
#define STIFFENING     4.0
#define RELAXING       1.2

static const struct anatomy table[BODY_REGION_COUNT] = {
    // fat, muscle, muscle_young, softness
    [BODY_REGION_HEAD] = {0.003, 0.003, 5.0e3, 0.0},
    [BODY_REGION_SHOULDERS] = {0.008, 0.030, 4.0e3, 0.35},
    [BODY_REGION_CHEST] = {0.060, 0.014, 3.0e3, 0.6},
    [BODY_REGION_BACK] = {0.015, 0.028, 4.0e3, 0.4},
    [BODY_REGION_BELLY] = {0.046, 0.034, 1.6e3, 0.9},
    [BODY_REGION_HIPS] = {0.038, 0.030, 2.5e3, 0.7},
    [BODY_REGION_BUTTOCKS] = {0.042, 0.042, 2.0e3, 1.0},
    [BODY_REGION_THIGHS] = {0.038, 0.050, 1.4e3, 0.8},
    [BODY_REGION_CALVES] = {0.009, 0.042, 5.0e3, 0.6},
    [BODY_REGION_FEET] = {0.004, 0.003, 5.0e3, 0.0},
    [BODY_REGION_UPPER_ARMS] = {0.017, 0.032, 3.0e3, 0.6},
    [BODY_REGION_FOREARMS] = {0.007, 0.028, 5.0e3, 0.3},
    [BODY_REGION_HANDS] = {0.002, 0.003, 5.0e3, 0.0},
};

const struct anatomy *anatomy_of(enum body_region region) {
  return &table[region];
}

struct material anatomy_material(const struct anatomy *anatomy, double fat_share) {
  double softness = fat_share / FAT_YOUNG + (1 - fat_share) / anatomy->muscle_young;
  return (struct material){.young = 1 / softness,
                           .poisson = POISSON,
                           .density = fat_share * FAT_DENSITY + (1 - fat_share) * MUSCLE_DENSITY,
                           .stiffening = STIFFENING,
                           .relaxing = RELAXING};
}
