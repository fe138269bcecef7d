// SPDX-License-Identifier: Apache-2.0
// Moduli. Fat: Young's modulus 1.6 +- 0.8 kPa of human subcutaneous tissue in tension (Alkhouli et
// al. 2013, Am J Physiol Endocrinol Metab 305:E1427); shear modulus 0.5 kPa by MRI and inverse FEM
// (Sims et al. 2010, Biomech Model Mechanobiol 9:703) and |G*| = 0.75 kPa in vivo at 50 Hz, rising
// steeply with strain (Hatt et al. 2023, doi 10.1016/j.jmbbm.2023.105924). 1.8 kPa stands for
// these, with a stiffening that doubles the secant modulus at a shear of 0.5.
// Muscle at rest: |G*| from 1.0 kPa in gluteus (Hatt et al.) to some 4 kPa in the thigh by magnetic
// resonance elastography (Bensamoun et al. 2006, J Magn Reson Imaging 23:242), that is E from 3 to
// 12 kPa; in motion muscles are partly active and stiffer, so the upper half is used, most on calf
// and forearm. The belly's "muscle" is its wall with what lies behind, the breast's is what holds
// it to the chest.
// Densities: fat 0.92 to 0.95, muscle 1.06 kg/l (Ward and Lieber 2005, J Biomech 38:2317).
// Damping: a damping ratio of 0.215 was measured on freely vibrating breasts, whose response peaks
// at 4 Hz (Chen et al. 2013, Ergonomics 56:868); a relaxing share of 1.2 gives 0.2 there.
// Poisson's ratio: soft tissue is all but incompressible. 0.47 keeps volume to some per cent in
// motion, and each step of 0.01 towards 0.5 costs time as the inverse root of what is left.
#include "sim/anatomy.h"

#define FAT_YOUNG      1800.0
#define FAT_DENSITY    940.0
#define MUSCLE_DENSITY 1060.0
#define POISSON        0.47
#define STIFFENING     4.0
#define RELAXING       1.2

static const struct anatomy table[BODY_REGION_COUNT] = {
    // fat, muscle, muscle_young, softness
    [BODY_REGION_HEAD] = {0.003, 0.003, 12e3, 0.0},
    [BODY_REGION_SHOULDERS] = {0.007, 0.025, 10e3, 0.35},
    [BODY_REGION_CHEST] = {0.045, 0.012, 7e3, 0.6},
    [BODY_REGION_BACK] = {0.012, 0.022, 10e3, 0.4},
    [BODY_REGION_BELLY] = {0.036, 0.024, 5e3, 0.9},
    [BODY_REGION_HIPS] = {0.030, 0.022, 7e3, 0.7},
    [BODY_REGION_BUTTOCKS] = {0.036, 0.034, 6e3, 1.0},
    [BODY_REGION_THIGHS] = {0.018, 0.037, 8e3, 0.8},
    [BODY_REGION_CALVES] = {0.008, 0.034, 12e3, 0.6},
    [BODY_REGION_FEET] = {0.004, 0.003, 12e3, 0.0},
    [BODY_REGION_UPPER_ARMS] = {0.014, 0.026, 8e3, 0.6},
    [BODY_REGION_FOREARMS] = {0.006, 0.024, 12e3, 0.3},
    [BODY_REGION_HANDS] = {0.002, 0.003, 12e3, 0.0},
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
